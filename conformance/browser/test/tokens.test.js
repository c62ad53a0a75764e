// A page that holds no key: its application gives it a resource token, or a token of an identity provider.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, beforeEach, describe, it } from "node:test";
import { CosmosClient } from "@azure/cosmos";
import { Issuer } from "../../javascript/support/issuer.js";
import { Browser, Site } from "../support/browser.js";
import { KEY, Server } from "../support/server.js";

const site = new Site();
const browser = new Browser();
const issuer = new Issuer();
const id = "c";
let server, application, database, container, user;
/** The kinds of credentials that left the page. */
const kinds = new Set();

before(async () => {
  await site.start();
  const settings = issuer.settings([["reader", "reader", "/dbs/db"]]);
  server = await new Server("--cors", site.origin, "--identity", settings).start();
  await browser.start([await server.certificateHash()]);
  // What runs on the application's own machine, where the key is safe.
  application = new CosmosClient({ endpoint: server.endpoint("http"), key: KEY });
  ({ database } = await application.databases.create({ id: "db" }));
  ({ container } = await database.containers.create({ id, partitionKey: "/pk" }));
  for (const pk of ["a", "b"]) await container.items.create({ id: "1", pk });
});
after(async () => {
  application.dispose();
  await browser.stop();
  site.stop();
  issuer.dispose();
  await server.dispose();
});
beforeEach(async () => {
  kinds.clear();
  ({ user } = await database.users.create({ id: `user-${randomUUID()}` }));
});

/** A new page with a client made of these options and the endpoint; it sees one container. */
async function opened(scheme, options) {
  const page = await browser.open(site);
  page.on("request", (request) => {
    const kind = /^type=(\w+)&/.exec(decodeURIComponent(request.headers().authorization ?? ""));
    if (kind) kinds.add(kind[1]);
  });
  await page.evaluate(
    ([endpoint, { token, link, bearer }]) => {
      const expiresOnTimestamp = Date.now() + 600_000;
      const credential = bearer
        ? { aadCredentials: { getToken: async () => ({ token: bearer, expiresOnTimestamp }) } }
        : { resourceTokens: { [link]: token } };
      globalThis.container = new CosmosClient({ endpoint, ...credential }).database("db").container("c");
    },
    [server.endpoint(scheme), options],
  );
  return page;
}

const granted = async (permissionMode, resource, key) => {
  const body = { id: "p", permissionMode, resource, ...(key && { resourcePartitionKey: key }) };
  const made = await user.permissions.create(body, { resourceTokenExpirySeconds: 600 });
  return { token: made.resource._token, link: `dbs/db/colls/${id}`, permission: made.permission };
};

const options = ({ token, link }) => ({ token, link });

for (const scheme of ["http", "https"]) {
  describe(`a page without a key over ${scheme}`, () => {
    it("reads with a reader's token and does not write", async () => {
      const grant = await granted("Read", container.url);
      const page = await opened(scheme, options(grant));
      const seen = await page.evaluate(async () => ({
        read: (await container.item("1", "b").read()).statusCode,
        listed: (await container.items.readAll().fetchAll()).resources.length,
        write: await statusOf(() => container.items.upsert({ id: "1", pk: "a" })),
        drop: await statusOf(() => container.delete()),
      }));
      assert.deepEqual(seen, { read: 200, listed: 2, write: [403, 0], drop: [403, 0] });
      assert.deepEqual([...kinds], ["resource"]);
      await page.close();
    });

    it("writes inside its own key only, until the application takes that back", async () => {
      const grant = await granted("All", container.url, ["a"]);
      const page = await opened(scheme, options(grant));
      const seen = await page.evaluate(async () => ({
        created: (await container.items.create({ id: "2", pk: "a" })).statusCode,
        deleted: (await container.item("2", "a").delete()).statusCode,
        foreignRead: await statusOf(() => container.item("1", "b").read()),
        foreignWrite: await statusOf(() => container.items.create({ id: "2", pk: "b" })),
      }));
      assert.deepEqual(seen, { created: 201, deleted: 204, foreignRead: [403, 0], foreignWrite: [403, 0] });
      await grant.permission.delete();
      assert.deepEqual(await page.evaluate(() => statusOf(() => container.item("1", "a").read())), [403, 0]);
      assert.deepEqual([...kinds], ["resource"]);
      await page.close();
    });

    it("is refused with a token that was altered", async () => {
      const grant = options(await granted("Read", container.url));
      const last = grant.token.length - 6;
      grant.token = grant.token.slice(0, last) + (grant.token[last] === "A" ? "B" : "A") + grant.token.slice(last + 1);
      const page = await opened(scheme, grant);
      assert.deepEqual(await page.evaluate(() => statusOf(() => container.item("1", "a").read())), [401, 0]);
      await page.close();
    });
  });
}

describe("a page with a token of an identity provider", () => {
  it("has the rights of its reader", async () => {
    const page = await opened("https", { bearer: issuer.token("reader") });
    const seen = await page.evaluate(async () => ({
      read: (await container.item("1", "a").read()).statusCode,
      write: await statusOf(() => container.items.upsert({ id: "1", pk: "a" })),
    }));
    assert.deepEqual(seen, { read: 200, write: [403, 5302] });
    assert.deepEqual([...kinds], ["aad"]);
    await page.close();
  });
});
