// `@azure/cosmos` 3.17, the last of the 3.x line, 2022 and 2023.

"use strict";

const sdk = require("@azure/cosmos");
const { version } = require("@azure/cosmos/package.json");
const { main } = require("../support/node/cosmos3_walk");

main(sdk, version, "continuationToken");
