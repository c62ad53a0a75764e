// The Table service under test: our server, or Azurite at the address that `PERIHELION_TABLE_PEER` names.
//
// Azurite stands for the real service. Where its answer differs from the documented one, a test names both with `answer`.

import { readFileSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { AzureNamedKeyCredential, TableClient, TableServiceClient } from "@azure/data-tables";
import { Server } from "./server.js";

export const ACCOUNT = "devstoreaccount1";
export const ACCOUNT_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
const PEER = (process.env.PERIHELION_TABLE_PEER ?? "").replace(/\/$/, "");
export const IS_AZURITE = PEER !== "";
export const SCHEMES = IS_AZURITE ? [PEER.split(":")[0]] : ["http", "https"];
export const DATA = JSON.parse(readFileSync(new URL("../../table.json", import.meta.url), "utf8"));

/** The expected answer. */
export const answer = (documented, azurite) => (IS_AZURITE ? azurite : documented);

/** For the options of a test that cannot pass against Azurite; it is never left out against our server. */
export const azuriteLacks = (what) => ({ skip: IS_AZURITE && `Azurite lacks ${what}` });

export const unique = (prefix = "t") => `${prefix}${randomUUID().replaceAll("-", "").slice(0, 12)}`;

/** The service, and clients of it. */
export class Service {
  async start() {
    if (!IS_AZURITE) this.server = await new Server("dev", "--table", "127.0.0.1:0").start();
    return this;
  }

  async dispose() {
    await this.server?.dispose();
  }

  port() {
    return this.server?.tablePort ?? Number(PEER.split(":")[2]);
  }

  endpoint(scheme, account = ACCOUNT) {
    return `${scheme}://127.0.0.1:${this.port()}/${account}`;
  }

  /** Over TLS a client trusts the server's own authority and nothing less; no call is tried twice. */
  options() {
    const tlsOptions = this.server ? { ca: this.server.authority } : undefined;
    return { allowInsecureConnection: true, retryOptions: { maxRetries: 0 }, tlsOptions };
  }

  credential(name = ACCOUNT, key = ACCOUNT_KEY) {
    return new AzureNamedKeyCredential(name, key);
  }

  client(scheme, credential = this.credential(), account = ACCOUNT) {
    return new TableServiceClient(this.endpoint(scheme, account), credential, this.options());
  }

  table(scheme, name, credential = this.credential(), account = ACCOUNT) {
    return new TableClient(this.endpoint(scheme, account), name, credential, this.options());
  }
}

/** Status and code of a call that must be refused. */
export async function refused(call) {
  try {
    await call();
  } catch (error) {
    if (error.statusCode === undefined) throw error;
    return [error.statusCode, codeOf(error)];
  }
  throw new Error("the call was not refused");
}

/** The code in the body; the client reads it in some of its operations only. */
function codeOf(error) {
  const body = error.details ?? {};
  const text = typeof error.message === "string" ? error.message : "";
  return (
    body.odataError?.code ?? body["odata.error"]?.code ?? error.code ?? /"code":\s*"(\w+)"/.exec(text)?.[1] ?? /<Code>(\w+)</.exec(text)?.[1]
  );
}

/** All items of an iterator. */
export async function all(iterator) {
  const found = [];
  for await (const item of iterator) found.push(item);
  return found;
}

/** All pages of an iterator, as lists. */
export async function pages(iterator, settings) {
  const found = [];
  for await (const page of iterator.byPage(settings)) found.push([...page]);
  return found;
}

const SERVICE = ["etag", "timestamp", "odata.metadata"];

/** An entity without what the service adds. */
export const plain = (entity) => Object.fromEntries(Object.entries(entity).filter(([name]) => !SERVICE.includes(name)));

export const keys = (entities) => entities.map(({ partitionKey, rowKey }) => [partitionKey, rowKey]);

/** A value of the shared data for the client: with its type, as text. */
export function toClient([type, text]) {
  switch (type) {
    case "Int32":
      return { type, value: text };
    case "Boolean":
      return text === "true";
    case "String":
      return text;
    default:
      return { type, value: text };
  }
}

/** A row of the shared data for the client. */
export function entity(row) {
  const { PartitionKey: partitionKey, RowKey: rowKey, ...rest } = row;
  const properties = Object.entries(rest).map(([name, value]) => [name, toClient(value)]);
  return { partitionKey, rowKey, ...Object.fromEntries(properties) };
}

export const inHours = (hours) => new Date(Date.now() + hours * 3_600_000);
