// Keys of an account that write, that only read, that change; and tokens of an identity provider.

import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Issuer } from "../support/issuer.js";
import { SCHEMES, Server, eventually, statusOf } from "../support/server.js";

const ITEM = { id: "1", pk: "a" };
/** The shortest life that a resource token may be given. */
const TOKEN_SECONDS_MIN = 10;

const fill = async (client) => {
  const { database } = await client.databases.create({ id: "db" });
  const { container } = await database.containers.create({ id: "c", partitionKey: "/pk" });
  await container.items.create(ITEM);
};

const contents = (client) => client.database("db").container("c");
const listed = async (container) => (await container.items.readAll().fetchAll()).resources.map((item) => item.id);

/** Runs a test with a server of its own and clients that end with it. */
async function withServer(server, test) {
  const clients = [];
  await server.start();
  try {
    await test((scheme, options) => {
      clients.push(server.client(scheme, options));
      return clients.at(-1);
    });
  } finally {
    clients.forEach((client) => client.dispose());
    await server.dispose();
  }
}

for (const scheme of SCHEMES) {
  describe(`credentials over ${scheme}`, () => {
    it("lets read-only keys read and not write", async () => {
      const server = new Server("serve");
      await withServer(server, async (connect) => {
        const connected = (name) => connect(scheme, { key: server.keys("show", name) });
        await fill(connected("primary"));
        for (const name of ["primary-readonly", "secondary-readonly"]) {
          const reader = connected(name);
          const items = contents(reader);
          assert.equal((await items.item("1", "a").read()).statusCode, 200);
          assert.deepEqual(await listed(items), ["1"]);
          assert.deepEqual(await statusOf(() => items.items.upsert(ITEM)), [403, 0]);
          assert.deepEqual(await statusOf(() => items.item("1", "a").delete()), [403, 0]);
          // The SDK keeps the text of what refused a batch and drops its status.
          const batch = [{ operationType: "Create", resourceBody: { id: "2", pk: "a" } }];
          await assert.rejects(() => items.items.batch(batch, "a"), /does not permit/);
          assert.deepEqual(await listed(items), ["1"]);
          assert.deepEqual(await statusOf(() => reader.databases.create({ id: "other" })), [403, 0]);
          assert.deepEqual(await statusOf(() => items.delete()), [403, 0]);
          assert.deepEqual(await statusOf(() => reader.database("db").users.create({ id: "u" })), [403, 0]);
        }
        assert.equal((await contents(connected("secondary")).items.upsert(ITEM)).statusCode, 200);
        // The key that everybody knows opens nothing here.
        assert.deepEqual(await statusOf(() => contents(connect(scheme)).item("1", "a").read()), [401, 0]);
      });
    });

    it("refuses a rotated key and goes on with the other", async () => {
      const server = new Server("serve");
      await withServer(server, async (connect) => {
        const connected = (name) => connect(scheme, { key: server.keys("show", name) });
        const [leaves, stays] = [connected("primary"), connected("secondary")];
        await fill(leaves);
        server.keys("rotate", "primary");
        await eventually(async () => {
          assert.equal((await contents(stays).item("1", "a").read()).statusCode, 200);
          const answer = await contents(leaves).item("1", "a").read().catch((error) => error);
          return Number(answer.code ?? answer.statusCode) === 401;
        });
        assert.equal((await contents(connected("primary")).items.upsert(ITEM)).statusCode, 200);
      });
    });
  });
}

describe("a resource token", () => {
  it("ends by itself", async () => {
    await withServer(new Server(), async (connect) => {
      const owner = connect("http");
      await fill(owner);
      const { user } = await owner.database("db").users.create({ id: "u" });
      const body = { id: "p", permissionMode: "Read", resource: contents(owner).url };
      const { resource } = await user.permissions.create(body, { resourceTokenExpirySeconds: TOKEN_SECONDS_MIN });
      const holder = connect("http", { key: undefined, resourceTokens: { "dbs/db/colls/c": resource._token } });
      const read = () => contents(holder).item("1", "a").read();
      assert.equal((await read()).statusCode, 200);
      await eventually(async () => (await read().catch((error) => error)).code === 403, 2000 * TOKEN_SECONDS_MIN);
      const { resource: renewed } = await user.permission("p").read();
      const again = connect("http", { key: undefined, resourceTokens: { "dbs/db/colls/c": renewed._token } });
      assert.equal((await contents(again).item("1", "a").read()).statusCode, 200);
    });
  });
});

describe("tokens of an identity provider", () => {
  it("have the rights of their holder", async () => {
    const [issuer, foreign] = [new Issuer(), new Issuer()];
    const settings = issuer.settings([
      ["reader", "reader", "/dbs/db"],
      ["writer", "contributor", "/dbs/db/colls/c"],
    ]);
    await withServer(new Server("dev", "--identity", settings), async (connect) => {
      await fill(connect("https"));
      const holder = (principal, from = issuer, scheme = "https") =>
        connect(scheme, { key: undefined, aadCredentials: from.credential(principal) });
      for (const principal of ["reader", "writer"]) {
        const client = holder(principal);
        assert.equal((await contents(client).item("1", "a").read()).statusCode, 200);
        assert.deepEqual(await listed(contents(client)), ["1"]);
        assert.deepEqual(await statusOf(() => client.databases.create({ id: "other" })), [403, 5300]);
        assert.deepEqual(await statusOf(() => client.databases.readAll().fetchAll()), [403, 5301]);
        const write = () => contents(client).items.upsert(ITEM);
        if (principal === "writer") assert.equal((await write()).statusCode, 200);
        else assert.deepEqual(await statusOf(write), [403, 5302]);
      }
      assert.deepEqual(await statusOf(() => contents(holder("nobody")).item("1", "a").read()), [403, 5301]);
      assert.deepEqual(await statusOf(() => contents(holder("reader", foreign)).item("1", "a").read()), [401, 5004]);
      // The SDK itself sends no token over plain HTTP.
      await assert.rejects(() => contents(holder("reader", issuer, "http")).item("1", "a").read(), /non-TLS/);
    });
    issuer.dispose();
  });
});
