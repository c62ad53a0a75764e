// The server under test as a child process that lets one origin in.

import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import tls from "node:tls";
import { fileURLToPath } from "node:url";

export const KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
const READY_MS_MAX = 30_000;

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../../..");

/** The program to test: the release build, or what the environment names. */
function program() {
  const file = process.env.PERIHELION_BIN || path.join(root, "target/release/perihelion");
  if (!existsSync(file)) {
    throw new Error(`no server at ${file}: run \`cargo build --release -p perihelion\` first`);
  }
  return file;
}

/** One server and its data folder; the port is chosen at the first start and kept at later ones. */
export class Server {
  constructor(...flags) {
    this.folder = mkdtempSync(path.join(tmpdir(), "conformance-"));
    this.flags = flags;
    this.port = 0;
  }

  async start() {
    const log = openSync(path.join(this.folder, "log"), "a");
    const places = ["--data", path.join(this.folder, "data"), "--nosql", `127.0.0.1:${this.port}`];
    this.process = spawn(program(), [...places, ...this.flags], { stdio: ["ignore", "pipe", log] });
    this.ended = new Promise((resolve) => this.process.once("exit", (code, signal) => resolve(code ?? signal)));
    const ready = new Promise((resolve) => {
      createInterface({ input: this.process.stdout }).on("line", (line) => {
        const found = /^ready nosql=\S+?:(\d+)\b/.exec(line);
        if (found) resolve(Number(found[1]));
      });
    });
    const late = new Promise((resolve) => setTimeout(resolve, READY_MS_MAX, "late").unref());
    const first = await Promise.race([ready, this.ended.then((code) => `ended with ${code}`), late]);
    if (typeof first !== "number") {
      throw new Error(`the server is not ready: ${first}\n${readFileSync(path.join(this.folder, "log"), "utf8").slice(-4000)}`);
    }
    this.port = first;
    return this;
  }

  endpoint(scheme) {
    return `${scheme}://127.0.0.1:${this.port}/`;
  }

  /** The hash by which a browser can be told to trust the server's certificate, checked against its own authority. */
  async certificateHash() {
    const authority = await fetch(`${this.endpoint("http")}_explorer/emulator.pem`).then((answer) => answer.text());
    const certificate = await new Promise((resolve, reject) => {
      const socket = tls.connect({ host: "127.0.0.1", port: this.port, ca: authority }, () => {
        resolve(socket.getPeerX509Certificate());
        socket.end();
      });
      socket.on("error", reject);
    });
    const key = certificate.publicKey.export({ type: "spki", format: "der" });
    return createHash("sha256").update(key).digest("base64");
  }

  async restart() {
    this.process.kill("SIGTERM");
    const code = await this.ended;
    if (code !== 0) throw new Error(`the server ended with ${code}`);
    await this.start();
  }

  /** Ends it and removes its folder. */
  async dispose() {
    this.process.kill("SIGKILL");
    await this.ended;
    rmSync(this.folder, { recursive: true, force: true });
  }
}
