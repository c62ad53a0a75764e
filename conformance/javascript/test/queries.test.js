// Queries on items: joined by the SDK from the answers of ranges, or answered whole by the server.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { PartitionKeyKind } from "@azure/cosmos";
import { SCHEMES, Server, statusOf, unique } from "../support/server.js";

const server = new Server();
before(() => server.start());
after(() => server.dispose());

const TEAMS = ["red", "green", "blue"];
const made = (number) => ({
  id: `item-${String(number).padStart(2, "0")}`,
  pk: `key-${number % 7}`,
  n: number,
  team: TEAMS[number % 3],
  tags: [`t${number % 2}`, `t${number % 5}`],
});

// The server leaves merging to the SDK unless a request is relaxed. With the last two the SDK does not even try without
// a plan.
const RELAXED = { initialHeaders: { "x-perihelion-compatibility": "relaxed" } };
const WAYS = {
  plainly: {},
  "merged by the server": RELAXED,
  "by a plan": { forceQueryPlan: true },
  "with query control": { enableQueryControl: true },
};

for (const scheme of SCHEMES) {
  describe(`queries over ${scheme}`, () => {
    let client, database, container;
    before(async () => {
      client = server.client(scheme);
      ({ database } = await client.databases.create({ id: unique("db") }));
      ({ container } = await database.containers.create({ id: unique("c"), partitionKey: "/pk", throughput: 18000 }));
      for (let number = 0; number < 45; number++) await container.items.create(made(number));
    });
    after(async () => {
      await database.delete();
      client.dispose();
    });

    const rows = async (query, options = {}) => (await container.items.query(query, options).fetchAll()).resources;

    for (const [way, options] of Object.entries(WAYS)) {
      describe(way, () => {
        const sorted = [
          ["SELECT VALUE c.n FROM c ORDER BY c.n", Array.from({ length: 45 }, (_, number) => number)],
          ["SELECT VALUE c.n FROM c WHERE c.team = 'red' AND c.n > 35 ORDER BY c.n DESC", [42, 39, 36]],
          ["SELECT TOP 3 c.id FROM c ORDER BY c.n DESC", [{ id: "item-44" }, { id: "item-43" }, { id: "item-42" }]],
          ["SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 10 LIMIT 3", [10, 11, 12]],
          ["SELECT VALUE COUNT(1) FROM c", [45]],
          ["SELECT VALUE SUM(c.n) FROM c WHERE c.n < 5", [10]],
          ["SELECT VALUE AVG(c.n) FROM c", [22]],
          ["SELECT VALUE MAX(c.id) FROM c", ["item-44"]],
          ["SELECT VALUE MIN(c.n) FROM c WHERE c.pk = 'key-3'", [3]],
          ["SELECT DISTINCT VALUE c.team FROM c ORDER BY c.team", ["blue", "green", "red"]],
          ["SELECT VALUE c.n FROM c WHERE c.n = 100", []],
        ];
        for (const [query, expected] of sorted) {
          it(query, async () => {
            assert.deepEqual(await rows(query, options), expected);
            assert.deepEqual(await rows(query, { ...options, maxItemCount: 2 }), expected);
          });
        }

        it("filters, joins and groups", async () => {
          const tagged = await rows("SELECT VALUE c.n FROM c JOIN t IN c.tags WHERE t = 't4' AND c.n < 15", options);
          assert.deepEqual(tagged.sort((a, b) => a - b), [4, 9, 14]);
          const teams = await rows("SELECT DISTINCT VALUE c.team FROM c", options);
          assert.deepEqual(teams.sort(), ["blue", "green", "red"]);
          const groups = await rows("SELECT c.team, COUNT(1) AS n, AVG(c.n) AS mean FROM c GROUP BY c.team", options);
          groups.sort((a, b) => a.team.localeCompare(b.team));
          assert.deepEqual(groups, [
            { team: "blue", n: 15, mean: 23 },
            { team: "green", n: 15, mean: 22 },
            { team: "red", n: 15, mean: 21 },
          ]);
          assert.deepEqual(await rows("SELECT COUNT(1) AS n, MAX(c.n) AS most FROM c", options), [{ n: 45, most: 44 }]);
        });

        it("fills parameters in", async () => {
          const parameters = [{ name: "@team", value: "red" }, { name: "@n", value: 30 }];
          const query = "SELECT VALUE c.n FROM c WHERE c.team = @team AND c.n > @n ORDER BY c.n";
          assert.deepEqual(await rows({ query, parameters }, options), [33, 36, 39, 42]);
        });

        // Forced to a plan, the SDK forgets the key: it sends neither the plan request nor the queries with it.
        it("stays in one partition", async () => {
          const query = "SELECT TOP 2 VALUE c.n FROM c ORDER BY c.n DESC";
          const expected = way === "by a plan" ? [44, 43] : [38, 31];
          assert.deepEqual(await rows(query, { ...options, partitionKey: "key-3" }), expected);
        });
      });
    }

    for (const [way, options] of Object.entries({ "the server": RELAXED, "the SDK": { enableQueryControl: true } })) {
      it(`goes on where a page ended, merged by ${way}`, async () => {
        const query = "SELECT VALUE c.n FROM c ORDER BY c.n";
        const seen = [];
        let continuationToken;
        do {
          const page = await container.items.query(query, { ...options, maxItemCount: 7, continuationToken }).fetchNext();
          seen.push(...(page.resources ?? []));
          ({ continuationToken } = page);
          if (continuationToken) assert.ok(JSON.parse(continuationToken));
        } while (continuationToken);
        assert.deepEqual(seen, Array.from({ length: 45 }, (_, number) => number));
      });
    }

    it("needs a composite index for several sort keys", async () => {
      const query = "SELECT VALUE c.n FROM c WHERE c.n < 4 ORDER BY c.team, c.n";
      await assert.rejects(rows(query), /does not have a corresponding composite index/);
      assert.deepEqual(await rows(query, RELAXED), [2, 1, 0, 3]);
    });

    it("measures and charges", async () => {
      const page = await container.items.query("SELECT * FROM c", { populateQueryMetrics: true }).fetchNext();
      assert.ok(page.requestCharge >= 2);
      assert.ok(JSON.stringify(page.queryMetrics ?? page.headers).includes("ocument"));
    });

    it("tells which indexes are used and which might help", async () => {
      const indexes = async (query, options) => {
        const page = await container.items.query(query, { populateIndexMetrics: true, ...options }).fetchNext();
        return JSON.parse(page.indexMetrics);
      };
      const none = { SingleIndexes: [], CompositeIndexes: [] };
      assert.deepEqual(await indexes("SELECT * FROM c WHERE c.n > 2"), {
        UtilizedIndexes: { SingleIndexes: [{ IndexSpec: "/n/?" }], CompositeIndexes: [] },
        PotentialIndexes: none,
      });
      assert.deepEqual(await indexes("SELECT * FROM c WHERE c.team = 'red' AND c['a ß'] > 2", { partitionKey: "key-1" }), {
        UtilizedIndexes: {
          SingleIndexes: [{ IndexSpec: "/team/?" }, { IndexSpec: '/"a ß"/?' }, { IndexSpec: "/pk/?" }],
          CompositeIndexes: [],
        },
        PotentialIndexes: {
          SingleIndexes: [],
          CompositeIndexes: [{ IndexSpecs: ["/team ASC", '/"a ß" ASC'], IndexImpactScore: "High" }],
        },
      });
      const silent = await container.items.query("SELECT * FROM c").fetchNext();
      assert.equal(silent.indexMetrics, "{}");
    });

    it("knows hierarchical keys and their beginnings", async () => {
      const partitionKey = { paths: ["/a", "/b"], kind: PartitionKeyKind.MultiHash, version: 2 };
      const { container: deep } = await database.containers.create({ id: unique("c"), partitionKey, throughput: 12000 });
      for (let number = 0; number < 12; number++) await deep.items.create({ id: `${number}`, a: number % 2, b: number % 3, n: number });
      const ask = async (key) => (await deep.items.query("SELECT VALUE c.n FROM c ORDER BY c.n", { partitionKey: key }).fetchAll()).resources;
      assert.deepEqual(await ask([1, 2]), [5, 11]);
      assert.deepEqual(await ask([1]), [1, 3, 5, 7, 9, 11]);
    });

    it("fuses ranks", async () => {
      const fullTextPolicy = { defaultLanguage: "en-US", fullTextPaths: [{ path: "/text", language: "en-US" }] };
      const options = { id: unique("c"), partitionKey: "/pk", throughput: 12000, fullTextPolicy };
      const { container: texts } = await database.containers.create(options);
      const words = ["a swimmer swims", "a bicycle", "swimming and running", "running running"];
      for (const [number, text] of words.entries()) await texts.items.create({ id: `${number}`, pk: `k${number}`, text, v: [1, number] });
      const best = "SELECT TOP 2 c.id FROM c ORDER BY RANK FullTextScore(c.text, 'running')";
      const fused = "SELECT TOP 1 c.id FROM c ORDER BY RANK RRF(FullTextScore(c.text, 'swim'), VectorDistance(c.v, [1, 0]))";
      for (const way of Object.values(WAYS)) {
        assert.deepEqual((await texts.items.query(best, way).fetchAll()).resources, [{ id: "3" }, { id: "2" }]);
        assert.deepEqual((await texts.items.query(fused, way).fetchAll()).resources, [{ id: "0" }]);
      }
    });

    it("says what is wrong", async () => {
      for (const query of ["SELECT", "SELECT NOSUCH(c.n) FROM c", "SELECT * FROM c ORDER BY c.n + 1"]) {
        assert.deepEqual(await statusOf(() => container.items.query(query).fetchAll()), [400, 0], query);
      }
      const forged = container.items.query("SELECT * FROM c", { partitionKey: "key-1", continuationToken: "nonsense" });
      assert.deepEqual(await statusOf(() => forged.fetchAll()), [400, 0]);
    });
  });
}
