// The control API and the metrics: what the SDK does not tell of physical partitions.

import { KEY } from "./server.js";

/** A request to the control API; answers its body. */
export async function control(server, method, path) {
  const headers = { authorization: `Bearer ${KEY}` };
  const answer = await fetch(`${server.endpoint("http")}_control/${path}`, { method, headers });
  const body = await answer.text();
  if (answer.status !== 200) throw new Error(`${method} ${path}: ${answer.status} ${body}`);
  return JSON.parse(body);
}

export const partitionsPath = (container) => `dbs/${container.database.id}/colls/${container.id}/partitions`;

/** The physical partitions of a container. */
export const partitions = async (server, container) => (await control(server, "GET", partitionsPath(container))).partitions;

const SAMPLE = /^perihelion_partition_requests_total\{database="([^"]*)",container="([^"]*)",partition="([^"]*)"\} (\d+)/gm;

/** How many requests each partition of a container has had, from the metrics. */
export async function requestsByPartition(server, container) {
  const text = await fetch(`${server.endpoint("http")}metrics`).then((answer) => answer.text());
  const samples = [...text.matchAll(SAMPLE)].filter(([, database, name]) => database === container.database.id && name === container.id);
  return Object.fromEntries(samples.map(([, , , partition, count]) => [partition, Number(count)]));
}
