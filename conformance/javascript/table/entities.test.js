// Entities one by one: insert, read, merge, replace, upsert, delete, conditions, keys, and values of every type.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { odata } from "@azure/data-tables";
import { DATA, SCHEMES, Service, all, answer, keys, plain, refused, toClient, unique } from "../support/table.js";

const service = new Service();
before(() => service.start());
after(() => service.dispose());

const ENTITY = { partitionKey: "a", rowKey: "b", kept: 1, changed: "old" };
const CHANGE = { partitionKey: "a", rowKey: "b", changed: "new", added: true };
const ABSENT = "W/\"datetime'2020-01-01T00%3A00%3A00.0000000Z'\"";

for (const scheme of SCHEMES) {
  describe(`entities over ${scheme}`, () => {
    let table;
    beforeEach(async () => {
      table = service.table(scheme, unique());
      await table.createTable();
    });
    afterEach(() => table.deleteTable());

    const read = async () => plain(await table.getEntity("a", "b"));

    it("inserts, reads and deletes", async () => {
      const { etag } = await table.createEntity(ENTITY);
      assert.match(etag, /^W\/"datetime'/);
      const found = await table.getEntity("a", "b");
      assert.deepEqual(plain(found), ENTITY);
      assert.equal(found.etag, etag);
      assert.ok(Math.abs(Date.parse(found.timestamp) - Date.now()) < 300_000);
      await table.deleteEntity("a", "b");
      assert.deepEqual(await refused(() => table.getEntity("a", "b")), [404, "ResourceNotFound"]);
      assert.deepEqual(await refused(() => table.deleteEntity("a", "b")), [404, "ResourceNotFound"]);
    });

    it("refuses a second insert and changes nothing", async () => {
      await table.createEntity(ENTITY);
      const before = await table.getEntity("a", "b");
      assert.deepEqual(await refused(() => table.createEntity(CHANGE)), [409, "EntityAlreadyExists"]);
      assert.deepEqual(await table.getEntity("a", "b"), before);
    });

    it("selects", async () => {
      await table.createEntity(ENTITY);
      assert.deepEqual(plain(await table.getEntity("a", "b", { queryOptions: { select: ["kept", "rowKey"] } })), { rowKey: "b", kept: 1 });
    });

    it("merges and replaces", async () => {
      await table.createEntity(ENTITY);
      await table.updateEntity(CHANGE, "Merge");
      assert.deepEqual(await read(), { ...ENTITY, ...CHANGE });
      await table.updateEntity({ partitionKey: "a", rowKey: "b", only: 2 }, "Replace");
      assert.deepEqual(await read(), { partitionKey: "a", rowKey: "b", only: 2 });
    });

    for (const mode of ["Merge", "Replace"]) {
      it(`refuses to ${mode} what is absent`, async () => {
        assert.deepEqual(await refused(() => table.updateEntity(CHANGE, mode)), [404, "ResourceNotFound"]);
        assert.deepEqual(await refused(() => table.updateEntity(CHANGE, mode, { etag: ABSENT })), [404, "ResourceNotFound"]);
        assert.deepEqual(await all(table.listEntities()), []);
      });

      it(`upserts with ${mode}`, async () => {
        const first = await table.upsertEntity(ENTITY, mode);
        assert.deepEqual(await read(), ENTITY);
        const second = await table.upsertEntity(CHANGE, mode);
        assert.notEqual(first.etag, second.etag);
        assert.deepEqual(await read(), mode === "Merge" ? { ...ENTITY, ...CHANGE } : CHANGE);
      });

      it(`checks the tag of a ${mode} and of a delete`, async () => {
        const { etag: old } = await table.createEntity(ENTITY);
        const { etag } = await table.updateEntity(CHANGE, mode, { etag: old });
        assert.notEqual(etag, old);
        const stale = [412, "UpdateConditionNotSatisfied"];
        assert.deepEqual(await refused(() => table.updateEntity(ENTITY, mode, { etag: old })), stale);
        assert.deepEqual(await refused(() => table.deleteEntity("a", "b", { etag: old })), stale);
        assert.equal((await table.getEntity("a", "b")).etag, etag);
        await table.deleteEntity("a", "b", { etag });
        assert.deepEqual(await all(table.listEntities()), []);
      });
    }

    it("stores no null and no undefined", async () => {
      await table.createEntity({ ...ENTITY, nothing: undefined, none: null });
      assert.deepEqual(await read(), ENTITY);
    });

    it("gives every write its own tag", async () => {
      const tags = new Set();
      for (let index = 0; index < 30; index++) tags.add((await table.upsertEntity(ENTITY)).etag);
      assert.equal(tags.size, 30);
    });

    for (const [partitionKey, rowKey] of DATA.keys) {
      it(`takes the keys ${JSON.stringify([partitionKey, rowKey])}`, async () => {
        const entity = { partitionKey, rowKey, v: 1 };
        await table.createEntity(entity);
        assert.deepEqual(plain(await table.getEntity(partitionKey, rowKey)), entity);
        const filter = odata`PartitionKey eq ${partitionKey} and RowKey eq ${rowKey}`;
        assert.deepEqual(keys(await all(table.listEntities({ queryOptions: { filter } }))), [[partitionKey, rowKey]]);
        await table.updateEntity({ ...entity, v: 2 }, "Replace");
        await table.upsertEntity({ partitionKey, rowKey, w: 3 });
        await table.submitTransaction([["update", { partitionKey, rowKey, x: 4 }, "Merge"]]);
        assert.deepEqual(plain(await table.getEntity(partitionKey, rowKey)), { ...entity, v: 2, w: 3, x: 4 });
        await table.deleteEntity(partitionKey, rowKey);
        assert.deepEqual(await all(table.listEntities()), []);
      });
    }

    it("refuses forbidden keys", async () => {
      for (const key of ["a/b", "a\\b", "a#b", "a?b", "a\tb"]) {
        const refusal = [400, answer("OutOfRangeInput", "InvalidInput")];
        assert.deepEqual(await refused(() => table.createEntity({ partitionKey: key, rowKey: "r" })), refusal, key);
        assert.deepEqual(await refused(() => table.createEntity({ partitionKey: "p", rowKey: key })), refusal, key);
      }
      assert.deepEqual(await all(table.listEntities()), []);
    });

    for (const value of DATA.values) {
      const [type, text] = value;
      it(`stores ${type} ${JSON.stringify(text)}`, async () => {
        await table.createEntity({ partitionKey: "a", rowKey: "b", v: toClient(value) });
        checkValue(type, text, (await table.getEntity("a", "b", { disableTypeConversion: true })).v);
        const [listed] = await all(table.listEntities({ disableTypeConversion: true }));
        checkValue(type, text, listed.v);
        // What was read can be written as it is.
        await table.updateEntity({ partitionKey: "a", rowKey: "b", v: listed.v }, "Replace");
        checkValue(type, text, (await table.getEntity("a", "b", { disableTypeConversion: true })).v);
      });
    }

    it("converts to the types of the language", async () => {
      const when = new Date("2024-02-03T04:05:06.789Z");
      const bytes = new Uint8Array([0, 1, 255]);
      await table.createEntity({ partitionKey: "a", rowKey: "b", when, bytes, large: 9007199254740993n, small: 3, real: 3.5, flag: true, text: "x" });
      const found = await table.getEntity("a", "b");
      assert.deepEqual(found.when, when);
      assert.deepEqual([...found.bytes], [0, 1, 255]);
      assert.equal(found.large, 9007199254740993n);
      assert.deepEqual([found.small, found.real, found.flag, found.text], [3, 3.5, true, "x"]);
    });
  });
}

/** The client tells a whole double from a whole number only where the service names the type. */
function checkValue(type, text, found) {
  switch (type) {
    case "Double":
      if (Object.is(Number(text), -0) && answer(false, true)) return;
      assert.ok(["Double", "Int32"].includes(found.type), found.type);
      if (!Number.isSafeInteger(Number(text))) assert.equal(found.type, "Double");
      // The client's text of minus zero has no sign.
      return assert.equal(Number(found.value), Object.is(Number(text), -0) ? 0 : Number(text));
    case "DateTime":
      return assert.deepEqual([found.type, ticks(found.value)], [type, ticks(text)]);
    default:
      return assert.deepEqual([found.type, String(found.value)], [type, text]);
  }
}

/** A date's text with all seven digits of its second. */
function ticks(text) {
  const [, second, fraction = ""] = /^(.{19})(?:\.(\d{1,7}))?Z$/.exec(text);
  return `${second}.${fraction.padEnd(7, "0")}Z`;
}
