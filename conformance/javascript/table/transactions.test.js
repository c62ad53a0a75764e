// Group transactions: all or nothing.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { TableTransaction } from "@azure/data-tables";
import { SCHEMES, Service, all, answer, plain, refused, unique } from "../support/table.js";

const service = new Service();
before(() => service.start());
after(() => service.dispose());

const row = (rowKey, rest = {}) => ({ partitionKey: "p", rowKey, ...rest });

for (const scheme of SCHEMES) {
  describe(`transactions over ${scheme}`, () => {
    let table;
    beforeEach(async () => {
      table = service.table(scheme, unique());
      await table.createTable();
    });
    afterEach(() => table.deleteTable());

    const found = async () => (await all(table.listEntities())).map(plain);

    it("does every operation", async () => {
      for (const name of ["merged", "replaced", "deleted", "upserted"]) await table.createEntity(row(name, { old: 1 }));
      const transaction = new TableTransaction();
      transaction.createEntity(row("created", { v: 2 }));
      transaction.updateEntity(row("merged", { v: 2 }), "Merge");
      transaction.updateEntity(row("replaced", { v: 2 }), "Replace");
      transaction.upsertEntity(row("upserted", { v: 2 }), "Merge");
      transaction.upsertEntity(row("inserted", { v: 2 }), "Replace");
      transaction.deleteEntity("p", "deleted");
      const { status, subResponses, getResponseForEntity } = await table.submitTransaction(transaction.actions);
      assert.equal(status, 202);
      assert.equal(subResponses.length, 6);
      assert.ok(subResponses.every((one) => one.status >= 200 && one.status < 300));
      assert.equal(getResponseForEntity("created").etag, (await table.getEntity("p", "created")).etag);
      assert.equal(subResponses[1].etag, (await table.getEntity("p", "merged")).etag);
      assert.deepEqual(await found(), [
        row("created", { v: 2 }),
        row("inserted", { v: 2 }),
        row("merged", { old: 1, v: 2 }),
        row("replaced", { v: 2 }),
        row("upserted", { old: 1, v: 2 }),
      ]);
    });

    it("writes nothing if one operation fails, and names it", async () => {
      await table.createEntity(row("taken", { old: 1 }));
      const actions = [["create", row("a")], ["upsert", row("b"), "Merge"], ["create", row("taken", { v: 2 })], ["create", row("c")]];
      const error = await table.submitTransaction(actions).catch((raised) => raised);
      assert.equal(error.statusCode, 409);
      assert.equal(error.code, "EntityAlreadyExists");
      assert.match(JSON.stringify(error.details ?? {}) + error.message, /\b2:/);
      assert.deepEqual(await found(), [row("taken", { old: 1 })]);
    });

    it("checks tags and presence", async () => {
      const { etag } = await table.createEntity(row("a", { v: 1 }));
      await table.submitTransaction([["update", row("a", { v: 2 }), "Replace", { etag }], ["create", row("b")]]);
      assert.equal((await refused(() => table.submitTransaction([["create", row("c")], ["update", row("a"), "Merge", { etag }]])))[0], 412);
      assert.equal((await refused(() => table.submitTransaction([["create", row("c")], ["update", row("x"), "Merge"]])))[0], 404);
      assert.equal((await refused(() => table.submitTransaction([["create", row("c")], ["delete", row("x")]])))[0], 404);
      assert.deepEqual(await found(), [row("a", { v: 2 }), row("b")]);
    });

    it("refuses two partition keys", async () => {
      // The client refuses them itself.
      await assert.rejects(() => table.submitTransaction([["create", row("a")], ["create", { partitionKey: "q", rowKey: "b" }]]));
      assert.deepEqual(await found(), []);
    });

    it("refuses a row twice", async () => {
      const refusal = await refused(() => table.submitTransaction([["upsert", row("a", { v: 1 })], ["upsert", row("a", { v: 2 })]]));
      assert.deepEqual(refusal, [400, "InvalidDuplicateRow"]);
      assert.deepEqual(await found(), []);
    });

    it("takes a hundred operations and no more", async () => {
      const rows = Array.from({ length: 100 }, (_, index) => ["create", row(String(index).padStart(3, "0"), { text: "über\r\n--x" })]);
      assert.equal((await table.submitTransaction(rows)).subResponses.length, 100);
      const more = Array.from({ length: 101 }, (_, index) => ["upsert", row(`n${index}`)]);
      const call = () => table.submitTransaction(more);
      if (answer(true, false)) assert.equal((await refused(call))[0], 400);
      else await call().catch(() => {});
      const left = await found();
      assert.equal(left.length, 100);
      assert.equal(left[0].text, "über\r\n--x");
    });
  });
}
