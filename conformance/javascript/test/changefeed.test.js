// The change feed: the pull model with every start, scope and mode, and the older iterator.

import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import {
  ChangeFeedMode,
  ChangeFeedPolicy,
  ChangeFeedRetentionTimeSpan,
  ChangeFeedStartFrom,
  PartitionKeyKind,
  StatusCodes,
} from "@azure/cosmos";
import { SCHEMES, Server, eventually, statusOf, unique } from "../support/server.js";

const server = new Server();
before(() => server.start());
after(() => server.dispose());

const PAGES_MAX = 1000;

/** Reads until there is nothing new: the rows, the sizes of the pages and the continuation. */
async function drained(container, options) {
  const iterator = container.items.getChangeFeedIterator(options);
  const [rows, sizes] = [[], []];
  for (let page = 0; page < PAGES_MAX; page++) {
    const response = await iterator.readNext();
    if (response.statusCode === StatusCodes.NotModified) {
      return { rows, sizes, token: response.continuationToken, ids: rows.map((row) => row.id) };
    }
    assert.equal(response.statusCode, 200);
    assert.equal(response.count, response.result.length);
    assert.ok(response.requestCharge > 0 && response.sessionToken);
    rows.push(...response.result);
    sizes.push(response.count);
  }
  throw new Error("the feed does not end");
}

const fromBeginning = (scope) => ChangeFeedStartFrom.Beginning(scope);
const continuing = (token, options = {}) => ({ changeFeedStartFrom: ChangeFeedStartFrom.Continuation(token), ...options });
const operations = (rows) => rows.map((row) => [row.metadata.operationType, (row.current ?? row.metadata).id]);

