// The client under test names itself: the table of clients is made from this line.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, it } from "node:test";
import { TableServiceClient } from "@azure/data-tables";
import { SCHEMES, Service, all } from "../support/table.js";

const service = new Service();
before(() => service.start());
after(() => service.dispose());

it("names its version and the version of its protocol", async () => {
  const manifest = new URL("../node_modules/@azure/data-tables/package.json", import.meta.url);
  const { version } = JSON.parse(readFileSync(manifest, "utf8"));
  let protocol;
  const recorder = { name: "recorder", sendRequest: (request, next) => ((protocol = request.headers.get("x-ms-version")), next(request)) };
  const options = { ...service.options(), additionalPolicies: [{ policy: recorder, position: "perCall" }] };
  const client = new TableServiceClient(service.endpoint(SCHEMES[0]), service.credential(), options);
  await all(client.listTables());
  console.log(`client ${JSON.stringify({ client: "@azure/data-tables", version, language: "JavaScript", protocol })}`);
  assert.match(protocol, /^\d{4}-\d{2}-\d{2}$/);
});
