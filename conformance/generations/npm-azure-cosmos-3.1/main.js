// `@azure/cosmos` 3.1, the JavaScript client of 2019.

"use strict";

const sdk = require("@azure/cosmos");
const { version } = require("@azure/cosmos/package.json");
const { main } = require("../support/node/cosmos3_walk");

main(sdk, version, "continuation");
