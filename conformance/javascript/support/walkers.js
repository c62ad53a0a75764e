// Clients that work on one container until they are stopped, while it splits and the server is killed, and what they
// have seen.

import { ChangeFeedStartFrom, StatusCodes } from "@azure/cosmos";
import { eventually } from "./server.js";

const KEYS = 24;
/** Bounds the items of a writer; later writes replace them. */
const ITEMS_MAX = 300;
const PAGES_MAX = 1000;

const QUERY = "SELECT c.id, c.number FROM c ORDER BY c.number";

const entryOf = (map, id, make) => map.get(id) ?? map.set(id, make()).get(id);

export class Walkers {
  constructor(server) {
    this.server = server;
    /** Counts the beginnings and ends of outages: odd while the server is down. */
    this.outages = 0;
    /** What a client reports to have reached with each call that succeeds. */
    this.round = 0;
    this.clients = [];
    this.stopped = false;
    this.failures = [];
    /**
     * What the writers know of an item: its key, the acknowledged value, and the values whose writes met an outage.
     * These may be absent, or written twice by a retry of the SDK.
     */
    this.journal = new Map();
    /** The values of each item in the order of the change feed. */
    this.seen = new Map();
    this.drained = 0;
  }

  /** The container as a client of its own sees it. */
  container() {
    return this.server.client("http").database("d").container("c");
  }

  /** Runs a client until it is stopped. */
  start(work) {
    const client = { reached: 0 };
    const run = async () => {
      while (!this.stopped && this.failures.length === 0) await work(client);
    };
    client.ended = run().catch((error) => this.failures.push(error));
    this.clients.push(client);
  }

  /** Stops all clients at the end of what they do. */
  async stop() {
    this.stopped = true;
    await Promise.all(this.clients.map((client) => client.ended));
    this.check();
  }

  /** Makes a call: its result unless the connection broke in an outage, and whether it met one. */
  async call(client, call) {
    const { round, outages } = this;
    const metOutage = () => outages % 2 === 1 || this.outages !== outages;
    try {
      const result = await call();
      client.reached = round;
      return { result, metOutage: metOutage() };
    } catch (error) {
      const isRefusal = typeof error.code === "number";
      if (isRefusal || !metOutage()) throw error;
      return { metOutage: true };
    }
  }

  check() {
    if (this.failures.length > 0) throw this.failures[0];
  }

  /** Waits until each client has succeeded with a call that it began after now. */
  async everyoneGoesOn() {
    const round = ++this.round;
    const isReached = () => {
      this.check();
      return this.clients.every((client) => client.reached >= round);
    };
    await eventually(isReached, 60_000);
  }

  /** Kills the server and starts it again; the outage ends when each client has been served. */
  async crash() {
    this.outages++;
    await this.server.kill();
    await this.server.start();
    await this.everyoneGoesOn();
    this.outages++;
  }

  /** Creates items and replaces some of them. The number of an item never changes, its value grows with each write. */
  writer(index) {
    const container = this.container();
    let value = 0;
    return async (client) => {
      value++;
      const number = (value % 3 === 0 ? value / 3 : value) % ITEMS_MAX;
      const [id, pk] = [`${index}-${number}`, `k${number % KEYS}`];
      const item = { id, pk, number, value, padding: "x".repeat(200) };
      const { result, metOutage } = await this.call(client, () => container.items.upsert(item));
      const entry = entryOf(this.journal, id, () => ({ pk, acknowledged: 0, uncertain: [] }));
      if (metOutage) entry.uncertain.push(value);
      if (result) entry.acknowledged = value;
    };
  }

  /** Drains an ordered query page by page, each page from the continuation of the last one, over splits and outages. */
  querier() {
    const container = this.container();
    return async (client) => {
      const result = new Drained(this);
      let continuationToken;
      for (let page = 0; page < PAGES_MAX; page++) {
        const options = { enableQueryControl: true, maxItemCount: 50, continuationToken };
        const answer = await this.call(client, () => container.items.query(QUERY, options).fetchNext());
        if (!answer.result) continue; // from the same continuation
        result.add(answer.result.resources ?? []);
        ({ continuationToken } = answer.result);
        if (!continuationToken) return result.end();
      }
      throw new Error("a query does not end");
    };
  }

  /** Drains an ordered query with one iterator, over splits; after an outage it begins anew. */
  lister() {
    const container = this.container();
    return async (client) => {
      const result = new Drained(this);
      const pages = container.items.query(QUERY, { maxItemCount: 50, maxDegreeOfParallelism: 4 });
      for (let page = 0; page < PAGES_MAX && pages.hasMoreResults(); page++) {
        const answer = await this.call(client, () => pages.fetchNext());
        if (!answer.result) return;
        result.add(answer.result.resources ?? []);
      }
      result.end();
    };
  }

  /** Reads a page of the change feed. */
  follower() {
    const container = this.container();
    let changeFeedStartFrom = ChangeFeedStartFrom.Beginning();
    return async (client) => {
      const iterator = container.items.getChangeFeedIterator({ changeFeedStartFrom, maxItemCount: 100 });
      const { result } = await this.call(client, () => iterator.readNext());
      if (!result) return;
      changeFeedStartFrom = ChangeFeedStartFrom.Continuation(result.continuationToken);
      if (result.statusCode === StatusCodes.NotModified) return;
      for (const { id, value } of result.result) entryOf(this.seen, id, () => []).push(value);
    };
  }
}

/** The rows of an ordered query: what was acknowledged before it is there, once. */
class Drained {
  constructor(walkers) {
    this.walkers = walkers;
    this.expected = [...walkers.journal].filter(([, entry]) => entry.acknowledged > 0).map(([id]) => id);
    this.met = new Set();
    this.last = -1;
  }

  add(rows) {
    for (const { id, number } of rows) {
      if (this.met.has(id) || number < this.last) throw new Error(`a query has ${id} twice or out of order, after ${this.last}`);
      this.met.add(id);
      this.last = number;
    }
  }

  end() {
    const missing = this.expected.filter((id) => !this.met.has(id));
    if (missing.length > 0) throw new Error(`a query lacks ${missing.slice(0, 5)}`);
    this.walkers.drained++;
  }
}
