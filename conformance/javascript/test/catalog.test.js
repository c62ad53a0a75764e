// Databases and containers: create, read, replace, delete, list, and the definitions that come back.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { PartitionKeyDefinitionVersion, PartitionKeyKind } from "@azure/cosmos";
import { SCHEMES, Server, statusOf, unique } from "../support/server.js";

const server = new Server();
before(() => server.start());
after(() => server.dispose());

for (const scheme of SCHEMES) {
  describe(`catalog over ${scheme}`, () => {
    let client, database;
    before(async () => {
      client = server.client(scheme);
      ({ database } = await client.databases.create({ id: unique("db") }));
    });
    after(async () => {
      await database.delete();
      client.dispose();
    });

    it("reads the account", async () => {
      const { resource } = await client.getDatabaseAccount();
      assert.equal(resource.consistencyPolicy, "Session");
      assert.equal(await client.getWriteEndpoint(), server.endpoint(scheme));
      assert.equal(await client.getReadEndpoint(), server.endpoint(scheme));
    });

    it("creates, reads, lists and deletes databases", async () => {
      const id = unique("db");
      const created = await client.databases.create({ id });
      assert.equal(created.statusCode, 201);
      const read = await created.database.read();
      assert.equal(read.statusCode, 200);
      assert.equal(read.resource.id, id);
      assert.equal(read.resource._self, `dbs/${read.resource._rid}/`);
      assert.equal(read.resource._colls, "colls/");
      const { resources } = await client.databases.readAll().fetchAll();
      assert.ok(resources.some((found) => found.id === id));
      assert.deepEqual(await statusOf(() => client.databases.create({ id })), [409, 0]);
      const again = await client.databases.createIfNotExists({ id });
      assert.equal(again.resource._rid, read.resource._rid);
      assert.equal((await created.database.delete()).statusCode, 204);
      assert.deepEqual(await statusOf(() => created.database.read()), [404, 0]);
      assert.deepEqual(await statusOf(() => created.database.delete()), [404, 0]);
    });

    it("lists databases in pages", async () => {
      const ids = Array.from({ length: 5 }, () => unique("page"));
      for (const id of ids) await client.databases.create({ id });
      const pages = client.databases.readAll({ maxItemCount: 2 });
      const seen = [];
      while (pages.hasMoreResults()) {
        const { resources } = await pages.fetchNext();
        assert.ok((resources ?? []).length <= 2);
        seen.push(...(resources ?? []).map((found) => found.id));
      }
      assert.equal(new Set(seen).size, seen.length);
      assert.ok(ids.every((id) => seen.includes(id)));
      for (const id of ids) await client.database(id).delete();
    });

    it("creates containers with the service's defaults", async () => {
      const { container, resource, statusCode } = await database.containers.create({
        id: unique("c"),
        partitionKey: { paths: ["/pk"] },
      });
      assert.equal(statusCode, 201);
      assert.equal(resource.partitionKey.paths[0], "/pk");
      assert.equal(resource.indexingPolicy.indexingMode, "consistent");
      assert.deepEqual(resource.indexingPolicy.includedPaths, [{ path: "/*" }]);
      assert.deepEqual(resource.indexingPolicy.excludedPaths, [{ path: '/"_etag"/?' }]);
      assert.equal(resource.conflictResolutionPolicy.mode, "LastWriterWins");
      assert.deepEqual(resource.geospatialConfig, { type: "Geography" });
      assert.equal(resource.defaultTtl, undefined);
      assert.deepEqual((await container.read()).resource, resource);
      assert.equal((await container.delete()).statusCode, 204);
      assert.deepEqual(await statusOf(() => container.read()), [404, 0]);
    });

    it("gives policies back as they were given", async () => {
      const definition = {
        id: unique("c"),
        partitionKey: { paths: ["/tenant", "/user"], kind: PartitionKeyKind.MultiHash, version: PartitionKeyDefinitionVersion.V2 },
        defaultTtl: 3600,
        uniqueKeyPolicy: { uniqueKeys: [{ paths: ["/a", "/b/c"] }] },
        indexingPolicy: {
          indexingMode: "consistent",
          automatic: true,
          includedPaths: [{ path: "/*" }],
          excludedPaths: [{ path: "/big/*" }, { path: '/"_etag"/?' }],
          compositeIndexes: [[{ path: "/a", order: "ascending" }, { path: "/b", order: "descending" }]],
        },
      };
      const { resource } = await database.containers.create(definition);
      for (const [name, value] of Object.entries(definition)) assert.deepEqual(resource[name], value, name);
    });

    it("replaces a container's time to live and not its key", async () => {
      const { container, resource } = await database.containers.create({ id: unique("c"), partitionKey: { paths: ["/pk"] } });
      const replaced = await container.replace({ id: resource.id, partitionKey: resource.partitionKey, defaultTtl: 60 });
      assert.equal(replaced.resource.defaultTtl, 60);
      assert.equal(replaced.resource._rid, resource._rid);
      assert.notEqual(replaced.resource._etag, resource._etag);
      const other = { id: resource.id, partitionKey: { paths: ["/other"], version: 2 } };
      assert.deepEqual(await statusOf(() => container.replace(other)), [400, 0]);
    });

    it("creates a container once", async () => {
      const definition = { id: unique("c"), partitionKey: { paths: ["/pk"] } };
      const first = await database.containers.createIfNotExists(definition);
      const second = await database.containers.createIfNotExists(definition);
      assert.equal(first.resource._rid, second.resource._rid);
      assert.deepEqual(await statusOf(() => database.containers.create(definition)), [409, 0]);
      const { resources } = await database.containers.readAll().fetchAll();
      assert.ok(resources.some((found) => found.id === definition.id));
    });

    it("names what is wrong with a definition", async () => {
      for (const bad of [
        { id: unique("c"), partitionKey: { paths: ["pk"] } },
        { id: unique("c"), partitionKey: { paths: ["/pk"] }, defaultTtl: 0 },
        { id: unique("c"), partitionKey: { paths: ["/pk"] }, indexingPolicy: { indexingMode: "sometimes" } },
      ]) {
        assert.equal((await statusOf(() => database.containers.create(bad)))[0], 400);
      }
    });

    it("answers for what is absent", async () => {
      const missing = client.database("no-such-database");
      assert.deepEqual(await statusOf(() => missing.read()), [404, 0]);
      assert.deepEqual(await statusOf(() => missing.containers.readAll().fetchAll()), [404, 1003]);
      const absent = await database.container("no-such-container").item("1", "a").read();
      assert.equal(absent.statusCode, 404);
      const items = database.container("no-such-container").items;
      assert.equal((await statusOf(() => items.create({ id: "1", pk: "a" })))[0], 404);
    });

    it("lists the ranges of a container", async () => {
      const wide = await database.containers.create({ id: unique("c"), partitionKey: { paths: ["/pk"] }, throughput: 18000 });
      const { resources } = await wide.container.readPartitionKeyRanges().fetchAll();
      assert.equal(resources.length, 3);
      const bounds = resources.map((range) => [range.minInclusive, range.maxExclusive]).sort();
      assert.equal(bounds[0][0], "");
      assert.equal(bounds[2][1], "FF");
      assert.equal(bounds[0][1], bounds[1][0]);
    });

    it("refuses a wrong key", async () => {
      const stranger = server.client(scheme, { key: `${"A".repeat(86)}==` });
      assert.equal((await statusOf(() => stranger.databases.create({ id: "x" })))[0], 401);
      stranger.dispose();
    });
  });
}
