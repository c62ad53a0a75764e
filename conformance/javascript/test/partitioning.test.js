// The walk-throughs of the articles about partitioning: what is stored where, which partitions a query reaches. The data
// and the answers are shared with the suites of the other languages. Partitions are counted by the server's metrics.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { PartitionKeyKind } from "@azure/cosmos";
import { partitions, requestsByPartition } from "../support/control.js";
import { SCHEMES, Server, statusOf, unique } from "../support/server.js";

const WALK = JSON.parse(readFileSync(new URL("../../partitioning.json", import.meta.url)));
const { telemetry } = WALK;
const DEVICES = [...new Set(telemetry.readings.map((reading) => reading.deviceId))];

const server = new Server();
const enforcing = new Server("dev", ...WALK.hot.flags);
before(() => Promise.all([server.start(), enforcing.start()]));
after(() => Promise.all([server.dispose(), enforcing.dispose()]));

/** The result of a call, and the partitions of a container that it reached. */
async function reached(container, call, of = server) {
  const earlier = await requestsByPartition(of, container);
  const result = await call();
  const later = await requestsByPartition(of, container);
  return { result, reached: Object.keys(later).filter((id) => later[id] > (earlier[id] ?? 0)) };
}

async function makeIn(database, paths, throughput) {
  const kind = paths.length > 1 ? PartitionKeyKind.MultiHash : PartitionKeyKind.Hash;
  return (await database.containers.create({ id: unique("c"), partitionKey: { paths, kind, version: 2 }, throughput })).container;
}

const rows = async (container, query, options = {}) => (await container.items.query(query, options).fetchAll()).resources;
const numbers = (count) => Array.from({ length: count }, (_, number) => number);

