// A site whose page holds the SDK, and a browser that looks at it.

import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { chromium } from "playwright-core";

const folder = path.dirname(fileURLToPath(import.meta.url));
const PLACES = [process.env.CHROMIUM_BIN, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
const FLAGS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** A web server with the bundled page; `origin` is what a browser tells of it. */
export class Site {
  async start() {
    const bundled = await build({
      entryPoints: [path.join(folder, "page.js")],
      bundle: true,
      platform: "browser",
      format: "iife",
      write: false,
      logLevel: "error",
    });
    const script = bundled.outputFiles[0].text;
    this.server = createServer((request, response) => {
      const isScript = request.url === "/page.js";
      response.setHeader("content-type", isScript ? "text/javascript" : "text/html; charset=utf-8");
      response.end(isScript ? script : '<!doctype html><title>page</title><script src="/page.js"></script>');
    });
    await new Promise((resolve) => this.server.listen(0, "127.0.0.1", resolve));
    this.origin = `http://127.0.0.1:${this.server.address().port}`;
    return this;
  }

  stop() {
    this.server.closeAllConnections();
    this.server.close();
  }
}

/** A browser with an empty profile that trusts certificates of these hashes beside the usual ones. */
export class Browser {
  async start(certificateHashes) {
    const program = PLACES.find((place) => place && existsSync(place));
    if (!program) throw new Error("no chromium: install the Debian package, or name one in CHROMIUM_BIN");
    this.profile = mkdtempSync(path.join(tmpdir(), "conformance-profile-"));
    const args = [...FLAGS, `--ignore-certificate-errors-spki-list=${certificateHashes.join(",")}`];
    this.context = await chromium.launchPersistentContext(this.profile, { executablePath: program, args });
    return this;
  }

  async open(site) {
    const page = await this.context.newPage();
    await page.goto(site.origin);
    return page;
  }

  async stop() {
    await this.context.close();
    rmSync(this.profile, { recursive: true, force: true });
  }
}
