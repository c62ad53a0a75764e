// An identity provider for tests: one key, the server's settings about it, and tokens signed with it.

import { generateKeyPairSync, sign } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";

const NAME = "https://issuer.example";
const AUDIENCE = "https://cosmos.example";
const TOKEN_SECONDS = 3600;

const encoded = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");

export class Issuer {
  constructor() {
    Object.assign(this, generateKeyPairSync("rsa", { modulusLength: 2048 }));
  }

  /** Writes what the server reads, with these roles (principal, role, scope), and answers the file's path. */
  settings(assignments) {
    this.folder = mkdtempSync(path.join(tmpdir(), "conformance-issuer-"));
    const key = { ...this.publicKey.export({ format: "jwk" }), use: "sig", kid: "1" };
    writeFileSync(path.join(this.folder, "keys.json"), JSON.stringify({ keys: [key] }));
    const rows = assignments.map(([principal, role, scope]) => `{ principal = "${principal}", role = "${role}", scope = "${scope}" }`);
    const lines = [
      `issuer = "${NAME}"`,
      `audiences = ["${AUDIENCE}"]`,
      'jwks-file = "keys.json"',
      'algorithms = ["RS256"]',
      `assignments = [${rows.join(", ")}]`,
    ];
    const file = path.join(this.folder, "identity.toml");
    writeFileSync(file, lines.join("\n"));
    return file;
  }

  dispose() {
    rmSync(this.folder, { recursive: true, force: true });
  }

  token(principal) {
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: NAME, aud: AUDIENCE, oid: principal, nbf: now - 5, exp: now + TOKEN_SECONDS };
    const text = `${encoded({ typ: "JWT", alg: "RS256", kid: "1" })}.${encoded(claims)}`;
    return `${text}.${sign("RSA-SHA256", Buffer.from(text), this.privateKey).toString("base64url")}`;
  }

  /** What a client of this principal asks for tokens. */
  credential(principal) {
    const getToken = async () => ({ token: this.token(principal), expiresOnTimestamp: Date.now() + TOKEN_SECONDS * 1000 });
    return { getToken };
  }
}
