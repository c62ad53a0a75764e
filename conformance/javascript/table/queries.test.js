// Queries: filters of every operator and type, select, pages, order.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { odata } from "@azure/data-tables";
import { DATA, SCHEMES, Service, all, answer, entity, keys, pages, plain, refused, unique } from "../support/table.js";

const service = new Service();
before(() => service.start());
after(() => service.dispose());

for (const scheme of SCHEMES) {
  describe(`queries over ${scheme}`, () => {
    let rows, many;
    before(async () => {
      rows = service.table(scheme, unique("rows"));
      await rows.createTable();
      for (const row of DATA.rows.toReversed()) await rows.createEntity(entity(row));
      many = service.table(scheme, unique("many"));
      await many.createTable();
      for (const partitionKey of ["p0", "p1", "p2"]) {
        const actions = Array.from({ length: 9 }, (_, n) => ["create", { partitionKey, rowKey: `${n}`, n }]);
        await many.submitTransaction(actions);
      }
    });
    after(async () => {
      await rows.deleteTable();
      await many.deleteTable();
    });

    const find = async (filter) => (await all(rows.listEntities({ queryOptions: { filter } }))).map(({ rowKey }) => rowKey).join("");

    for (const one of DATA.filters) {
      it(`finds by ${one.filter}`, async () => {
        assert.equal(await find(one.filter), answer(one.rows, one.azurite ?? one.rows));
      });
    }

    it("refuses bad filters", async () => {
      for (const filter of [...DATA.bad_filters, ...answer(DATA.bad_filters_that_azurite_takes, [])]) {
        assert.ok([400, 501].includes((await refused(() => find(filter)))[0]), filter);
      }
    });

    it("takes values of the language in filters", async () => {
      assert.equal(await find(odata`text eq ${"O'Brien"}`), "3");
      assert.equal(await find(odata`small eq ${7}`), "2");
      assert.equal(await find(odata`flag eq ${false}`), "2");
      assert.equal(await find(odata`real eq ${5.5}`), "2");
      assert.equal(await find(odata`when lt ${new Date("2000-01-01T00:00:00Z")}`), "3");
    });

    it("selects", async () => {
      const queryOptions = { filter: "PartitionKey eq 'p'", select: ["rowKey", "small"] };
      assert.deepEqual((await all(rows.listEntities({ queryOptions }))).map(plain), [
        { rowKey: "1", small: 5 },
        { rowKey: "2", small: 7 },
        { rowKey: "3", small: -3 },
      ]);
    });

    it("pages, in the order of keys, and goes on from every token", async () => {
      const everything = keys(await all(many.listEntities()));
      assert.equal(everything.length, 27);
      assert.deepEqual(everything, everything.toSorted());
      const found = await pages(many.listEntities(), { maxPageSize: 4 });
      assert.ok(found.every((page) => page.length <= 4));
      assert.deepEqual(keys(found.flat()), everything);
      const begun = [];
      for await (const page of many.listEntities().byPage({ maxPageSize: 4 })) {
        begun.push(...page);
        if (!page.continuationToken) break;
        const rest = await pages(many.listEntities(), { maxPageSize: 4, continuationToken: page.continuationToken });
        assert.deepEqual(keys([...begun, ...rest.flat()]), everything);
      }
      assert.equal(begun.length, 27);
    });

    it("pages through a filter", async () => {
      const found = await pages(many.listEntities({ queryOptions: { filter: "n ge 3 and n lt 6" } }), { maxPageSize: 2 });
      assert.equal(found.flat().length, 9);
      assert.ok(found.every((page) => page.length <= 2));
    });

    it("answers nothing with nothing", async () => {
      assert.deepEqual(await all(many.listEntities({ queryOptions: { filter: "n gt 100" } })), []);
    });
  });
}
