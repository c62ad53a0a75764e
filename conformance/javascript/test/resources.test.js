// Users, permissions and clients that hold one; scripts; offers; policies; encryption by the client.

import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { EncryptionAlgorithm, KeyEncryptionAlgorithm, PartitionKeyKind, PermissionMode } from "@azure/cosmos";
import { SCHEMES, Server, statusOf, unique } from "../support/server.js";

const server = new Server();
before(() => server.start());
after(() => server.dispose());

/** Turns every byte of a key around: enough to see that the server never has the plain one. */
const resolver = {
  encryptionKeyResolverName: "AZURE_KEY_VAULT",
  wrapKey: async (id, algorithm, key) => Buffer.from(key).map((byte) => byte ^ 0xff),
  unwrapKey: async (id, algorithm, key) => Buffer.from(key).map((byte) => byte ^ 0xff),
};

for (const scheme of SCHEMES) {
  describe(`resources over ${scheme}`, () => {
    let client, database, container;
    before(async () => {
      client = server.client(scheme);
      ({ database } = await client.databases.create({ id: unique("db") }));
      ({ container } = await database.containers.create({ id: unique("c"), partitionKey: "/pk" }));
      await container.items.create({ id: "1", pk: "a" });
      await container.items.create({ id: "1", pk: "b" });
    });
    after(async () => {
      await database.delete();
      client.dispose();
    });

    const link = () => `dbs/${database.id}/colls/${container.id}`;

    /** A client of this server with a permission and no key. */
    const holder = (permission, resource = link()) =>
      server.client(scheme, { key: undefined, resourceTokens: { [resource]: permission._token } });

    it("creates, reads, renames, lists and deletes users", async () => {
      const id = unique("user");
      const { user, statusCode } = await database.users.create({ id });
      assert.equal(statusCode, 201);
      assert.equal((await user.read()).resource.id, id);
      assert.deepEqual(await statusOf(() => database.users.create({ id })), [409, 0]);
      assert.equal((await database.users.upsert({ id })).statusCode, 200);
      const renamed = unique("renamed");
      assert.equal((await user.replace({ id: renamed })).resource.id, renamed);
      const { resources } = await database.users.readAll().fetchAll();
      assert.ok(resources.some((found) => found.id === renamed));
      assert.equal((await database.user(renamed).delete()).statusCode, 204);
      assert.deepEqual(await statusOf(() => database.user(renamed).read()), [404, 0]);
    });

    it("creates, reads, replaces, lists and deletes permissions", async () => {
      const { user } = await database.users.create({ id: unique("user") });
      const body = { id: unique("p"), permissionMode: PermissionMode.Read, resource: container.url };
      const { permission, resource } = await user.permissions.create(body);
      assert.match(resource._token, /^type=resource&ver=1&sig=/);
      assert.equal((await permission.read()).resource._etag, resource._etag);
      const replaced = await permission.replace({ ...body, permissionMode: PermissionMode.All });
      assert.equal(replaced.resource.permissionMode, PermissionMode.All);
      assert.equal((await user.permissions.upsert(body)).resource._rid, resource._rid);
      const { resources } = await user.permissions.readAll({ maxItemCount: 1 }).fetchAll();
      assert.deepEqual(resources.map((found) => found.id), [body.id]);
      assert.deepEqual(await statusOf(() => user.permissions.create({ ...body, id: "another" })), [409, 0]);
      await permission.delete();
      assert.deepEqual(await statusOf(() => permission.read()), [404, 0]);
    });

    it("lets a reader read and a writer of one key write there", async () => {
      const { user } = await database.users.create({ id: unique("user") });
      const read = { id: unique("p"), permissionMode: PermissionMode.Read, resource: container.url };
      const { resource: reading } = await user.permissions.create(read, { resourceTokenExpirySeconds: 60 });
      const reader = holder(reading);
      const seen = reader.database(database.id).container(container.id);
      assert.equal((await seen.item("1", "a").read()).resource.pk, "a");
      assert.equal((await seen.items.readAll().fetchAll()).resources.length, 2);
      assert.deepEqual(await statusOf(() => seen.items.create({ id: "2", pk: "a" })), [403, 0]);

      const all = { ...read, id: unique("p"), permissionMode: PermissionMode.All, resourcePartitionKey: ["a"] };
      const { resource: writing, permission } = await user.permissions.create(all);
      const writer = holder(writing);
      const own = writer.database(database.id).container(container.id);
      assert.equal((await own.items.upsert({ id: "2", pk: "a" })).statusCode, 201);
      assert.equal((await own.item("2", "a").delete()).statusCode, 204);
      assert.deepEqual(await statusOf(() => own.item("1", "b").read()), [403, 0]);
      assert.deepEqual(await statusOf(() => own.items.create({ id: "3", pk: "b" })), [403, 0]);
      await permission.delete();
      assert.deepEqual(await statusOf(() => own.item("1", "a").read()), [403, 0]);
      reader.dispose();
      writer.dispose();
    });

    it("lets a holder of an item use that item, until the permission is replaced", async () => {
      const { user } = await database.users.create({ id: unique("user") });
      await container.items.upsert({ id: "other", pk: "a" });
      const body = {
        id: unique("p"),
        permissionMode: PermissionMode.All,
        resource: container.item("1", "a").url,
        resourcePartitionKey: ["a"],
      };
      const { resource, permission } = await user.permissions.create(body);
      const guest = holder(resource);
      const seen = guest.database(database.id).container(container.id);
      assert.equal((await seen.item("1", "a").replace({ id: "1", pk: "a", v: 1 })).resource.v, 1);
      assert.deepEqual(await statusOf(() => seen.item("other", "a").read()), [403, 0]);
      assert.deepEqual(await statusOf(() => seen.item("1", "b").read()), [403, 0]);
      assert.deepEqual(await statusOf(() => seen.items.create({ id: "new", pk: "a" })), [403, 0]);
      await permission.replace({ ...body, permissionMode: PermissionMode.Read });
      assert.deepEqual(await statusOf(() => seen.item("1", "a").read()), [403, 0]);
      guest.dispose();
      await container.item("other", "a").delete();
    });

    it("keeps a tenant inside the prefix of its key", async () => {
      const partitionKey = { paths: ["/tenant", "/user"], kind: PartitionKeyKind.MultiHash, version: 2 };
      const { container: tenants } = await database.containers.create({ id: unique("c"), partitionKey });
      for (const tenant of ["x", "y"]) await tenants.items.create({ id: "1", tenant, user: 1 });
      const { user } = await database.users.create({ id: unique("user") });
      const body = { id: unique("p"), permissionMode: PermissionMode.All, resource: tenants.url, resourcePartitionKey: ["x"] };
      const { resource } = await user.permissions.create(body);
      const tenant = holder(resource, `dbs/${database.id}/colls/${tenants.id}`);
      const own = tenant.database(database.id).container(tenants.id);
      assert.equal((await own.item("1", ["x", 1]).read()).statusCode, 200);
      assert.equal((await own.items.create({ id: "2", tenant: "x", user: 2 })).statusCode, 201);
      assert.deepEqual(await statusOf(() => own.item("1", ["y", 1]).read()), [403, 0]);
      assert.deepEqual(await statusOf(() => own.items.create({ id: "2", tenant: "y", user: 2 })), [403, 0]);
      tenant.dispose();
    });

    it("does not tell a holder what else exists", async () => {
      const { user } = await database.users.create({ id: unique("user") });
      const body = { id: unique("p"), permissionMode: PermissionMode.All, resource: container.url };
      const { resource } = await user.permissions.create(body);
      const { container: other } = await database.containers.create({ id: unique("c"), partitionKey: "/pk" });
      for (const id of [other.id, "absent"]) {
        const stranger = holder(resource, `dbs/${database.id}/colls/${id}`);
        const place = stranger.database(database.id).container(id);
        assert.deepEqual(await statusOf(() => place.item("1", "a").read()), [403, 0]);
        assert.deepEqual(await statusOf(() => place.read()), [403, 0]);
        stranger.dispose();
      }
    });

    for (const kind of ["storedProcedures", "triggers", "userDefinedFunctions"]) {
      it(`keeps ${kind}`, async () => {
        const scripts = container.scripts[kind];
        const id = unique("script");
        const body = { id, body: function () { return 1; }, triggerType: "Post", triggerOperation: "Delete" };
        const { resource, statusCode } = await scripts.create(body);
        assert.equal(statusCode, 201);
        assert.match(resource.body, /return 1/);
        const one = container.scripts[kind.replace(/s$/, "")](id);
        assert.equal((await one.read()).resource._rid, resource._rid);
        const replaced = await one.replace({ ...resource, body: "function () { return 2; }" });
        assert.match(replaced.resource.body, /return 2/);
        const { resources } = await scripts.readAll().fetchAll();
        assert.ok(resources.some((found) => found.id === id));
        assert.equal((await one.delete()).statusCode, 204);
        assert.deepEqual(await statusOf(() => one.read()), [404, 0]);
      });
    }

    it("finds the offer of a container by a query", async () => {
      const { container: made } = await database.containers.create({ id: unique("c"), partitionKey: "/pk", throughput: 900 });
      const { resource: offer } = await made.readOffer();
      assert.equal(offer.content.offerThroughput, 900);
      const body = { ...offer, content: { ...offer.content, offerThroughput: 1000 } };
      await client.offer(offer.id).replace(body);
      assert.equal((await made.readOffer()).resource.content.offerThroughput, 1000);
      const { database: shared } = await client.databases.create({ id: unique("db"), throughput: 800 });
      assert.equal((await shared.readOffer()).resource.content.offerThroughput, 800);
      await shared.delete();
    });

    it("queries databases, containers, users and scripts", async () => {
      const { resource: made, container } = await database.containers.create({ id: unique("c"), partitionKey: "/pk" });
      const byId = (id) => ({ query: "SELECT * FROM root r WHERE r.id = @id", parameters: [{ name: "@id", value: id }] });
      assert.deepEqual((await database.containers.query(byId(made.id)).fetchAll()).resources, [made]);
      const databases = await client.databases.query(byId(database.id)).fetchAll();
      assert.deepEqual(databases.resources.map((found) => found.id), [database.id]);
      const { resource: user } = await database.users.create({ id: unique("u") });
      assert.deepEqual((await database.users.query(byId(user.id)).fetchAll()).resources, [user]);
      await container.scripts.storedProcedures.create({ id: "s", body: "function () {}" });
      const names = await container.scripts.storedProcedures.query("SELECT VALUE c.id FROM c").fetchAll();
      assert.deepEqual(names.resources, ["s"]);
      assert.deepEqual((await container.conflicts.query("SELECT * FROM c").fetchAll()).resources, []);
      assert.deepEqual(await statusOf(() => database.containers.query("SELECT").fetchAll()), [400, 0]);
    });

    it("changes throughput through the offer", async () => {
      const { resource: made } = await container.read();
      const { resources } = await client.offers.readAll().fetchAll();
      const found = resources.find((offer) => offer.offerResourceId === made._rid);
      const offer = client.offer(found.id);
      const body = { ...found, content: { ...found.content, offerThroughput: 700 } };
      assert.equal((await offer.replace(body)).resource.content.offerThroughput, 700);
      assert.equal((await offer.read()).resource.content.offerThroughput, 700);
      body.content.offerThroughput = 350;
      assert.deepEqual(await statusOf(() => offer.replace(body)), [400, 0]);
    });

    it("keeps autoscale and what it was made from", async () => {
      const { resource: made } = await database.containers.create({ id: unique("c"), partitionKey: "/pk", maxThroughput: 4000 });
      const { resources } = await client.offers.readAll().fetchAll();
      const found = resources.find((offer) => offer.offerResourceId === made._rid);
      assert.equal(found.content.offerAutopilotSettings.maxThroughput, 4000);
      const offer = client.offer(found.id);
      const larger = { ...found, content: { offerThroughput: -1, offerAutopilotSettings: { maxThroughput: 6000 } } };
      assert.equal((await offer.replace(larger)).resource.content.offerAutopilotSettings.maxThroughput, 6000);
      larger.content.offerAutopilotSettings.maxThroughput = 6500;
      assert.deepEqual(await statusOf(() => offer.replace(larger)), [400, 0]);
    });

    it("has no conflicts", async () => {
      assert.deepEqual((await container.conflicts.readAll().fetchAll()).resources, []);
      assert.deepEqual(await statusOf(() => container.conflict("x").delete()), [404, 0]);
    });

    it("keeps vectors, texts and computed properties", async () => {
      const definition = {
        id: unique("c"),
        partitionKey: "/pk",
        indexingPolicy: {
          indexingMode: "consistent",
          automatic: true,
          includedPaths: [{ path: "/*" }],
          excludedPaths: [{ path: '/"_etag"/?' }, { path: "/v/*" }],
          vectorIndexes: [{ path: "/v", type: "quantizedFlat" }],
          fullTextIndexes: [{ path: "/text" }],
        },
        vectorEmbeddingPolicy: {
          vectorEmbeddings: [{ path: "/v", dataType: "float32", dimensions: 16, distanceFunction: "cosine" }],
        },
        fullTextPolicy: { defaultLanguage: "en-US", fullTextPaths: [{ path: "/text", language: "en-US" }] },
        computedProperties: [{ name: "lower", query: "SELECT VALUE LOWER(c.name) FROM c" }],
      };
      const { container: made } = await database.containers.create(definition);
      for (let round = 0; round < 2; round++) {
        const { resource } = await made.read();
        for (const name of ["indexingPolicy", "vectorEmbeddingPolicy", "fullTextPolicy", "computedProperties"]) {
          assert.deepEqual(resource[name], definition[name]);
        }
        await made.replace({ ...resource, defaultTtl: 60 });
      }
      const contradiction = { ...definition, id: unique("c"), vectorEmbeddingPolicy: undefined };
      assert.deepEqual(await statusOf(() => database.containers.create(contradiction)), [400, 0]);
    });

    it("keeps policies and refuses those that make no sense", async () => {
      const indexingPolicy = {
        indexingMode: "consistent",
        automatic: true,
        includedPaths: [{ path: "/*" }],
        excludedPaths: [{ path: '/"_etag"/?' }],
        compositeIndexes: [[{ path: "/a", order: "ascending" }, { path: "/b", order: "descending" }]],
      };
      const made = await database.containers.create({ id: unique("c"), partitionKey: "/pk", indexingPolicy });
      assert.deepEqual(made.resource.indexingPolicy, indexingPolicy);
      assert.equal((await made.container.replace({ ...made.resource, defaultTtl: -1 })).resource.defaultTtl, -1);
      const odd = { ...indexingPolicy, includedPaths: [{ path: "/a" }] };
      const definition = { id: unique("c"), partitionKey: "/pk", indexingPolicy: odd };
      assert.deepEqual(await statusOf(() => database.containers.create(definition)), [400, 0]);
    });

    it("keeps keys and items that the client encrypts", async () => {
      const encrypting = server.client(scheme, { clientEncryptionOptions: { keyEncryptionKeyResolver: resolver } });
      const secrets = encrypting.database(database.id);
      const metadata = {
        type: "AZURE_KEY_VAULT",
        name: "name",
        value: "https://vault/key",
        algorithm: KeyEncryptionAlgorithm.RSA_OAEP,
      };
      const id = unique("key");
      const algorithm = EncryptionAlgorithm.AEAD_AES_256_CBC_HMAC_SHA256;
      await secrets.createClientEncryptionKey(id, algorithm, metadata);
      const read = await secrets.readClientEncryptionKey(id);
      assert.equal(read.resource.id, id);
      const path = {
        path: "/secret",
        clientEncryptionKeyId: id,
        encryptionType: "Randomized",
        encryptionAlgorithm: algorithm,
      };
      const { container: sealed } = await secrets.containers.create({
        id: unique("c"),
        partitionKey: "/pk",
        clientEncryptionPolicy: { includedPaths: [path], policyFormatVersion: 2 },
      });
      await sealed.items.create({ id: "1", pk: "a", secret: "the word" });
      const { resource } = await sealed.item("1", "a").read();
      assert.equal(resource.secret, "the word");
      const stored = await client.database(database.id).container(sealed.id).item("1", "a").read();
      assert.notEqual(stored.resource.secret, "the word");
      encrypting.dispose();
    });
  });
}
