// The server under test as a child process, and clients of it over plain HTTP and TLS.

import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import https from "node:https";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { randomUUID } from "node:crypto";
import { CosmosClient } from "@azure/cosmos";

export const KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
export const SCHEMES = ["http", "https"];
const READY_MS_MAX = 30_000;

const root = path.resolve(import.meta.dirname ?? path.dirname(new URL(import.meta.url).pathname), "../../..");

/** The program to test: the release build, or what the environment names. */
function program() {
  const file = process.env.PERIHELION_BIN || path.join(root, "target/release/perihelion");
  if (!existsSync(file)) {
    throw new Error(`no server at ${file}: run \`cargo build --release -p perihelion\` first`);
  }
  return file;
}

export const unique = (prefix) => `${prefix}-${randomUUID().slice(0, 12)}`;

/** One server and its data folder; its ports are chosen at the first start and the one of NoSQL is kept at later ones. */
export class Server {
  /** In a mode of the program, with more flags. */
  constructor(mode = "dev", ...flags) {
    this.mode = mode;
    this.flags = flags;
    this.folder = mkdtempSync(path.join(tmpdir(), "conformance-"));
    this.port = 0;
  }

  async start() {
    const log = openSync(path.join(this.folder, "log"), "a");
    const places = ["--data", this.data(), "--nosql", `127.0.0.1:${this.port}`];
    this.process = spawn(program(), [this.mode, ...places, ...this.flags], { stdio: ["ignore", "pipe", log] });
    this.ended = new Promise((resolve) => this.process.once("exit", (code, signal) => resolve(code ?? signal)));
    const ready = new Promise((resolve) => {
      createInterface({ input: this.process.stdout }).on("line", (line) => {
        const found = /^ready nosql=https:\/\/127\.0\.0\.1:(\d+)/.exec(line);
        if (!found) return;
        this.tablePort = Number(/ table=https:\/\/127\.0\.0\.1:(\d+)/.exec(line)?.[1] ?? 0);
        resolve(Number(found[1]));
      });
    });
    const late = new Promise((resolve) => setTimeout(resolve, READY_MS_MAX, "late").unref());
    const first = await Promise.race([ready, this.ended.then((code) => `ended with ${code}`), late]);
    if (typeof first !== "number") {
      throw new Error(`the server is not ready: ${first}\n${this.log()}`);
    }
    this.port = first;
    this.authority = await fetch(`http://127.0.0.1:${this.port}/_explorer/emulator.pem`).then((answer) => answer.text());
    return this;
  }

  data() {
    return path.join(this.folder, "data");
  }

  /** Does something with the account's keys, as an operator would, and answers what the program printed. */
  keys(verb, name) {
    return execFileSync(program(), ["keys", verb, name, "--data", this.data()], { encoding: "utf8" }).trim();
  }

  log() {
    return readFileSync(path.join(this.folder, "log"), "utf8").slice(-4000);
  }

  async stop() {
    this.process.kill("SIGTERM");
    return this.ended;
  }

  async kill() {
    this.process.kill("SIGKILL");
    return this.ended;
  }

  /** Ends it and removes its folder. */
  async dispose() {
    await this.kill();
    rmSync(this.folder, { recursive: true, force: true });
  }

  endpoint(scheme) {
    return `${scheme}://127.0.0.1:${this.port}/`;
  }

  /** An SDK client; over TLS it trusts the server's own authority and nothing less. */
  client(scheme, options = {}) {
    const agent = scheme === "https" ? new https.Agent({ ca: this.authority, keepAlive: true }) : undefined;
    return new CosmosClient({ endpoint: this.endpoint(scheme), key: KEY, agent, ...options });
  }
}

/** Status and substatus of a call that must be refused. */
export async function statusOf(call) {
  try {
    await call();
  } catch (error) {
    return [Number(error.code), Number(error.substatus ?? 0)];
  }
  throw new Error("the call was not refused");
}

const SYSTEM = ["_rid", "_self", "_etag", "_ts", "_attachments"];

/** The item without system properties. */
export const plain = (item) => Object.fromEntries(Object.entries(item).filter(([name]) => !SYSTEM.includes(name)));

/** Waits until the condition holds; the bound is only for a server that never gets there. */
export async function eventually(condition, milliseconds = 20_000) {
  const deadline = Date.now() + milliseconds;
  while (Date.now() < deadline) {
    if (await condition()) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error(`not within ${milliseconds} ms`);
}
