// Items: create, read, replace, upsert, delete, patch, conditions, keys, expiry, unique keys.

import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { PartitionKeyDefinitionVersion, PartitionKeyKind } from "@azure/cosmos";
import { all } from "../support/feed.js";
import { SCHEMES, Server, eventually, plain, statusOf, unique } from "../support/server.js";

const server = new Server();
before(() => server.start());
after(() => server.dispose());

for (const scheme of SCHEMES) {
  describe(`items over ${scheme}`, () => {
    let client, database, container;
    before(async () => {
      client = server.client(scheme);
      ({ database } = await client.databases.create({ id: unique("db") }));
    });
    after(async () => {
      await database.delete();
      client.dispose();
    });
    beforeEach(async () => {
      container = await make({});
    });

    async function make(options, paths = ["/pk"]) {
      const partitionKey = { paths, version: PartitionKeyDefinitionVersion.V2 };
      const made = await database.containers.create({ id: unique("c"), partitionKey, ...options });
      return made.container;
    }

    it("creates and reads", async () => {
      const body = { id: "1", pk: "a", name: "Änn 🙂", list: [1, 2.5, null, true, { x: [] }] };
      const { resource, statusCode, etag, requestCharge } = await container.items.create(body);
      assert.equal(statusCode, 201);
      assert.deepEqual(plain(resource), body);
      assert.equal(etag, resource._etag);
      assert.ok(requestCharge > 1);
      const read = await container.item("1", "a").read();
      assert.equal(read.statusCode, 200);
      assert.deepEqual(read.resource, resource);
      assert.ok(read.headers["x-ms-session-token"].includes("#"));
    });

    it("makes an id when there is none", async () => {
      const { resource } = await container.items.create({ pk: "a" });
      assert.equal((await container.item(resource.id, "a").read()).resource._rid, resource._rid);
    });

    it("refuses a second item of an id in a partition", async () => {
      await container.items.create({ id: "1", pk: "a", v: 1 });
      assert.deepEqual(await statusOf(() => container.items.create({ id: "1", pk: "a", v: 2 })), [409, 0]);
      await container.items.create({ id: "1", pk: "b", v: 3 });
      assert.equal((await container.item("1", "a").read()).resource.v, 1);
    });

    it("answers a read of nothing with 404 and no resource", async () => {
      const { statusCode, resource } = await container.item("none", "a").read();
      assert.equal(statusCode, 404);
      assert.equal(resource, undefined);
    });

    it("replaces and upserts", async () => {
      const created = await container.items.upsert({ id: "1", pk: "a", v: 1 });
      assert.equal(created.statusCode, 201);
      const upserted = await container.items.upsert({ id: "1", pk: "a", v: 2 });
      assert.equal(upserted.statusCode, 200);
      const replaced = await container.item("1", "a").replace({ id: "1", pk: "a", v: 3 });
      assert.equal(replaced.statusCode, 200);
      assert.equal(replaced.resource._rid, created.resource._rid);
      assert.notEqual(replaced.etag, upserted.etag);
      assert.deepEqual(await statusOf(() => container.item("2", "a").replace({ id: "2", pk: "a" })), [404, 0]);
      const renamed = await container.item("1", "a").replace({ id: "2", pk: "a" });
      assert.equal(renamed.resource._rid, created.resource._rid);
      assert.equal((await container.item("1", "a").read()).statusCode, 404);
      await container.items.create({ id: "1", pk: "a" });
      assert.deepEqual(await statusOf(() => container.item("1", "a").replace({ id: "2", pk: "a" })), [409, 0]);
    });

    it("deletes once", async () => {
      await container.items.create({ id: "1", pk: "a" });
      assert.equal((await container.item("1", "a").delete()).statusCode, 204);
      assert.deepEqual(await statusOf(() => container.item("1", "a").delete()), [404, 0]);
    });

    it("holds writes to their condition", async () => {
      const { etag: old } = await container.items.create({ id: "1", pk: "a", v: 1 });
      const item = container.item("1", "a");
      const { etag } = await item.replace({ id: "1", pk: "a", v: 2 });
      const stale = { accessCondition: { type: "IfMatch", condition: old } };
      const fresh = { accessCondition: { type: "IfMatch", condition: etag } };
      assert.deepEqual(await statusOf(() => item.replace({ id: "1", pk: "a", v: 3 }, stale)), [412, 0]);
      assert.deepEqual(await statusOf(() => item.delete(stale)), [412, 0]);
      assert.deepEqual(await statusOf(() => item.patch([{ op: "set", path: "/v", value: 3 }], stale)), [412, 0]);
      assert.equal((await item.read()).resource.v, 2);
      assert.equal((await item.replace({ id: "1", pk: "a", v: 3 }, fresh)).resource.v, 3);
    });

    it("lets one of two clients win each race", async () => {
      const other = server.client(scheme);
      const racers = [container, other.database(container.database.id).container(container.id)];
      const id = unique("race");
      await container.items.create({ id, pk: "a", v: 0 });
      for (let round = 1; round <= 20; round++) {
        const { etag } = await container.item(id, "a").read();
        const options = { accessCondition: { type: "IfMatch", condition: etag } };
        const write = (racer) => racer.item(id, "a").replace({ id, pk: "a", v: round }, options);
        const codes = await Promise.all(racers.map((racer) => write(racer).then((won) => won.statusCode, (lost) => Number(lost.code))));
        assert.deepEqual(codes.sort(), [200, 412]);
        assert.equal((await container.item(id, "a").read()).resource.v, round);
      }
      other.dispose();
    });

    it("answers an unchanged read with 304", async () => {
      const { etag } = await container.items.create({ id: "1", pk: "a" });
      const condition = { accessCondition: { type: "IfNoneMatch", condition: etag } };
      const { statusCode } = await container.item("1", "a").read(condition);
      assert.equal(statusCode, 304);
    });

    it("patches with six operations", async () => {
      await container.items.create({ id: "1", pk: "a", n: 1, gone: 1, l: [1, 2], from: "x" });
      const { resource } = await container.item("1", "a").patch([
        { op: "add", path: "/l/0", value: 0 },
        { op: "add", path: "/l/-", value: 3 },
        { op: "set", path: "/s", value: { a: null } },
        { op: "replace", path: "/n", value: 5 },
        { op: "incr", path: "/n", value: 0.5 },
        { op: "remove", path: "/gone" },
        { op: "move", from: "/from", path: "/to" },
      ]);
      assert.deepEqual(plain(resource), { id: "1", pk: "a", n: 5.5, l: [0, 1, 2, 3], s: { a: null }, to: "x" });
      assert.equal((await statusOf(() => container.item("1", "a").patch([{ op: "remove", path: "/gone" }])))[0], 400);
      assert.equal((await statusOf(() => container.item("1", "a").patch([{ op: "set", path: "/id", value: "2" }])))[0], 400);
      assert.equal((await statusOf(() => container.item("2", "a").patch([{ op: "set", path: "/v", value: 1 }])))[0], 404);
    });

    it("patches if the condition holds", async () => {
      await container.items.create({ id: "1", pk: "a", n: 1 });
      const operations = [{ op: "incr", path: "/n", value: 1 }];
      const patch = (condition) => container.item("1", "a").patch({ condition, operations });
      assert.deepEqual(await statusOf(() => patch("from c where c.n = 2")), [412, 0]);
      assert.equal((await patch("from c where c.n = 1")).resource.n, 2);
      assert.deepEqual(await statusOf(() => patch("where c.n = 2")), [400, 0]);
    });

    for (const value of ["a", "", "ünï 🙂", 0, -1, 1.5, 2 ** 53 - 1, true, false, null]) {
      it(`finds items under the key ${JSON.stringify(value)}`, async () => {
        const { resource } = await container.items.create({ id: "1", pk: value });
        assert.equal((await container.item("1", value).read()).resource._rid, resource._rid);
        assert.equal((await container.item("1", value).delete()).statusCode, 204);
      });
    }

    it("finds items without a key", async () => {
      const { resource } = await container.items.create({ id: "1" });
      assert.equal((await container.item("1", undefined).read()).resource._rid, resource._rid);
    });

    it("uses containers of old clients, which have no key", async () => {
      const partitionKey = { paths: ["/_partitionKey"], systemKey: true };
      const { container: old } = await database.containers.create({ id: unique("c"), partitionKey });
      assert.equal((await old.items.create({ id: "1", v: 1 })).statusCode, 201);
      assert.equal((await old.item("1").read()).resource.v, 1);
      assert.equal((await old.items.upsert({ id: "1", v: 2 })).statusCode, 200);
      assert.equal((await old.item("1").patch([{ op: "incr", path: "/v", value: 1 }])).resource.v, 3);
      // A newer client may give items of such a container a key.
      assert.equal((await old.items.create({ id: "1", _partitionKey: "a", v: 9 })).statusCode, 201);
      assert.equal((await old.item("1", "a").read()).resource.v, 9);
      assert.equal((await old.item("1").read()).resource.v, 3);
      assert.equal((await old.items.readAll().fetchAll()).resources.length, 2);
      assert.equal((await old.item("1").delete()).statusCode, 204);
      assert.equal((await old.item("1").read()).statusCode, 404);
    });

    it("finds items under hierarchical keys", async () => {
      const { container: tenants } = await database.containers.create({
        id: unique("c"),
        partitionKey: { paths: ["/tenant", "/user"], kind: PartitionKeyKind.MultiHash, version: PartitionKeyDefinitionVersion.V2 },
      });
      await tenants.items.create({ id: "1", tenant: "t", user: 1, v: 1 });
      await tenants.items.create({ id: "1", tenant: "t", user: 2, v: 2 });
      assert.equal((await tenants.item("1", ["t", 2]).read()).resource.v, 2);
      assert.equal((await tenants.item("1", ["t", 3]).read()).statusCode, 404);
    });

    it("finds items under nested and quoted paths", async () => {
      const nested = await make({}, ["/address/city"]);
      await nested.items.create({ id: "1", address: { city: "Köln" } });
      assert.equal((await nested.item("1", "Köln").read()).statusCode, 200);
      const quoted = await make({}, ['/"department name"']);
      await quoted.items.create({ id: "1", "department name": "x" });
      assert.equal((await quoted.item("1", "x").read()).statusCode, 200);
    });

    for (const id of ["a b", "100%", "a+b", "ünï", "数据", "🙂", "a:b@c;d,e", "(a)[b]{c}", "x".repeat(255)]) {
      it(`keeps the id ${id.slice(0, 12)}`, async () => {
        await container.items.create({ id, pk: "a", v: 1 });
        assert.equal((await container.item(id, "a").read()).resource.id, id);
        assert.equal((await container.item(id, "a").replace({ id, pk: "a", v: 2 })).resource.v, 2);
        assert.equal((await container.item(id, "a").delete()).statusCode, 204);
      });
    }

    it("keeps numbers to the bit", async () => {
      const numbers = [0.1, 1 / 3, 1e21, 5e-324, Number.MAX_VALUE, Number.MAX_SAFE_INTEGER, -1e-7, 123456789.12345679];
      await container.items.create({ id: "1", pk: "a", numbers });
      assert.deepEqual((await container.item("1", "a").read()).resource.numbers, numbers);
    });

    it("refuses items that are too large", async () => {
      const large = { id: "1", pk: "a", t: "x".repeat(2 * 1024 * 1024) };
      assert.equal((await statusOf(() => container.items.create(large)))[0], 413);
      await container.items.create({ ...large, t: "x".repeat(2 * 1024 * 1024 - 4096) });
    });

    it("lets items expire", async () => {
      const mortal = await make({ defaultTtl: 1 });
      await mortal.items.create({ id: "1", pk: "a" });
      await mortal.items.create({ id: "2", pk: "a", ttl: -1 });
      await eventually(async () => (await mortal.item("1", "a").read()).statusCode === 404);
      assert.equal((await mortal.item("2", "a").read()).statusCode, 200);
    });

    it("holds unique keys", async () => {
      const strict = await make({ uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/mail"] }] } });
      await strict.items.create({ id: "1", pk: "a", mail: "x" });
      assert.deepEqual(await statusOf(() => strict.items.create({ id: "2", pk: "a", mail: "x" })), [409, 0]);
      await strict.items.create({ id: "2", pk: "b", mail: "x" });
      await strict.item("1", "a").delete();
      await strict.items.create({ id: "2", pk: "a", mail: "x" });
    });

    it("deletes all items of a key", async () => {
      for (let number = 0; number < 10; number++) await container.items.create({ id: `${number}`, pk: "full" });
      await container.items.create({ id: "other", pk: "other" });
      await container.deleteAllItemsForPartitionKey("full");
      const left = await all(server, scheme, container);
      assert.deepEqual(left.map((item) => item.id), ["other"]);
    });
  });
}
