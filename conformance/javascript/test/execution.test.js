// Stored procedures, triggers and user-defined functions that are executed: patterns of applications.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { SCHEMES, Server, statusOf, unique } from "../support/server.js";

const server = new Server();
before(() => server.start());
after(() => server.dispose());

// A time of scripts in which so many items can neither be imported nor deleted, and how many are not to be deleted.
const SHORT_MS = 200;
const ITEMS = 20_000;
const KEPT = 100;
// Bounds a test whose procedure gets nowhere.
const CALLS_MAX = 1_000;

const text = (name) => readFileSync(new URL(`../../scripts/${name}.js`, import.meta.url), "utf8");

for (const scheme of SCHEMES) {
  describe(`scripts that are executed, over ${scheme}`, () => {
    let client, database, container;
    before(async () => {
      client = server.client(scheme);
      ({ database } = await client.databases.create({ id: unique("db") }));
    });
    after(async () => {
      await database.delete();
      client.dispose();
    });

    const fresh = async () => {
      ({ container } = await database.containers.create({ id: unique("c"), partitionKey: "/pk" }));
    };
    const procedure = (name) => container.scripts.storedProcedures.create({ id: name, body: text(name) });
    const trigger = (name, triggerType, triggerOperation) =>
      container.scripts.triggers.create({ id: name, body: text(name), triggerType, triggerOperation });
    const run = async (name, ...parameters) =>
      (await container.scripts.storedProcedure(name).execute("k", parameters)).resource;
    const ids = async () => (await container.items.readAll().fetchAll()).resources.map((item) => item.id).sort();

    it("inserts a book and counts it in its author", async () => {
      await fresh();
      await procedure("insertBook");
      await container.items.create({ id: "a", pk: "k", type: "author" });
      const book = { id: "b1", pk: "k", type: "book", authorId: "a" };
      assert.deepEqual(await run("insertBook", book), { book: "b1", countOfBooks: 1 });
      assert.deepEqual(await statusOf(() => run("insertBook", { ...book, id: "b2", authorId: "nobody" })), [400, 404]);
      assert.deepEqual(await ids(), ["a", "b1"]);
      const one = container.scripts.storedProcedure("insertBook");
      const logged = await one.execute("k", [{ ...book, id: "b3" }], { enableScriptLogging: true });
      assert.equal(logged.statusCode, 200);
      assert.ok(logged.requestCharge > 10);
      const log = logged.headers["x-ms-documentdb-script-log-results"];
      assert.match(decodeURIComponent(log), /author a/);
    });

    it("runs triggers with creates, replaces and deletes", async () => {
      await fresh();
      await trigger("countBook", "Post", "Create");
      await trigger("checkAuthor", "Pre", "All");
      await container.items.create({ id: "a", pk: "k", type: "author" });
      const options = { preTriggerInclude: "checkAuthor", postTriggerInclude: "countBook" };
      const { resource } = await container.items.create({ id: "b1", pk: "k", authorId: "a" }, options);
      assert.equal(resource.checked, true);
      assert.equal((await container.item("a", "k").read()).resource.countOfBooks, 1);
      const dangling = { id: "b2", pk: "k", authorId: "nobody" };
      assert.deepEqual(await statusOf(() => container.items.create(dangling, options)), [400, 409]);
      assert.deepEqual(await ids(), ["a", "b1"]);
      const wrong = { postTriggerInclude: "countBook" };
      assert.deepEqual(await statusOf(() => container.item("b1", "k").replace(resource, wrong)), [400, 0]);
      const { resource: again } = await container.items.upsert({ id: "b1", pk: "k", authorId: "a" }, { preTriggerInclude: "checkAuthor" });
      assert.equal(again.checked, true);
    });

    it("keeps the latest state across readings", async () => {
      await fresh();
      await procedure("setLatestStateAcrossReadings");
      const states = [];
      for (const [time, value] of [[5, "e"], [3, "c"], [9, "i"]]) {
        const reading = { id: `r${time}`, pk: "k", deviceId: "d", type: "reading", time, value };
        states.push(await run("setLatestStateAcrossReadings", reading));
      }
      assert.deepEqual(states, ["e", "e", "i"]);
    });

    it("imports, upserts and deletes in bulk, and throws without a trace", async () => {
      await fresh();
      for (const name of ["bulkImport", "bulkDelete", "throwAfterTwo"]) await procedure(name);
      const items = Array.from({ length: 30 }, (_, n) => ({ id: `i${n}`, pk: "k", n }));
      assert.equal(await run("bulkImport", items, false), 30);
      assert.deepEqual(await statusOf(() => run("bulkImport", items.slice(29), false)), [400, 409]);
      const changed = Array.from({ length: 20 }, (_, n) => ({ id: `i${n + 20}`, pk: "k", n: n + 1020 }));
      assert.equal(await run("bulkImport", changed, true), 20);
      const { resources } = await container.items.readAll().fetchAll();
      const numbers = Array.from({ length: 40 }, (_, n) => (n < 20 ? n : n + 1000));
      assert.deepEqual(resources.map((item) => item.n).sort((a, b) => a - b), numbers);
      const deleted = await run("bulkDelete", "SELECT * FROM c WHERE c.n >= 10");
      assert.deepEqual(deleted, { deleted: 30, continuation: false });
      assert.deepEqual(await statusOf(() => run("throwAfterTwo", "k")), [400, 0]);
      assert.equal((await ids()).length, 10);
    });

    it("counts, pages, numbers, checks and marks", async () => {
      await fresh();
      for (const name of ["increment", "nextPage", "softDelete"]) await procedure(name);
      await trigger("autoIncrement", "Pre", "Create");
      await trigger("unique", "Pre", "All");
      const counts = await Promise.all(Array.from({ length: 8 }, () => run("increment", "counter", "k")));
      assert.deepEqual(counts.sort((a, b) => a - b), [1, 2, 3, 4, 5, 6, 7, 8]);
      for (let n = 1; n <= 3; n++) {
        const { resource } = await container.items.create({ id: `i${n}`, pk: "k", name: `n${n}` }, { preTriggerInclude: "autoIncrement" });
        assert.equal(resource.number, n);
      }
      const taken = { id: "other", pk: "k", name: "n2" };
      assert.deepEqual(await statusOf(() => container.items.create(taken, { preTriggerInclude: "unique" })), [400, 409]);
      const query = "SELECT VALUE c.id FROM c WHERE c.number > 0 ORDER BY c.number";
      const first = await run("nextPage", query, 2);
      const second = await run("nextPage", query, 2, first.continuation);
      assert.deepEqual([...first.items, ...second.items], ["i1", "i2", "i3"]);
      assert.deepEqual(await run("softDelete", "i1", 60), { id: "i1", isDeleted: true, ttl: 60 });
    });

    it("calls user-defined functions in queries", async () => {
      await fresh();
      await container.scripts.userDefinedFunctions.create({ id: "tax", body: text("tax") });
      for (const [n, income] of [500, 5000, 50000].entries()) {
        await container.items.create({ id: String(n), pk: `k${n}`, income });
      }
      const query = "SELECT VALUE udf.tax(c.income) FROM c WHERE udf.tax(c.income) >= 1000";
      const { resources } = await container.items.query(query).fetchAll();
      assert.deepEqual(resources.sort((a, b) => a - b), [1000, 20000]);
      const absent = "SELECT VALUE udf.absent(c.id) FROM c";
      assert.deepEqual(await statusOf(() => container.items.query(absent, { partitionKey: "k0" }).fetchAll()), [400, 0]);
    });
  });
}

