// The walk-through of `@azure/cosmos` 3.x: promises of `resource` and `resources`, over TLS.

"use strict";

const walk = require("./walk");

const { DATA } = walk;
// More pages than any correct answer has; a continuation that leads nowhere must not run for ever.
const PAGES_MAX = 50;

/** Walks through with an SDK. `resumeBy` is its name for a continuation, which changed between its versions. */
function main({ Constants, CosmosClient }, version, resumeBy) {
  walk.report("@azure/cosmos", version, Constants.CurrentVersion);
  const client = new CosmosClient({ endpoint: process.env.PERIHELION_TLS_ENDPOINT, key: walk.KEY });
  walk.run(() => through(client, `azure-cosmos-${version}`, resumeBy));
}

async function through(client, databaseId, resumeBy) {
  const database = client.database(databaseId);
  const container = database.container(DATA.container.id);
  await catalog(client, database, container);
  await items(container);
  for (const wanted of DATA.queries) walk.checkQuery(wanted, await all(query(container, wanted)));
  await pages(container, resumeBy);
  await replace(container);
  await remove(container);
  await offers(client, container);
  await drop(database, container);
}

/** A 404 of an item is an answer in some versions and an error in others. */
async function refused(name, status, call) {
  const result = await call().then(
    ({ resource, statusCode }) => resource ?? { refusedWith: statusCode },
    (error) => ({ refusedWith: error.code }),
  );
  walk.check(name, result, { refusedWith: status });
}

const all = async (iterator) => (await iterator.fetchAll()).resources;
const itemOf = (container, { id, device }) => container.item(id, device);

async function catalog(client, database, container) {
  walk.check("create database", (await client.databases.create({ id: database.id })).resource.id, database.id);
  await refused("create database twice", 409, () => client.databases.create({ id: database.id }));
  const databases = await all(client.databases.readAll());
  walk.check("list databases", databases.some(({ id }) => id === database.id), true);
  const { id, partitionKey, throughput } = DATA.container;
  const definition = { id, partitionKey: { paths: [partitionKey], kind: "Hash" } };
  const made = await database.containers.create(definition, { offerThroughput: throughput });
  walk.check("create container", made.resource.id, id);
  walk.check("read container", (await container.read()).resource.partitionKey.paths, [partitionKey]);
  const containers = await all(database.containers.readAll());
  walk.check("list containers", containers.map((container) => container.id), [id]);
}

async function items(container) {
  const made = [];
  for (const document of DATA.documents) made.push(walk.plain((await container.items.create(document)).resource));
  walk.check("create items", made, DATA.documents);
  await refused("create item twice", 409, () => container.items.create(DATA.read));
  walk.check("read item", walk.plain((await itemOf(container, DATA.read).read()).resource), DATA.read);
  await refused("read absent item", 404, () => itemOf(container, DATA.absent).read());
}

function query(container, { text, parameters = [], key }, options = {}) {
  const scope = key === null ? {} : { partitionKey: key };
  return container.items.query({ query: text, parameters }, { ...scope, ...options });
}

async function pages(container, resumeBy) {
  walk.checkInAnyOrder("read feed", (await all(container.items.readAll())).map(walk.plain), DATA.documents);
  const { size } = DATA.feedPages;
  const found = await resumed(resumeBy, (continuation) =>
    container.items.readAll({ maxItemCount: size, [resumeBy]: continuation }),
  );
  walk.checkPages("feed in pages", found.map((rows) => rows.map(({ id }) => id)), DATA.feedPages);
  const wanted = DATA.queryPages;
  const resume = (continuation) => query(container, wanted, { maxItemCount: wanted.size, [resumeBy]: continuation });
  walk.checkPages("query in pages", await resumed(resumeBy, resume), wanted);
}

/** Each page by an iterator of its own that resumes with the continuation of the last. */
async function resumed(resumeBy, iterate) {
  const found = [];
  let continuation;
  for (let count = 0; count < PAGES_MAX; count += 1) {
    const page = await iterate(continuation).fetchNext();
    found.push(page.resources || []);
    continuation = page[resumeBy];
    if (!continuation) break;
  }
  return found;
}

async function replace(container) {
  const before = (await itemOf(container, DATA.read).read()).resource;
  const replaced = (await itemOf(container, DATA.replaced).replace(DATA.replaced)).resource;
  walk.check("replace item", walk.plain(replaced), DATA.replaced);
  const wanted = DATA.replacedOnCondition;
  const ifMatch = (etag) => ({ accessCondition: { type: "IfMatch", condition: etag } });
  const conditional = await itemOf(container, wanted).replace(wanted, ifMatch(replaced._etag));
  walk.check("conditional replace", walk.plain(conditional.resource), wanted);
  const stale = () => itemOf(container, wanted).replace(DATA.replaced, ifMatch(before._etag));
  await refused("conditional replace of an old version", 412, stale);
  walk.check("read replaced item", walk.plain((await itemOf(container, wanted).read()).resource), wanted);
  await refused("replace absent item", 404, () => itemOf(container, DATA.absent).replace(DATA.absent));
  walk.check("upsert item", walk.plain((await container.items.upsert(DATA.upserted)).resource), DATA.upserted);
}

async function remove(container) {
  await itemOf(container, DATA.deleted).delete();
  await refused("delete item", 404, () => itemOf(container, DATA.deleted).read());
  await refused("delete absent item", 404, () => itemOf(container, DATA.deleted).delete());
}

async function offers(client, container) {
  const link = (await container.read()).resource._self;
  const parameters = [{ name: "@link", value: link }];
  const found = client.offers.query({ query: "SELECT * FROM root r WHERE r.resource = @link", parameters });
  const [offer] = await all(found);
  walk.check("read offer", offer.content.offerThroughput, DATA.container.throughput);
  offer.content.offerThroughput = DATA.container.throughputReplaced;
  await client.offer(offer.id).replace(offer);
  const read = (await client.offer(offer.id).read()).resource;
  walk.check("replace offer", read.content.offerThroughput, DATA.container.throughputReplaced);
}

async function drop(database, container) {
  await container.delete();
  await refused("delete container", 404, () => container.read());
  await database.delete();
  await refused("delete database", 404, () => database.read());
}

module.exports = { main };
