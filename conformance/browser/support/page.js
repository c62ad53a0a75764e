// What runs in the page: the SDK as a web application has it, and small words for tests.

import { BulkOperationType, CosmosClient, PartitionKeyDefinitionVersion, PartitionKeyKind } from "@azure/cosmos";

const SYSTEM = ["_rid", "_self", "_etag", "_ts", "_attachments"];

Object.assign(globalThis, {
  BulkOperationType,
  CosmosClient,
  PartitionKeyDefinitionVersion,
  PartitionKeyKind,
  plain: (item) => Object.fromEntries(Object.entries(item).filter(([name]) => !SYSTEM.includes(name))),
  statusOf: async (call) => {
    try {
      await call();
    } catch (error) {
      return [Number(error.code), Number(error.substatus ?? 0)];
    }
    throw new Error("the call was not refused");
  },
});