for (const scheme of SCHEMES) {
  describe(`change feed over ${scheme}`, () => {
    let client, database, container;
    before(async () => {
      client = server.client(scheme);
      ({ database } = await client.databases.create({ id: unique("db") }));
    });
    after(async () => {
      await database.delete();
      client.dispose();
    });
    const make = async (options = {}) => {
      const key = { paths: ["/pk"], version: 2 };
      return (await database.containers.create({ id: unique("c"), partitionKey: key, ...options })).container;
    };
    beforeEach(async () => {
      container = await make();
    });
    const fill = async (count, keys) => {
      for (let number = 0; number < count; number++) {
        await container.items.create({ id: `${number}`, pk: `k${number % keys}` });
      }
    };

    it("shows the last version of each item in the order of writes", async () => {
      await fill(4, 1);
      await container.items.upsert({ id: "1", pk: "k0", n: 2 });
      await container.item("2", "k0").delete();
      const { rows, ids } = await drained(container, { changeFeedStartFrom: fromBeginning() });
      assert.deepEqual(ids, ["0", "3", "1"]);
      assert.equal(rows[2].n, 2);
      assert.ok(rows[0]._lsn < rows[1]._lsn && rows[1]._lsn < rows[2]._lsn);
    });

    it("continues where it was, with pages of any size", async () => {
      await fill(10, 3);
      for (const maxItemCount of [1, 4, 100]) {
        const { ids, sizes, token } = await drained(container, { maxItemCount, changeFeedStartFrom: fromBeginning() });
        assert.deepEqual(ids, [...Array(10).keys()].map(String));
        assert.ok(sizes.every((size) => size <= maxItemCount));
        assert.deepEqual((await drained(container, continuing(token))).ids, []);
        await container.items.upsert({ id: "x", pk: "k0" });
        assert.deepEqual((await drained(container, continuing(token))).ids, ["x"]);
        await container.item("x", "k0").delete();
      }
    });

    it("starts now, by default and by name", async () => {
      await fill(2, 1);
      for (const options of [{}, { changeFeedStartFrom: ChangeFeedStartFrom.Now() }]) {
        const { ids, token } = await drained(container, options);
        assert.deepEqual(ids, []);
        await container.items.upsert({ id: "0", pk: "k0" });
        assert.deepEqual((await drained(container, continuing(token))).ids, ["0"]);
      }
    });

    it("starts at a time", async () => {
      await fill(1, 1);
      const { resource } = await container.item("0", "k0").read();
      const later = new Date((resource._ts + 1) * 1000);
      await eventually(() => Date.now() > later.getTime() + 100);
      await container.items.create({ id: "1", pk: "k0" });
      const since = (time) => drained(container, { changeFeedStartFrom: ChangeFeedStartFrom.Time(time) });
      assert.deepEqual((await since(later)).ids, ["1"]);
      assert.deepEqual((await since(new Date(resource._ts * 1000))).ids, ["0", "1"]);
    });

    it("divides a wide container by key and feed range", async () => {
      const { container: wide } = await database.containers.create(
        { id: unique("c"), partitionKey: { paths: ["/pk"], version: 2 } },
        { offerThroughput: 24000 },
      );
      container = wide;
      await fill(40, 40);
      const { ids, token } = await drained(container, { changeFeedStartFrom: fromBeginning() });
      assert.deepEqual(ids.map(Number).sort((a, b) => a - b), [...Array(40).keys()]);
      const ranges = await container.getFeedRanges();
      assert.equal(ranges.length, 4);
      const parts = [];
      for (const range of ranges) {
        parts.push(...(await drained(container, { changeFeedStartFrom: fromBeginning(range) })).ids);
      }
      assert.deepEqual(parts.map(Number).sort((a, b) => a - b), [...Array(40).keys()]);
      const ofKey = await drained(container, { changeFeedStartFrom: fromBeginning("k7") });
      assert.deepEqual(ofKey.ids, ["7"]);
      await container.items.create({ id: "y", pk: "k7" });
      await container.items.create({ id: "z", pk: "k8" });
      assert.deepEqual((await drained(container, continuing(ofKey.token))).ids, ["y"]);
      assert.deepEqual((await drained(container, continuing(token))).ids.sort(), ["y", "z"]);
    });

    it("knows hierarchical keys and their prefixes", async () => {
      container = await make({ partitionKey: { paths: ["/tenant", "/user"], kind: PartitionKeyKind.MultiHash, version: 2 } });
      for (let number = 0; number < 8; number++) {
        await container.items.create({ id: `${number}`, tenant: `t${number % 2}`, user: `u${number % 4}` });
      }
      assert.deepEqual((await drained(container, { changeFeedStartFrom: fromBeginning(["t1", "u3"]) })).ids, ["3", "7"]);
      assert.deepEqual((await drained(container, { changeFeedStartFrom: fromBeginning(["t1"]) })).ids, ["1", "3", "5", "7"]);
    });

    it("shows all versions and deletes", async () => {
      const changeFeedPolicy = new ChangeFeedPolicy(ChangeFeedRetentionTimeSpan.fromMinutes(5));
      container = await make({ changeFeedPolicy });
      const changeFeedMode = ChangeFeedMode.AllVersionsAndDeletes;
      const options = { changeFeedMode, changeFeedStartFrom: ChangeFeedStartFrom.Now() };
      const { token } = await drained(container, options);
      await container.items.create({ id: "a", pk: "k", n: 1 });
      await container.items.upsert({ id: "a", pk: "k", n: 2 });
      await container.item("a", "k").delete();
      const { rows } = await drained(container, continuing(token, { changeFeedMode }));
      assert.deepEqual(operations(rows), [["create", "a"], ["replace", "a"], ["delete", "a"]]);
      assert.equal(rows[1].previous.n, 1);
      assert.equal(rows[1].metadata.previousImageLSN, rows[0].metadata.lsn);
      assert.deepEqual(rows[2].metadata.partitionKey, { pk: "k" });
      assert.equal(rows[2].metadata.timeToLiveExpired, false);
    });

    it("refuses versions of a container without a retention", async () => {
      const options = { changeFeedMode: ChangeFeedMode.AllVersionsAndDeletes };
      assert.equal((await statusOf(() => drained(container, options)))[0], 400);
    });

    it("serves the older iterator", async () => {
      await fill(6, 2);
      const iterator = container.items.changeFeed("k1", { startFromBeginning: true, maxItemCount: 2 });
      const ids = [];
      let continuation;
      for (let page = 0; page < PAGES_MAX && iterator.hasMoreResults; page++) {
        const response = await iterator.fetchNext();
        ids.push(...(response.result ?? []).map((item) => item.id));
        continuation = response.continuation;
      }
      assert.deepEqual(ids, ["1", "3", "5"]);
      await container.items.create({ id: "6", pk: "k1" });
      const rest = await container.items.changeFeed("k1", { continuation }).fetchNext();
      assert.deepEqual(rest.result.map((item) => item.id), ["6"]);
    });
  });
}