describe("bulk procedures whose time is used up", () => {
  const short = new Server("dev", "--script-timeout-ms", String(SHORT_MS));
  let client, container;
  before(async () => {
    await short.start();
    client = short.client("http");
    const { database } = await client.databases.create({ id: "d" });
    ({ container } = await database.containers.create({ id: "c", partitionKey: "/pk" }));
  });
  after(async () => {
    client.dispose();
    await short.dispose();
  });

  const count = async () => {
    const query = "SELECT VALUE COUNT(1) FROM c";
    return (await container.items.query(query, { partitionKey: "k" }).fetchAll()).resources[0];
  };

  /** Calls a procedure until `step` says that it is done; returns how many calls were not stopped. */
  const repeat = async (name, parameters, step) => {
    const procedure = container.scripts.storedProcedure(name);
    let good = 0;
    for (let calls = 0, more = true; more; calls++) {
      assert.ok(calls < CALLS_MAX);
      let answer;
      try {
        answer = (await procedure.execute("k", parameters())).resource;
        good++;
      } catch (error) {
        // It was stopped, and nothing of this call is committed.
        assert.equal(Number(error.code), 408);
      }
      more = await step(answer);
    }
    return good;
  };

  it("go on where they stopped, after each call with as much as it has told", async () => {
    for (const name of ["bulkImport", "bulkDelete"]) {
      await container.scripts.storedProcedures.create({ id: name, body: text(name) });
    }
    const items = Array.from({ length: ITEMS }, (_, n) => ({ id: `i${n}`, pk: "k", n }));
    let done = 0;
    const imports = await repeat("bulkImport", () => [items.slice(done), false], async (answer) => {
      done += answer ?? 0;
      assert.equal(await count(), done);
      return done < ITEMS;
    });
    assert.ok(imports > 1);
    let deleted = 0;
    const deletes = await repeat("bulkDelete", () => [`SELECT * FROM c WHERE c.n >= ${KEPT}`], async (answer) => {
      deleted += answer?.deleted ?? 0;
      assert.equal(await count(), ITEMS - deleted);
      return answer?.continuation ?? true;
    });
    assert.ok(deletes > 1);
    const { resources } = await container.items.readAll().fetchAll();
    const numbers = resources.map((item) => item.n).sort((a, b) => a - b);
    assert.deepEqual(numbers, Array.from({ length: KEPT }, (_, n) => n));
  });
});
