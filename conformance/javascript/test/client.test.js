// The client under test names itself: the table of clients is made from this line.

import assert from "node:assert/strict";
import { it } from "node:test";
import { Constants } from "@azure/cosmos";

it("names its version and the version of its protocol", () => {
  const { CurrentVersion: protocol, SDKVersion: version } = Constants;
  console.log(`client ${JSON.stringify({ client: "@azure/cosmos", version, language: "JavaScript", protocol })}`);
  assert.match(protocol, /^\d{4}-\d{2}-\d{2}$/);
  assert.match(version, /^\d+\.\d+\.\d+/);
});