for (const scheme of SCHEMES) {
  describe(`partitioning over ${scheme}`, () => {
    let client, database, container;
    const make = (paths, throughput, within = database) => makeIn(within, paths, throughput);
    const fill = async (container) => {
      for (const reading of telemetry.readings) await container.items.create(reading);
    };
    before(async () => {
      client = server.client(scheme);
      ({ database } = await client.databases.create({ id: unique("db") }));
      container = await make([telemetry.partitionKey], telemetry.throughput);
      await fill(container);
    });
    after(async () => {
      await database.delete();
      client.dispose();
    });

    it("throughput decides the number of partitions", async () => {
      assert.equal((await container.getFeedRanges()).length, telemetry.partitions);
      const counts = (await partitions(server, container)).map((partition) => partition.documents);
      assert.equal(counts.length, telemetry.partitions);
      assert.ok(counts.every((count) => count > 0));
      assert.equal(counts.reduce((sum, count) => sum + count), telemetry.readings.length);
    });

    it("a reading is found by its device", async () => {
      const { id, deviceId, metricValue } = telemetry.reading;
      const item = container.item(id, deviceId);
      const walk = await reached(container, async () => {
        await container.items.create(telemetry.reading);
        assert.equal((await item.read()).resource.metricValue, metricValue);
        await item.replace({ ...telemetry.reading, metricValue: 104 });
        assert.equal((await item.read()).resource.metricValue, 104);
        await item.delete();
      });
      assert.equal(walk.reached.length, 1);
      assert.equal((await item.read()).statusCode, 404);
    });

    for (const { text, reaches, isOrdered, expected } of telemetry.queries) {
      it(`reaches ${reaches}: ${text}`, async () => {
        for (const maxItemCount of [3, 100]) {
          const walk = await reached(container, () => rows(container, text, { maxItemCount }));
          if (!isOrdered) walk.result.sort();
          assert.deepEqual(walk.result, expected);
          assert.equal(walk.reached.length, reaches);
        }
      });
    }

    it("has the same order in parallel as one by one", async () => {
      for (const text of ["SELECT VALUE c.id FROM c", "SELECT VALUE c.id FROM c ORDER BY c.metricType"]) {
        const serial = await rows(container, text, { maxDegreeOfParallelism: 0, maxItemCount: 5 });
        assert.equal(new Set(serial).size, telemetry.readings.length);
        for (const options of [{ maxDegreeOfParallelism: 2, bufferItems: true }, { maxDegreeOfParallelism: 4 }, { maxDegreeOfParallelism: -1 }]) {
          assert.deepEqual(await rows(container, text, { ...options, maxItemCount: 5 }), serial);
        }
      }
    });

    it("raised throughput splits each partition twice", async () => {
      const walk = WALK.raise;
      let pendingCount = 0;
      for (let turn = 0; turn < walk.containers; turn++) {
        const raised = await make([telemetry.partitionKey], walk.from);
        await fill(raised);
        assert.equal((await partitions(server, raised)).length, 1);
        const { resource, offer } = await raised.readOffer();
        resource.content.offerThroughput = walk.to;
        let { headers } = await offer.replace(resource);
        // The bound is only for a server that never gets there.
        const deadline = Date.now() + 20_000;
        while (headers["x-ms-offer-replace-pending"] === "true") {
          pendingCount++;
          assert.ok(Date.now() < deadline);
          ({ headers } = await offer.read());
        }
        assert.equal(headers["x-ms-offer-replace-pending"], "false");
        const found = await partitions(server, raised);
        assert.equal(found.length, walk.partitions);
        assert.ok(found.every((partition) => partition.parents.length === walk.generations));
        assert.equal((await offer.read()).resource.content.offerThroughput, walk.to);
        const ids = await rows(raised, "SELECT VALUE c.id FROM c");
        assert.deepEqual(ids.sort(), telemetry.readings.map((reading) => reading.id).sort());
      }
      // One of several, since a fast server may be ready before it answers.
      assert.ok(pendingCount > 0);
    });

    it("a synthetic key spreads a device over days", async () => {
      const walk = WALK.synthetic;
      const spread = await make([walk.partitionKey], walk.throughput);
      for (const deviceId of walk.devices) {
        for (const date of walk.dates) await spread.items.create({ id: "1", deviceId, date, partitionKey: `${deviceId}-${date}` });
      }
      const [[device], [date]] = [walk.devices, walk.dates];
      const one = await reached(spread, async () => {
        assert.equal((await spread.item("1", `${device}-${date}`).read()).resource.date, date);
        return rows(spread, `SELECT VALUE c.date FROM c WHERE c.partitionKey = '${device}-${date}'`);
      });
      assert.deepEqual([one.result, one.reached.length], [[date], 1]);
      const query = `SELECT VALUE c.date FROM c WHERE c.deviceId = '${device}' ORDER BY c.date`;
      const every = await reached(spread, () => rows(spread, query));
      assert.deepEqual([every.result, every.reached.length], [walk.dates, 4]);
    });

    it("tenants share a container", async () => {
      const walk = WALK.tenants;
      const shared = await make([walk.partitionKey], walk.throughput);
      for (const tenantId of walk.names) {
        const create = (id) => ({ operationType: "Create", resourceBody: { id, tenantId, owner: tenantId } });
        assert.equal((await shared.items.batch([create("profile"), create("settings")], tenantId)).code, 200);
      }
      const [first, second] = walk.names;
      const one = await reached(shared, async () => {
        assert.equal((await rows(shared, "SELECT * FROM c", { partitionKey: first })).length, 2);
        return rows(shared, `SELECT VALUE c.owner FROM c WHERE c.tenantId = '${first}'`);
      });
      assert.deepEqual([one.result, one.reached.length], [[first, first], 1]);
      const steps = [
        { operationType: "Delete", id: "profile" },
        { operationType: "Create", resourceBody: { id: "settings", tenantId: first } },
      ];
      assert.equal((await shared.items.batch(steps, first)).code, 207);
      assert.equal((await shared.item("profile", first).read()).resource.owner, first);
      await shared.item("profile", first).delete();
      assert.equal((await shared.item("profile", second).read()).resource.owner, second);
      const every = await reached(shared, () => rows(shared, "SELECT VALUE COUNT(1) FROM c"));
      assert.deepEqual([every.result, every.reached.length], [[2 * walk.names.length - 1], 4]);
    });

    it("a large tenant has a container of its own", async () => {
      const [small, large] = [await make(["/id"], 400), await make(["/id"], 20000)];
      assert.equal((await partitions(server, small)).length, 1);
      assert.equal((await partitions(server, large)).length, 4);
      for (const own of [small, large]) await own.items.create({ id: "1", container: own.id });
      const walk = await reached(large, async () => {
        const { resource, offer } = await small.readOffer();
        resource.content.offerThroughput = 500;
        await offer.replace(resource);
        return rows(small, "SELECT VALUE c.container FROM c");
      });
      assert.deepEqual(walk, { result: [small.id], reached: [] });
      const rate = async (own) => (await own.readOffer()).resource.content.offerThroughput;
      assert.deepEqual([await rate(small), await rate(large)], [500, 20000]);
    });

    it("prefixes of hierarchical keys reach one partition", async () => {
      const walk = WALK.hierarchical;
      const deep = await make(walk.partitionKeys, walk.throughput);
      for (const tenantId of walk.tenants) {
        for (const userId of walk.users) {
          for (const sessionId of walk.sessions) await deep.items.create({ id: `${userId}${sessionId}`, tenantId, userId, sessionId });
        }
      }
      const [tenant] = walk.tenants;
      const below = (...partitionKey) => rows(deep, "SELECT VALUE c.id FROM c", { partitionKey });
      const one = await reached(deep, async () => {
        assert.equal((await deep.item("u1s1", [tenant, "u1", "s1"]).read()).resource.tenantId, tenant);
        assert.deepEqual((await below(tenant)).sort(), ["u1s1", "u1s2", "u2s1", "u2s2"]);
        assert.deepEqual((await below(tenant, "u1")).sort(), ["u1s1", "u1s2"]);
        assert.deepEqual(await below(tenant, "u1", "s1"), ["u1s1"]);
      });
      assert.equal(one.reached.length, 1);
      const every = await reached(deep, () => rows(deep, "SELECT * FROM c WHERE c.userId = 'u1'"));
      assert.deepEqual([every.result.length, every.reached.length], [2 * walk.tenants.length, 4]);
    });

    it("containers share the throughput of a database", async () => {
      const { throughput } = WALK.shared;
      const { database: sharing } = await client.databases.create({ id: unique("db"), throughput });
      const shared = await make(["/pk"], undefined, sharing);
      const own = await make(["/pk"], throughput, sharing);
      assert.equal((await partitions(server, shared)).length, 1);
      assert.equal((await partitions(server, own)).length, 4);
      assert.equal((await sharing.readOffer()).resource.content.offerThroughput, throughput);
      assert.equal((await shared.readOffer()).resource, undefined);
      await sharing.delete();
    });
  });
}

