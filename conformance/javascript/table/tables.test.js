// Tables: create, list, delete, and what is refused; the documented walk; the service's own properties.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { TableServiceClient, odata } from "@azure/data-tables";
import { DATA, SCHEMES, Service, all, answer, azuriteLacks, keys, pages, plain, refused, unique } from "../support/table.js";

const service = new Service();
before(() => service.start());
after(() => service.dispose());

const names = (tables) => tables.map(({ name }) => name);

for (const scheme of SCHEMES) {
  describe(`tables over ${scheme}`, () => {
    let client;
    before(() => (client = service.client(scheme)));

    it("creates, lists and deletes a table", async () => {
      const name = unique();
      await client.createTable(name);
      assert.deepEqual(names(await all(client.listTables({ queryOptions: { filter: odata`TableName eq ${name}` } }))), [name]);
      assert.ok(names(await all(client.listTables())).includes(name));
      await client.deleteTable(name);
      assert.deepEqual(await all(client.listTables({ queryOptions: { filter: odata`TableName eq ${name}` } })), []);
    });

    it("creates a table that is there without an error and without a change", async () => {
      const table = service.table(scheme, unique());
      await table.createTable();
      await table.createEntity({ partitionKey: "a", rowKey: "b" });
      // The client takes a table that exists for a created one, so its answer is looked at.
      let status;
      await table.createTable({ onResponse: (found) => (status = found.status) });
      assert.equal(status, 409);
      await client.createTable(table.tableName);
      assert.equal((await all(table.listEntities())).length, 1);
      await table.deleteTable();
      await table.deleteTable({ onResponse: (found) => (status = found.status) });
      assert.equal(status, 404);
    });

    it("refuses an absent table", async () => {
      const table = service.table(scheme, unique());
      const entity = { partitionKey: "a", rowKey: "b" };
      for (const call of [
        () => table.createEntity(entity),
        () => table.updateEntity(entity),
        () => table.upsertEntity(entity),
        () => table.getEntity("a", "b"),
        () => table.deleteEntity("a", "b"),
        () => all(table.listEntities()),
        () => table.submitTransaction([["create", entity]]),
      ]) {
        assert.deepEqual(await refused(call), [404, "TableNotFound"]);
      }
      assert.equal((await refused(() => table.getAccessPolicy()))[0], 404);
    });

    it("refuses bad names", async () => {
      for (const name of ["a", "1abc", "a-b", "a_b", "x".repeat(64), ...answer(["tables"], [])]) {
        assert.equal((await refused(() => client.createTable(name)))[0], 400, name);
      }
    });

    it("lists by filter and by page, and goes on from a token", async () => {
      const prefix = unique("list");
      const made = Array.from({ length: 7 }, (_, index) => `${prefix}${index}`);
      for (const name of made.toReversed()) await client.createTable(name);
      const queryOptions = { filter: odata`TableName ge ${prefix} and TableName lt ${`${prefix}z`}` };
      assert.deepEqual(names(await all(client.listTables({ queryOptions }))), made);
      const found = await pages(client.listTables({ queryOptions }), { maxPageSize: 3 });
      assert.deepEqual(names(found.flat()), made);
      assert.ok(found.every((page) => page.length <= 3));
      const first = await client.listTables({ queryOptions }).byPage({ maxPageSize: 3 }).next();
      const { continuationToken } = first.value;
      const rest = await pages(client.listTables({ queryOptions }), { maxPageSize: 3, continuationToken });
      assert.deepEqual(names([...first.value, ...rest.flat()]), made);
      for (const name of made) await client.deleteTable(name);
    });

    it("walks as documented", async () => {
      const { throughput, people } = DATA.walk;
      const requestOptions = { customHeaders: { "x-ms-offer-throughput": String(throughput) } };
      const table = service.table(scheme, unique(DATA.walk.table));
      for (const _ of [1, 2]) await table.createTable({ requestOptions });
      for (const { PartitionKey: partitionKey, RowKey: rowKey, ...rest } of people) {
        await table.upsertEntity({ partitionKey, rowKey, ...rest });
      }
      const ben = await table.getEntity("Smith", "Ben");
      assert.deepEqual(plain(ben), { partitionKey: "Smith", rowKey: "Ben", email: people[0].email, phone: people[0].phone });
      await table.updateEntity({ ...plain(ben), email: "ben.smith@contoso.example" }, "Replace", { etag: ben.etag });
      const family = await all(table.listEntities({ queryOptions: { filter: odata`PartitionKey eq ${"Smith"}` } }));
      assert.deepEqual(keys(family), [["Smith", "Ben"], ["Smith", "Jeff"]]);
      assert.equal(family[0].email, "ben.smith@contoso.example");
      await table.deleteEntity("Smith", "Ben");
      assert.deepEqual(await refused(() => table.getEntity("Smith", "Ben")), [404, "ResourceNotFound"]);
      await table.deleteTable();
    });

    it("keeps service properties", azuriteLacks("some service properties"), async () => {
      const retentionPolicy = { enabled: true, days: 5 };
      const cors = [
        { allowedOrigins: "https://www.contoso.example", allowedMethods: "GET,PUT", allowedHeaders: "Accept", exposedHeaders: "x-ms-meta-*", maxAgeInSeconds: 30 },
      ];
      await client.setProperties({
        logging: { version: "1.0", read: true, write: false, delete: true, retentionPolicy },
        hourMetrics: { version: "1.0", enabled: true, includeAPIs: true, retentionPolicy },
        minuteMetrics: { version: "1.0", enabled: false, retentionPolicy: { enabled: false } },
        cors,
      });
      const found = await client.getProperties();
      assert.deepEqual(found.logging, { version: "1.0", read: true, write: false, delete: true, retentionPolicy });
      assert.deepEqual(found.hourMetrics, { version: "1.0", enabled: true, includeAPIs: true, retentionPolicy });
      assert.equal(found.minuteMetrics.enabled, false);
      assert.deepEqual(found.cors, cors);
      await client.setProperties({ cors: [] });
      assert.deepEqual((await client.getProperties()).cors ?? [], []);
    });

    it("answers statistics", azuriteLacks("statistics"), async () => {
      // From a host of several parts the client makes the address of the secondary service, which has no name here.
      const address = service.endpoint(scheme).replace("127.0.0.1", "localhost");
      const { geoReplication } = await new TableServiceClient(address, service.credential(), service.options()).getStatistics();
      assert.ok(["live", "bootstrap", "unavailable"].includes(geoReplication.status));
    });
  });
}
