// A container that splits while clients write, query and follow the change feed, and the server is killed twice. No
// error but that of a broken connection may reach the application, and nothing may be lost or come twice.

import assert from "node:assert/strict";
import { after, before, it } from "node:test";
import { control, partitions, partitionsPath } from "../support/control.js";
import { Server, eventually } from "../support/server.js";
import { Walkers } from "../support/walkers.js";

const PARTITIONS = 8;
const WRITERS = 3;
/** The number of documents from which on a partition is worth a split. */
const SPLIT_FROM = 40;
/** More turns than splits, for the first documents to arrive. */
const TURNS_MAX = 2000;

const server = new Server();
before(() => server.start());
after(() => server.dispose());

const isUnfinished = async (container) =>
  (await partitions(server, container)).some(({ state }) => state === "splitting" || state === "separating");

/** Kills the server as soon as a split is seen to be at work; answers how often it was killed. */
async function crashIn(splitting, walkers, container) {
  let isDone = false;
  const ended = splitting.catch(() => {}).finally(() => (isDone = true));
  let unfinished = false;
  while (!unfinished && !isDone) unfinished = await isUnfinished(container);
  // The split itself may be too short to be seen; its children go on sharing rows for a while.
  unfinished ||= await isUnfinished(container);
  if (unfinished) await walkers.crash();
  await ended;
  return unfinished ? 1 : 0;
}

/** Splits the largest partition again and again, and kills the server twice, once while a split is unfinished. */
async function splitAll(walkers, container) {
  let kills = 0;
  for (let turn = 0; turn < TURNS_MAX; turn++) {
    await walkers.everyoneGoesOn();
    const found = await partitions(server, container);
    if (found.length >= PARTITIONS) return kills;
    const largest = found.reduce((most, one) => (one.documents > most.documents ? one : most));
    if (largest.documents < SPLIT_FROM) continue;
    const splitting = control(server, "POST", `${partitionsPath(container)}/${largest.id}/split`);
    if (kills === 1 && found.length >= 4) {
      kills += await crashIn(splitting, walkers, container);
      continue;
    }
    assert.equal((await splitting).children.length, 2);
    if (kills === 0 && found.length >= 3) {
      await walkers.crash();
      kills++;
    }
  }
  throw new Error("the splits take too long");
}

/** The journal, the items, their number and the change feed agree. */
async function check(walkers, container, follow) {
  const { resources: items } = await container.items.readAll().fetchAll();
  const { resources: count } = await container.items.query("SELECT VALUE COUNT(1) FROM c").fetchAll();
  assert.deepEqual(count, [items.length]);
  const values = new Map(items.map((item) => [item.id, item.value]));
  assert.equal(values.size, items.length);
  for (const [id, value] of values) {
    const entry = walkers.journal.get(id);
    assert.ok(entry && [entry.acknowledged, ...entry.uncertain].includes(value), `${id} is ${value}, not ${JSON.stringify(entry)}`);
    assert.equal((await container.item(id, entry.pk).read()).resource.value, value);
  }
  for (const [id, { acknowledged }] of walkers.journal) {
    assert.ok(acknowledged === 0 || values.get(id) >= acknowledged, `${id} is ${values.get(id)}, not ${acknowledged}`);
  }
  await eventually(async () => {
    await follow({});
    return [...values].every(([id, value]) => walkers.seen.get(id)?.at(-1) === value);
  });
  for (const [id, seen] of walkers.seen) {
    const { uncertain } = walkers.journal.get(id);
    const isInOrder = (value, index) =>
      index === 0 || seen[index - 1] < value || (seen[index - 1] === value && uncertain.includes(value));
    assert.ok(seen.every(isInOrder), `the feed of ${id} is out of order or repeats: ${seen}`);
  }
}

it("nobody notices that a container splits", { timeout: 180_000 }, async () => {
  const client = server.client("http");
  const { database } = await client.databases.create({ id: "d" });
  const { container } = await database.containers.create({ id: "c", partitionKey: { paths: ["/pk"], version: 2 } });
  const walkers = new Walkers(server);
  for (let index = 0; index < WRITERS; index++) walkers.start(walkers.writer(index));
  walkers.start(walkers.querier());
  walkers.start(walkers.lister());
  const follow = walkers.follower();
  walkers.start(follow);
  const kills = await splitAll(walkers, container).finally(() => walkers.stop());
  assert.equal(kills, 2);
  assert.ok(walkers.drained > 0);
  await check(walkers, container, follow);
  assert.ok((await partitions(server, container)).every((partition) => partition.parents.length > 0));
});