describe("partitioning with enforced throughput", () => {
  let impatient, patient;
  before(() => {
    impatient = enforcing.client("http", { connectionPolicy: { retryOptions: { maxRetryAttemptCount: 0 } } });
    patient = enforcing.client("http");
  });
  after(() => {
    impatient.dispose();
    patient.dispose();
  });
  const large = (deviceId, count) => ({ id: "large", deviceId, values: numbers(count) });
  const throttled = async (container) =>
    Object.fromEntries((await partitions(enforcing, container)).map((partition) => [partition.id, partition.throttledRequests]));
  const create = async (container, deviceId, count) => {
    for (let number = 0; number < count; number++) await container.items.create({ id: `patient${number}`, deviceId });
  };
  const seenBy = (client, container) => client.database(container.database.id).container(container.id);

  it("a hot partition throttles itself only", async () => {
    const { database } = await impatient.databases.create({ id: unique("hot") });
    const container = await makeIn(database, ["/deviceId"], WALK.hot.throughput);
    const home = {};
    for (const deviceId of DEVICES) {
      const walk = await reached(container, () => container.items.create({ id: "1", deviceId }), enforcing);
      [home[deviceId]] = walk.reached;
    }
    assert.equal(new Set(Object.values(home)).size, WALK.hot.partitions);
    const [hot] = DEVICES;
    await seenBy(patient, container).item("1", hot).read();
    await container.items.create(large(hot, WALK.hot.values));
    assert.deepEqual(await statusOf(() => container.items.create({ id: "2", deviceId: hot })), [429, 3200]);
    const earlier = await throttled(container);
    const waiting = create(seenBy(patient, container), hot, 3);
    for (const deviceId of DEVICES) {
      if (home[deviceId] !== home[hot]) await container.items.create({ id: "2", deviceId });
    }
    await waiting;
    const later = await throttled(container);
    assert.deepEqual(Object.keys(later).filter((id) => later[id] > 0), [home[hot]]);
    assert.ok(later[home[hot]] > earlier[home[hot]], "the patient client was refused, too");
  });

  it("containers share an enforced throughput", async () => {
    const { database } = await impatient.databases.create({ id: unique("db"), throughput: WALK.hot.throughput });
    const [one, two, own] = await Promise.all([undefined, undefined, 400].map((rate) => makeIn(database, ["/deviceId"], rate)));
    const waiting = seenBy(patient, two);
    await waiting.items.create({ id: "0", deviceId: "b" });
    await one.items.create(large("a", WALK.hot.sharedValues));
    assert.deepEqual(await statusOf(() => two.items.create({ id: "1", deviceId: "b" })), [429, 3200]);
    const created = waiting.items.create({ id: "2", deviceId: "b" });
    assert.equal((await own.items.create({ id: "1", deviceId: "b" })).statusCode, 201);
    assert.equal((await created).statusCode, 201);
  });
});
