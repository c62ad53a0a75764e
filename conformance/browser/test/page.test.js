// The SDK in a page of an origin that the server lets in, and in one of an origin that it does not.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, beforeEach, describe, it } from "node:test";
import { Browser, Site } from "../support/browser.js";
import { KEY, Server } from "../support/server.js";

const site = new Site();
const stranger = new Site();
const browser = new Browser();
let server, closed, page;

before(async () => {
  await Promise.all([site.start(), stranger.start()]);
  server = await new Server("--cors", site.origin).start();
  closed = await new Server().start();
  await browser.start([await server.certificateHash()]);
  page = await browser.open(site);
});
after(async () => {
  await browser.stop();
  site.stop();
  stranger.stop();
  await Promise.all([server.dispose(), closed.dispose()]);
});

/** The status that a page gets from a server, or the name of the error. */
const fetched = (page, server, scheme) =>
  page.evaluate((endpoint) => fetch(endpoint).then((answer) => answer.status, (error) => error.name), server.endpoint(scheme));

for (const scheme of ["http", "https"]) {
  describe(`a page over ${scheme}`, () => {
    const names = { database: `db-${randomUUID()}` };

    before(async () => {
      // One client for all tests of a scheme, as a page keeps one.
      await page.evaluate(
        async ([endpoint, key, database]) => {
          globalThis.client = new CosmosClient({ endpoint, key });
          globalThis.database = (await client.databases.create({ id: database })).database;
        },
        [server.endpoint(scheme), KEY, names.database],
      );
    });
    beforeEach(async () => {
      await page.evaluate(async (name) => {
        const made = await database.containers.create({ id: name, partitionKey: { paths: ["/pk"], version: 2 }, throughput: 12000 });
        globalThis.container = made.container;
      }, `c-${randomUUID()}`);
    });
    after(() => page.evaluate(async () => void (await database.delete())));

    it("creates, reads, lists, replaces and deletes containers", async () => {
      const seen = await page.evaluate(async () => {
        const { resource } = await container.read();
        const listed = (await database.containers.readAll().fetchAll()).resources.map((found) => found.id);
        const replaced = await container.replace({ id: resource.id, partitionKey: resource.partitionKey, defaultTtl: 60 });
        const { statusCode } = await container.delete();
        return { isListed: listed.includes(resource.id), ttl: replaced.resource.defaultTtl, statusCode, gone: await statusOf(() => container.read()) };
      });
      assert.deepEqual(seen, { isListed: true, ttl: 60, statusCode: 204, gone: [404, 0] });
    });

    it("creates, reads, replaces, upserts and deletes items", async () => {
      const seen = await page.evaluate(async () => {
        const created = await container.items.create({ id: "1", pk: "a", v: 1 });
        const item = container.item("1", "a");
        const read = await item.read();
        const replaced = await item.replace({ id: "1", pk: "a", v: 2 });
        const upserted = await container.items.upsert({ id: "1", pk: "a", v: 3 });
        const deleted = await item.delete();
        const codes = [created, read, replaced, upserted, deleted].map((answer) => answer.statusCode);
        return { codes, item: plain(upserted.resource), isSame: read.resource._rid === created.resource._rid, after: (await item.read()).statusCode };
      });
      assert.deepEqual(seen, { codes: [201, 200, 200, 200, 204], item: { id: "1", pk: "a", v: 3 }, isSame: true, after: 404 });
    });

    it("sees the headers that applications read", async () => {
      const seen = await page.evaluate(async () => {
        const { requestCharge, activityId, etag, headers, resource } = await container.items.create({ id: "1", pk: "a" });
        return { requestCharge, activityId, isTagged: etag === resource._etag, session: headers["x-ms-session-token"] };
      });
      assert.ok(seen.requestCharge > 0 && seen.isTagged);
      assert.match(seen.activityId, /^[0-9a-f-]{36}$/);
      assert.match(seen.session, /^\d+:-?\d+#\d+/);
    });

    it("is told what is wrong, with status and substatus", async () => {
      const seen = await page.evaluate(async () => {
        const { etag: old } = await container.items.create({ id: "1", pk: "a" });
        await container.items.upsert({ id: "1", pk: "a", v: 2 });
        const stale = { accessCondition: { type: "IfMatch", condition: old } };
        return {
          conflict: await statusOf(() => container.items.create({ id: "1", pk: "a" })),
          stale: await statusOf(() => container.item("1", "a").replace({ id: "1", pk: "a" }, stale)),
          missing: await statusOf(() => container.item("2", "a").delete()),
          large: await statusOf(() => container.items.create({ id: "3", pk: "a", t: "x".repeat(2 * 1024 * 1024) })),
        };
      });
      assert.deepEqual([seen.conflict, seen.stale, seen.missing, seen.large], [[409, 0], [412, 0], [404, 0], [413, 0]]);
    });

    it("answers an unchanged read with 304", async () => {
      const status = await page.evaluate(async () => {
        const { etag } = await container.items.create({ id: "1", pk: "a" });
        return (await container.item("1", "a").read({ accessCondition: { type: "IfNoneMatch", condition: etag } })).statusCode;
      });
      assert.equal(status, 304);
    });

    it("patches", async () => {
      const item = await page.evaluate(async () => {
        await container.items.create({ id: "1", pk: "a", n: 1, l: [1] });
        const operations = [{ op: "incr", path: "/n", value: 2 }, { op: "add", path: "/l/-", value: 2 }, { op: "set", path: "/s", value: null }];
        return plain((await container.item("1", "a").patch(operations)).resource);
      });
      assert.deepEqual(item, { id: "1", pk: "a", n: 3, l: [1, 2], s: null });
    });

    it("does all of a batch or nothing", async () => {
      const seen = await page.evaluate(async () => {
        const create = (id) => ({ operationType: "Create", resourceBody: { id, pk: "a" } });
        const good = await container.items.batch([create("1"), create("2"), { operationType: "Delete", id: "1" }], "a");
        const bad = await container.items.batch([create("3"), create("2")], "a");
        const left = (await container.items.readAll().fetchAll()).resources.map((item) => item.id);
        return [good.code, good.result.map((step) => step.statusCode), bad.code, bad.result.map((step) => step.statusCode), left];
      });
      assert.deepEqual(seen, [200, [201, 201, 204], 207, [424, 409], ["2"]]);
    });

    it("does many in bulk and lists them in pages", async () => {
      const seen = await page.evaluate(async () => {
        const operations = Array.from({ length: 150 }, (_, number) => ({
          operationType: BulkOperationType.Create,
          partitionKey: `k${number % 5}`,
          resourceBody: { id: `${number}`, pk: `k${number % 5}` },
        }));
        const results = await container.items.executeBulkOperations(operations);
        const created = results.filter((result) => Number(result.response?.statusCode) === 201).length;
        const pages = container.items.readAll({ maxItemCount: 40 });
        const ids = [];
        let isBounded = true;
        while (pages.hasMoreResults()) {
          const page = (await pages.fetchNext()).resources ?? [];
          isBounded &&= page.length <= 40;
          ids.push(...page.map((item) => item.id));
        }
        return { created, isBounded, count: ids.length, distinct: new Set(ids).size };
      });
      assert.deepEqual(seen, { created: 150, isBounded: true, count: 150, distinct: 150 });
    });

    it("finds items under keys of every type", async () => {
      const statuses = await page.evaluate(async () => {
        const found = [];
        for (const pk of ["ünï 🙂", "", 0, -1.5, true, null]) {
          await container.items.create({ id: "1", pk });
          found.push((await container.item("1", pk).read()).statusCode);
        }
        await container.items.create({ id: "1" });
        found.push((await container.item("1", undefined).read()).statusCode);
        const partitionKey = { paths: ["/t", "/u"], kind: PartitionKeyKind.MultiHash, version: PartitionKeyDefinitionVersion.V2 };
        const { container: tenants } = await database.containers.create({ id: `${container.id}-t`, partitionKey });
        await tenants.items.create({ id: "1", t: "x", u: 2 });
        found.push((await tenants.item("1", ["x", 2]).read()).statusCode);
        return found;
      });
      assert.deepEqual(statuses, Array(8).fill(200));
    });

    it("deletes all items of a key", async () => {
      const left = await page.evaluate(async () => {
        for (const id of ["1", "2"]) await container.items.create({ id, pk: "full" });
        await container.items.create({ id: "other", pk: "other" });
        await container.deleteAllItemsForPartitionKey("full");
        return (await container.items.readAll().fetchAll()).resources.map((item) => item.id);
      });
      assert.deepEqual(left, ["other"]);
    });

    it("can read why a wrong key is refused", async () => {
      const seen = await page.evaluate(async (endpoint) => {
        const wrong = new CosmosClient({ endpoint, key: btoa("\0".repeat(64)) });
        return statusOf(() => wrong.databases.readAll().fetchAll());
      }, server.endpoint(scheme));
      assert.deepEqual(seen, [401, 0]);
    });

    it("is kept out when its origin is not listed", async () => {
      const strange = await browser.open(stranger);
      const [listed, unlisted] = [await fetched(page, server, scheme), await fetched(strange, server, scheme)];
      await strange.close();
      // The one hears that it has no credential, the other hears nothing.
      assert.deepEqual([listed, unlisted], [401, "TypeError"]);
    });
  });
}

describe("a page", () => {
  it("is kept out where nobody is let in", async () => {
    assert.equal(await fetched(page, closed, "http"), "TypeError");
  });

  it("goes on after a restart of the server", async () => {
    const name = `db-${randomUUID()}`;
    await page.evaluate(
      async ([endpoint, key, name]) => {
        globalThis.client = new CosmosClient({ endpoint, key });
        globalThis.database = (await client.databases.create({ id: name })).database;
        globalThis.container = (await database.containers.create({ id: "c", partitionKey: { paths: ["/pk"] } })).container;
        for (let number = 0; number < 10; number++) await container.items.create({ id: `${number}`, pk: "a" });
      },
      [server.endpoint("http"), KEY, name],
    );
    await server.restart();
    const ids = await page.evaluate(async () => {
      await container.items.create({ id: "new", pk: "a" });
      return (await container.items.readAll().fetchAll()).resources.map((item) => item.id);
    });
    assert.deepEqual(ids, ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "new"]);
  });
});
