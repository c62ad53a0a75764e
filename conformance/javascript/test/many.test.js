// Many items at once: batches, bulk, feeds, and what is left after a restart.

import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { all, page } from "../support/feed.js";
import { SCHEMES, Server, plain, statusOf, unique } from "../support/server.js";

const server = new Server();
before(() => server.start());
after(() => server.dispose());

for (const scheme of SCHEMES) {
  describe(`many items over ${scheme}`, () => {
    let client, database, container;
    before(async () => {
      client = server.client(scheme);
      ({ database } = await client.databases.create({ id: unique("db") }));
    });
    after(() => client.dispose());
    beforeEach(async () => {
      const made = await database.containers.create({ id: unique("c"), partitionKey: { paths: ["/pk"], version: 2 }, throughput: 12000 });
      container = made.container;
    });

    const items = (options) => all(server, scheme, container, options);
    const ids = async (options) => (await items(options)).map((item) => item.id);

    it("does all of a batch", async () => {
      await container.items.create({ id: "old", pk: "a", v: 1 });
      const { result, code } = await container.items.batch(
        [
          { operationType: "Create", resourceBody: { id: "new", pk: "a" } },
          { operationType: "Upsert", resourceBody: { id: "new", pk: "a", v: 2 } },
          { operationType: "Replace", id: "old", resourceBody: { id: "old", pk: "a", v: 2 } },
          { operationType: "Patch", id: "old", resourceBody: { operations: [{ op: "incr", path: "/v", value: 1 }] } },
          { operationType: "Read", id: "old" },
          { operationType: "Delete", id: "new" },
        ],
        "a",
      );
      assert.equal(code, 200);
      assert.deepEqual(result.map((step) => step.statusCode), [201, 200, 200, 200, 200, 204]);
      assert.equal(result[4].resourceBody.v, 3);
      assert.deepEqual(await ids(), ["old"]);
    });

    it("does nothing of a batch that fails", async () => {
      const { resource: there } = await container.items.create({ id: "there", pk: "a" });
      const { result, code } = await container.items.batch(
        [
          { operationType: "Create", resourceBody: { id: "new", pk: "a" } },
          { operationType: "Create", resourceBody: { id: "there", pk: "a" } },
          { operationType: "Delete", id: "there" },
        ],
        "a",
      );
      assert.equal(code, 207);
      assert.deepEqual(result.map((step) => step.statusCode), [424, 409, 424]);
      assert.deepEqual(await items(), [there]);
    });

    it("holds a batch to its conditions", async () => {
      const { etag } = await container.items.create({ id: "1", pk: "a", v: 1 });
      await container.item("1", "a").replace({ id: "1", pk: "a", v: 2 });
      const { result, code } = await container.items.batch(
        [{ operationType: "Replace", id: "1", ifMatch: etag, resourceBody: { id: "1", pk: "a", v: 3 } }],
        "a",
      );
      assert.equal(code, 207);
      assert.equal(result[0].statusCode, 412);
    });

    it("does many in bulk, each for itself", async () => {
      await container.items.create({ id: "there", pk: "k0" });
      const operations = Array.from({ length: 300 }, (_, number) => ({
        operationType: "Create",
        partitionKey: `k${number % 7}`,
        resourceBody: { id: `${number}`, pk: `k${number % 7}`, v: number },
      }));
      operations.push({ operationType: "Create", partitionKey: "k0", resourceBody: { id: "there", pk: "k0" } });
      operations.push({ operationType: "Read", partitionKey: "k0", id: "none" });
      operations.push({ operationType: "Delete", partitionKey: "k0", id: "there" });
      const results = await container.items.executeBulkOperations(operations);
      const statuses = results.map((result) => Number(result.response?.statusCode ?? result.error?.code));
      assert.deepEqual(statuses.slice(0, 300), Array(300).fill(201));
      assert.deepEqual(statuses.slice(300), [409, 404, 204]);
      assert.equal((await ids()).length, 300);
      const changes = await container.items.executeBulkOperations([
        { operationType: "Patch", partitionKey: "k1", id: "1", resourceBody: { operations: [{ op: "incr", path: "/v", value: 10 }] } },
        { operationType: "Replace", partitionKey: "k2", id: "2", resourceBody: { id: "2", pk: "k2", v: "new" } },
        { operationType: "Upsert", partitionKey: "k3", resourceBody: { id: "3", pk: "k3", v: "new" } },
      ]);
      assert.deepEqual(changes.map((result) => Number(result.response.statusCode)), [200, 200, 200]);
      assert.equal((await container.item("1", "k1").read()).resource.v, 11);
    });

    it("reads all in pages that can be resumed", async () => {
      for (let number = 0; number < 30; number++) await container.items.create({ id: `${number}`, pk: `k${number % 5}` });
      const whole = await ids();
      assert.equal(new Set(whole).size, 30);
      assert.deepEqual(await ids({ maxItemCount: 7 }), whole);
      const seen = [];
      let continuationToken;
      do {
        const next = await page(server, scheme, container, { maxItemCount: 4, continuationToken });
        assert.ok(next.resources.length <= 4);
        seen.push(...next.resources.map((item) => item.id));
        continuationToken = next.continuationToken;
      } while (continuationToken);
      assert.deepEqual(seen, whole);
    });

    it("reads all through the SDK, whole and in pages", async () => {
      for (let number = 0; number < 30; number++) await container.items.create({ id: `${number}`, pk: `k${number % 5}` });
      const { resources } = await container.items.readAll().fetchAll();
      const whole = resources.map((item) => item.id);
      assert.deepEqual([...whole].sort(), (await ids()).sort());
      const pages = container.items.readAll({ maxItemCount: 7 });
      const seen = [];
      while (pages.hasMoreResults()) seen.push(...((await pages.fetchNext()).resources ?? []).map((item) => item.id));
      assert.deepEqual(seen, whole);
      const first = await container.items.readAll({ maxItemCount: 7 }).fetchNext();
      const { continuationToken } = first;
      const rest = await container.items.readAll({ continuationToken }).fetchAll();
      assert.deepEqual([...first.resources, ...rest.resources].map((item) => item.id), whole);
      const one = await container.items.readAll({ partitionKey: "k3" }).fetchAll();
      assert.deepEqual(one.resources.map((item) => item.id).sort(), ["13", "18", "23", "28", "3", "8"]);
    });

    it("reads the items of one key", async () => {
      for (let number = 0; number < 10; number++) await container.items.create({ id: `${number}`, pk: `k${number % 2}` });
      assert.deepEqual((await ids({ partitionKey: "k1" })).sort(), ["1", "3", "5", "7", "9"]);
    });

    it("refuses a made-up continuation", async () => {
      assert.equal((await statusOf(() => items({ continuationToken: "nonsense" })))[0], 400);
    });

    for (const end of ["stop", "kill"]) {
      it(`keeps everything after a ${end}`, async () => {
        for (let number = 0; number < 20; number++) await container.items.create({ id: `${number}`, pk: `k${number % 5}` });
        await container.item("3", "k3").replace({ id: "3", pk: "k3", v: "new" });
        await container.item("4", "k4").delete();
        const before = await items();
        const first = await page(server, scheme, container, { maxItemCount: 6 });
        const code = await server[end]();
        assert.equal(code, end === "stop" ? 0 : "SIGKILL");
        await server.start();
        const after = await items();
        assert.deepEqual(after, before);
        assert.equal(after.length, 19);
        const { continuationToken } = first;
        const rest = await items({ continuationToken });
        assert.deepEqual([...first.resources, ...rest], before);
        assert.deepEqual(plain((await container.item("3", "k3").read()).resource), { id: "3", pk: "k3", v: "new" });
        await container.items.create({ id: "new", pk: "a" });
      });
    }
  });
}
