// The feed of a container's items by hand, to compare the SDK's lists with: its own `readAll` is a query.

import { createHmac } from "node:crypto";
import http from "node:http";
import https from "node:https";
import { KEY } from "./server.js";

/** One page: its items and where to go on. */
export async function page(server, scheme, container, { maxItemCount = 1000, continuationToken, partitionKey } = {}) {
  const link = `dbs/${container.database.id}/colls/${container.id}`;
  const date = new Date().toUTCString();
  const text = `get\ndocs\n${link}\n${date.toLowerCase()}\n\n`;
  const signature = createHmac("sha256", Buffer.from(KEY, "base64")).update(text).digest("base64");
  const headers = {
    authorization: encodeURIComponent(`type=master&ver=1.0&sig=${signature}`),
    "x-ms-date": date,
    "x-ms-version": "2020-07-15",
    "x-ms-max-item-count": maxItemCount,
  };
  if (continuationToken) headers["x-ms-continuation"] = continuationToken;
  if (partitionKey !== undefined) headers["x-ms-documentdb-partitionkey"] = JSON.stringify([partitionKey]);
  const { status, answer, body } = await get(server, scheme, `/${link}/docs`, headers);
  if (status !== 200) throw Object.assign(new Error(body), { code: status });
  return { resources: JSON.parse(body).Documents, continuationToken: answer["x-ms-continuation"] };
}

/** All items, page by page. */
export async function all(server, scheme, container, options = {}) {
  const resources = [];
  let { continuationToken } = options;
  do {
    const next = await page(server, scheme, container, { ...options, continuationToken });
    resources.push(...next.resources);
    continuationToken = next.continuationToken;
  } while (continuationToken);
  return resources;
}

function get(server, scheme, path, headers) {
  return new Promise((resolve, reject) => {
    const library = scheme === "https" ? https : http;
    const request = library.get(new URL(path, server.endpoint(scheme)), { headers, ca: server.authority }, (response) => {
      let body = "";
      response.setEncoding("utf8").on("data", (chunk) => (body += chunk));
      response.on("end", () => resolve({ status: response.statusCode, answer: response.headers, body }));
    });
    request.on("error", reject);
  });
}
