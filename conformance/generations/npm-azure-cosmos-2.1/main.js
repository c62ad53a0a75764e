// `@azure/cosmos` 2.x, the JavaScript client of 2018 and 2019: promises of `body` and `result`, TLS only.

"use strict";

require("../support/node/tls12");
const { Constants, CosmosClient } = require("@azure/cosmos");
const { version } = require("@azure/cosmos/package.json");
const walk = require("../support/node/walk");

const { DATA } = walk;
const DATABASE = `azure-cosmos-${version}`;
// More pages than any correct answer has; a continuation that leads nowhere must not run for ever.
const PAGES_MAX = 50;

const client = new CosmosClient({ endpoint: process.env.PERIHELION_TLS_ENDPOINT, auth: { masterKey: walk.KEY } });
const database = client.database(DATABASE);
const container = database.container(DATA.container.id);

async function refused(name, status, call) {
  const result = await call().then(
    ({ body }) => body,
    (error) => ({ refusedWith: error.code }),
  );
  walk.check(name, result, { refusedWith: status });
}

const all = async (iterator) => (await iterator.toArray()).result;
const item = ({ id, device }) => container.item(id, device);

async function catalog() {
  walk.check("create database", (await client.databases.create({ id: DATABASE })).body.id, DATABASE);
  await refused("create database twice", 409, () => client.databases.create({ id: DATABASE }));
  const databases = await all(client.databases.readAll());
  walk.check("list databases", databases.some(({ id }) => id === DATABASE), true);
  const { id, partitionKey, throughput } = DATA.container;
  const definition = { id, partitionKey: { paths: [partitionKey], kind: "Hash" } };
  const made = await database.containers.create(definition, { offerThroughput: throughput });
  walk.check("create container", made.body.id, id);
  walk.check("read container", (await container.read()).body.partitionKey.paths, [partitionKey]);
  const containers = await all(database.containers.readAll());
  walk.check("list containers", containers.map((container) => container.id), [id]);
}

async function items() {
  const made = [];
  for (const document of DATA.documents) made.push(walk.plain((await container.items.create(document)).body));
  walk.check("create items", made, DATA.documents);
  await refused("create item twice", 409, () => container.items.create(DATA.read));
  walk.check("read item", walk.plain((await item(DATA.read).read()).body), DATA.read);
  await refused("read absent item", 404, () => item(DATA.absent).read());
}

function query({ text, parameters = [], key }, options = {}) {
  const scope = key === null ? { enableCrossPartitionQuery: true } : { partitionKey: key };
  return container.items.query({ query: text, parameters }, { ...scope, ...options });
}

async function pages() {
  walk.checkInAnyOrder("read feed", (await all(container.items.readAll())).map(walk.plain), DATA.documents);
  const { size } = DATA.feedPages;
  const found = await resumed((continuation) => container.items.readAll({ maxItemCount: size, continuation }));
  walk.checkPages("feed in pages", found.map((rows) => rows.map(({ id }) => id)), DATA.feedPages);
  const wanted = DATA.queryPages;
  const resume = (continuation) => query(wanted, { maxItemCount: wanted.size, continuation });
  walk.checkPages("query in pages", await resumed(resume), wanted);
}

/** Each page by an iterator of its own that resumes with the continuation of the last. */
async function resumed(iterate) {
  const found = [];
  let continuation;
  for (let count = 0; count < PAGES_MAX; count += 1) {
    const { result, headers } = await iterate(continuation).executeNext();
    found.push(result || []);
    continuation = headers["x-ms-continuation"];
    if (!continuation) break;
  }
  return found;
}

async function replace() {
  const before = (await item(DATA.read).read()).body;
  const replaced = (await item(DATA.replaced).replace(DATA.replaced)).body;
  walk.check("replace item", walk.plain(replaced), DATA.replaced);
  const wanted = DATA.replacedOnCondition;
  const ifMatch = (etag) => ({ accessCondition: { type: "IfMatch", condition: etag } });
  const conditional = await item(wanted).replace(wanted, ifMatch(replaced._etag));
  walk.check("conditional replace", walk.plain(conditional.body), wanted);
  const stale = () => item(wanted).replace(DATA.replaced, ifMatch(before._etag));
  await refused("conditional replace of an old version", 412, stale);
  walk.check("read replaced item", walk.plain((await item(wanted).read()).body), wanted);
  await refused("replace absent item", 404, () => item(DATA.absent).replace(DATA.absent));
  walk.check("upsert item", walk.plain((await container.items.upsert(DATA.upserted)).body), DATA.upserted);
}

async function remove() {
  await item(DATA.deleted).delete();
  await refused("delete item", 404, () => item(DATA.deleted).read());
  await refused("delete absent item", 404, () => item(DATA.deleted).delete());
}

async function offers() {
  const link = (await container.read()).body._self;
  const parameters = [{ name: "@link", value: link }];
  const found = client.offers.query({ query: "SELECT * FROM root r WHERE r.resource = @link", parameters });
  const [offer] = await all(found);
  walk.check("read offer", offer.content.offerThroughput, DATA.container.throughput);
  offer.content.offerThroughput = DATA.container.throughputReplaced;
  await client.offer(offer.id).replace(offer);
  const read = (await client.offer(offer.id).read()).body;
  walk.check("replace offer", read.content.offerThroughput, DATA.container.throughputReplaced);
}

async function drop() {
  await container.delete();
  await refused("delete container", 404, () => container.read());
  await database.delete();
  await refused("delete database", 404, () => database.read());
}

walk.report("@azure/cosmos", version, Constants.CurrentVersion);
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
