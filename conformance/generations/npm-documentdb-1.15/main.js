// `documentdb`, the Node.js client of 2015 to 2019: links, callbacks, TLS only.

"use strict";

require("../support/node/tls12");
const { DocumentClient } = require("documentdb");
const { CurrentVersion } = require("documentdb/lib/constants");
const { version } = require("documentdb/package.json");
const walk = require("../support/node/walk");

const { DATA } = walk;
const DATABASE = "documentdb";
const DATABASE_LINK = `dbs/${DATABASE}`;
const CONTAINER_LINK = `${DATABASE_LINK}/colls/${DATA.container.id}`;
// More pages than any correct answer has; a continuation that leads nowhere must not run for ever.
const PAGES_MAX = 50;

const client = new DocumentClient(process.env.PERIHELION_TLS_ENDPOINT, { masterKey: walk.KEY });

/** Calls a method of the client and waits for its callback. */
function call(method, ...parameters) {
  return new Promise((resolve, reject) => {
    client[method](...parameters, (error, result) => (error ? reject(error) : resolve(result)));
  });
}

async function refused(name, status, method, ...parameters) {
  const result = await call(method, ...parameters).catch((error) => ({ refusedWith: error.code }));
  walk.check(name, result, { refusedWith: status });
}

const all = (iterator) =>
  new Promise((resolve, reject) => iterator.toArray((error, rows) => (error ? reject(error) : resolve(rows))));

/** A page of an iterator, and the continuation behind it. */
const page = (iterator) =>
  new Promise((resolve, reject) =>
    iterator.executeNext((error, rows, headers) =>
      error ? reject(error) : resolve({ rows: rows || [], continuation: headers["x-ms-continuation"] }),
    ),
  );

const itemLink = (item) => `${CONTAINER_LINK}/docs/${item.id}`;
const of = (item) => ({ partitionKey: [item.device] });

async function catalog() {
  walk.check("create database", (await call("createDatabase", { id: DATABASE })).id, DATABASE);
  await refused("create database twice", 409, "createDatabase", { id: DATABASE });
  const databases = await all(client.readDatabases());
  walk.check("list databases", databases.some(({ id }) => id === DATABASE), true);
  const { id, partitionKey, throughput } = DATA.container;
  const definition = { id, partitionKey: { paths: [partitionKey], kind: "Hash" } };
  const made = await call("createCollection", DATABASE_LINK, definition, { offerThroughput: throughput });
  walk.check("create container", made.id, id);
  walk.check("read container", (await call("readCollection", CONTAINER_LINK)).partitionKey.paths, [partitionKey]);
  const containers = await all(client.readCollections(DATABASE_LINK));
  walk.check("list containers", containers.map((container) => container.id), [id]);
}

async function items() {
  const made = [];
  for (const item of DATA.documents) made.push(walk.plain(await call("createDocument", CONTAINER_LINK, item)));
  walk.check("create items", made, DATA.documents);
  await refused("create item twice", 409, "createDocument", CONTAINER_LINK, DATA.read);
  const read = await call("readDocument", itemLink(DATA.read), of(DATA.read));
  walk.check("read item", walk.plain(read), DATA.read);
  await refused("read absent item", 404, "readDocument", itemLink(DATA.absent), of(DATA.absent));
}

function query({ text, parameters = [], key }, options = {}) {
  const scope = key === null ? { enableCrossPartitionQuery: true } : { partitionKey: key };
  return client.queryDocuments(CONTAINER_LINK, { query: text, parameters }, { ...scope, ...options });
}

async function pages() {
  const feed = await all(client.readDocuments(CONTAINER_LINK));
  walk.checkInAnyOrder("read feed", feed.map(walk.plain), DATA.documents);
  const { size } = DATA.feedPages;
  const found = await resumed((continuation) =>
    client.readDocuments(CONTAINER_LINK, { maxItemCount: size, continuation }),
  );
  walk.checkPages("feed in pages", found.map((rows) => rows.map((item) => item.id)), DATA.feedPages);
  const wanted = DATA.queryPages;
  const resume = (continuation) => query(wanted, { maxItemCount: wanted.size, continuation });
  walk.checkPages("query in pages", await resumed(resume), wanted);
}

/** Each page by an iterator of its own that resumes with the continuation of the last. */
async function resumed(iterate) {
  const found = [];
  let continuation;
  for (let count = 0; count < PAGES_MAX; count += 1) {
    const next = await page(iterate(continuation));
    found.push(next.rows);
    continuation = next.continuation;
    if (!continuation) break;
  }
  return found;
}

async function replace() {
  const before = await call("readDocument", itemLink(DATA.read), of(DATA.read));
  const replaced = await call("replaceDocument", itemLink(DATA.replaced), DATA.replaced, of(DATA.replaced));
  walk.check("replace item", walk.plain(replaced), DATA.replaced);
  const wanted = DATA.replacedOnCondition;
  const ifMatch = (etag) => ({ ...of(wanted), accessCondition: { type: "IfMatch", condition: etag } });
  const conditional = await call("replaceDocument", itemLink(wanted), wanted, ifMatch(replaced._etag));
  walk.check("conditional replace", walk.plain(conditional), wanted);
  const stale = [itemLink(wanted), DATA.replaced, ifMatch(before._etag)];
  await refused("conditional replace of an old version", 412, "replaceDocument", ...stale);
  const read = await call("readDocument", itemLink(wanted), of(wanted));
  walk.check("read replaced item", walk.plain(read), wanted);
  const absent = [itemLink(DATA.absent), DATA.absent, of(DATA.absent)];
  await refused("replace absent item", 404, "replaceDocument", ...absent);
  const upserted = await call("upsertDocument", CONTAINER_LINK, DATA.upserted);
  walk.check("upsert item", walk.plain(upserted), DATA.upserted);
}

async function remove() {
  const { deleted } = DATA;
  await call("deleteDocument", itemLink(deleted), of(deleted));
  await refused("delete item", 404, "readDocument", itemLink(deleted), of(deleted));
  await refused("delete absent item", 404, "deleteDocument", itemLink(deleted), of(deleted));
}

async function offers() {
  const container = await call("readCollection", CONTAINER_LINK);
  const [offer] = await all(
    client.queryOffers({
      query: "SELECT * FROM root r WHERE r.resource = @link",
      parameters: [{ name: "@link", value: container._self }],
    }),
  );
  walk.check("read offer", offer.content.offerThroughput, DATA.container.throughput);
  offer.content.offerThroughput = DATA.container.throughputReplaced;
  await call("replaceOffer", offer._self, offer);
  const read = await call("readOffer", offer._self);
  walk.check("replace offer", read.content.offerThroughput, DATA.container.throughputReplaced);
}

async function drop() {
  await call("deleteCollection", CONTAINER_LINK);
  await refused("delete container", 404, "readCollection", CONTAINER_LINK);
  await call("deleteDatabase", DATABASE_LINK);
  await refused("delete database", 404, "readDatabase", DATABASE_LINK);
}

walk.report("documentdb", version, CurrentVersion);
walk.run(async () => {
  await catalog();
  await items();
  for (const wanted of DATA.queries) walk.checkQuery(wanted, await all(query(wanted)));
  await pages();
  await replace();
  await remove();
  await offers();
  await drop();
});
