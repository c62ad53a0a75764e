// Who may do what: keys, connection strings, shared access signatures, stored policies.

import assert from "node:assert/strict";
import { after, afterEach, before, beforeEach, describe, it } from "node:test";
import { AzureSASCredential, TableServiceClient, generateAccountSas, generateTableSas } from "@azure/data-tables";
import { KEY } from "../support/server.js";
import { ACCOUNT, ACCOUNT_KEY, SCHEMES, Service, all, answer, azuriteLacks, inHours, plain, refused, unique } from "../support/table.js";

const service = new Service();
before(() => service.start());
after(() => service.dispose());

const ENTITY = { partitionKey: "a", rowKey: "b", v: 1 };

const accountSas = (options = {}, key = ACCOUNT_KEY) =>
  new AzureSASCredential(
    generateAccountSas(service.credential(ACCOUNT, key), {
      expiresOn: inHours(1),
      resourceTypes: "sco",
      services: { table: true },
      permissions: { query: true, write: true, delete: true, list: true, add: true, create: true, update: true },
      ...options,
    }),
  );
const tableSas = (name, options) => new AzureSASCredential(generateTableSas(name, service.credential(), options));

for (const scheme of SCHEMES) {
  describe(`access over ${scheme}`, () => {
    let table;
    beforeEach(async () => {
      table = service.table(scheme, unique());
      await table.createTable();
      await table.createEntity(ENTITY);
    });
    afterEach(() => table.deleteTable());

    const held = (credential) => service.table(scheme, table.tableName, credential);
    const isAllowed = async (call) => {
      try {
        await call();
        return true;
      } catch (error) {
        assert.equal(error.statusCode, 403, error.message);
        return false;
      }
    };

    it("refuses a wrong key", async () => {
      const other = held(service.credential(ACCOUNT, KEY));
      for (const call of [() => other.getEntity("a", "b"), () => other.submitTransaction([["upsert", ENTITY]])]) {
        const [status, code] = await refused(call);
        assert.deepEqual([status, answer(code, "AuthenticationFailed")], [403, "AuthenticationFailed"]);
      }
      assert.equal((await refused(() => all(service.client(scheme, service.credential(ACCOUNT, KEY)).listTables())))[0], 403);
    });

    it("refuses a wrong account", async () => {
      const client = service.client(scheme, service.credential("nobody"), "nobody");
      assert.ok([400, 401, 403, 404].includes((await refused(() => all(client.listTables())))[0]));
    });

    it("takes the account of the other emulator", azuriteLacks("a second account"), async () => {
      const client = service.client(scheme, service.credential("localhost", KEY), "localhost");
      const name = unique();
      await client.createTable(name);
      assert.ok((await all(client.listTables())).some((one) => one.name === name));
      await client.deleteTable(name);
    });

    it("takes a connection string", async () => {
      const text = `DefaultEndpointsProtocol=${scheme};AccountName=${ACCOUNT};AccountKey=${ACCOUNT_KEY};TableEndpoint=${service.endpoint(scheme)};`;
      const client = TableServiceClient.fromConnectionString(text, service.options());
      assert.ok((await all(client.listTables())).some(({ name }) => name === table.tableName));
      const sas = `TableEndpoint=${service.endpoint(scheme)};SharedAccessSignature=${accountSas().signature.replace(/^\?/, "")}`;
      const withSas = TableServiceClient.fromConnectionString(sas, service.options());
      assert.ok((await all(withSas.listTables())).some(({ name }) => name === table.tableName));
    });

    it("takes an account signature", async () => {
      const own = held(accountSas());
      await own.updateEntity({ ...ENTITY, v: 2 });
      await own.submitTransaction([["create", { partitionKey: "a", rowKey: "c" }]]);
      assert.equal((await all(own.listEntities())).length, 2);
      await own.deleteEntity("a", "c");
      assert.ok((await all(service.client(scheme, accountSas()).listTables())).length > 0);
    });

    it("keeps to the permissions of an account signature", async () => {
      const reader = held(accountSas({ permissions: { query: true } }));
      assert.deepEqual(plain(await reader.getEntity("a", "b")), ENTITY);
      assert.ok(!(await isAllowed(() => reader.upsertEntity(ENTITY))));
      assert.ok(!(await isAllowed(() => reader.deleteEntity("a", "b"))));
      assert.ok(!(await isAllowed(() => reader.createEntity({ partitionKey: "a", rowKey: "c" }))));
      const writer = held(accountSas({ permissions: { add: true } }));
      await writer.createEntity({ partitionKey: "a", rowKey: "c" });
      assert.ok(!(await isAllowed(() => writer.getEntity("a", "b"))));
      const objects = service.client(scheme, accountSas({ resourceTypes: "o" }));
      assert.ok(!(await isAllowed(() => all(objects.listTables()))));
    });

    it("refuses signatures that are expired, early or forged", async () => {
      assert.ok(!(await isAllowed(() => held(accountSas({ expiresOn: inHours(-1) })).getEntity("a", "b"))));
      assert.ok(!(await isAllowed(() => held(accountSas({ startsOn: inHours(1), expiresOn: inHours(2) })).getEntity("a", "b"))));
      assert.ok(!(await isAllowed(() => held(accountSas({}, KEY)).getEntity("a", "b"))));
      const permissions = { query: true };
      assert.ok(!(await isAllowed(() => held(tableSas(table.tableName, { permissions, expiresOn: inHours(-1) })).getEntity("a", "b"))));
    });

    it("takes a table signature, for its table and permissions", async () => {
      const own = held(tableSas(table.tableName, { permissions: { query: true, add: true }, expiresOn: inHours(1) }));
      assert.deepEqual(plain(await own.getEntity("a", "b")), ENTITY);
      await own.createEntity({ partitionKey: "a", rowKey: "c" });
      assert.ok(!(await isAllowed(() => own.deleteEntity("a", "b"))));
      assert.ok(!(await isAllowed(() => own.updateEntity(ENTITY))));
    });

    it("keeps a table signature from other tables", azuriteLacks("this check"), async () => {
      const sas = tableSas(unique(), { permissions: { query: true }, expiresOn: inHours(1) });
      assert.ok(!(await isAllowed(() => held(sas).getEntity("a", "b"))));
      const range = { startPartitionKey: "b", endPartitionKey: "c" };
      const ranged = held(tableSas(table.tableName, { permissions: { query: true }, expiresOn: inHours(1), ...range }));
      assert.ok(!(await isAllowed(() => ranged.getEntity("a", "b"))));
      assert.deepEqual(await all(ranged.listEntities()), []);
    });

    it("keeps stored policies and lets signatures name them", async () => {
      const [start, expiry] = [inHours(-1), inHours(1)].map((date) => new Date(Math.floor(date / 1000) * 1000));
      const readers = { id: "readers", accessPolicy: { start, expiry, permission: "r" } };
      const writers = { id: "writers", accessPolicy: { start, expiry, permission: "raud" } };
      await table.setAccessPolicy([readers, writers]);
      assert.deepEqual([...(await table.getAccessPolicy())], [readers, writers]);
      const reader = held(tableSas(table.tableName, { identifier: "readers" }));
      assert.deepEqual(plain(await reader.getEntity("a", "b")), ENTITY);
      assert.ok(!(await isAllowed(() => reader.deleteEntity("a", "b"))));
      assert.ok(!(await isAllowed(() => held(tableSas(table.tableName, { identifier: "absent" })).getEntity("a", "b"))));
      await table.setAccessPolicy([]);
      assert.deepEqual([...(await table.getAccessPolicy())], []);
      assert.ok(!(await isAllowed(() => reader.getEntity("a", "b"))));
    });
  });
}
