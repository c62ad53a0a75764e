// The walk-through of a client: its data and expected answers, and the count of checks that passed.
//
// Knows nothing of any SDK. The first wrong answer ends the program.

"use strict";

const fs = require("fs");
const path = require("path");
const util = require("util");

const DATA = JSON.parse(fs.readFileSync(path.join(__dirname, "../../walk.json"), "utf8"));
const KEY = "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
const SYSTEM = ["_rid", "_self", "_etag", "_ts", "_attachments"];

// Most characters of an unexpected error that are shown; some hold whole requests.
const SHOWN_MAX = 1000;

let passed = 0;

/** Counts a right answer; a wrong one ends the program. */
function check(name, actual, expected) {
  if (!util.isDeepStrictEqual(actual, expected)) {
    const show = (value) => util.inspect(value, { depth: 6, breakLength: Infinity });
    console.log(`FAILED ${name}: expected ${show(expected)}, got ${show(actual)}`);
    finish(1);
  }
  passed += 1;
  console.log(`ok ${name}`);
}

/** Rows of a query or a feed whose order is not promised. */
function checkInAnyOrder(name, actual, expected) {
  const sorted = (rows) => [...rows].sort((left, right) => (text(left) < text(right) ? -1 : 1));
  check(name, sorted(actual), sorted(expected));
}

/** The rows of a query of the data. */
function checkQuery(query, actual) {
  (query.isOrdered ? check : checkInAnyOrder)(query.name, actual, query.expected);
}

/** Pages of a bounded size that give every row once. Empty pages are allowed. */
function checkPages(name, pages, wanted) {
  const sizes = pages.map((page) => page.length).filter((size) => size > 0);
  if (sizes.length < 2 || Math.max(...sizes) > wanted.size) {
    check(`${name}: sizes`, sizes, `several of at most ${wanted.size} rows`);
  }
  (wanted.isOrdered ? check : checkInAnyOrder)(name, pages.flat(), wanted.expected);
}

/** The properties in one order, so that equal rows have equal texts. */
function text(row) {
  return JSON.stringify(row !== null && typeof row === "object" ? Object.entries(row).sort() : row);
}

/** The item without system properties. */
function plain(item) {
  return Object.fromEntries(Object.entries(item).filter(([name]) => !SYSTEM.includes(name)));
}

/** The line from which the table of clients is made. */
function report(client, version, protocol) {
  console.log(`client ${JSON.stringify({ client, version, language: "JavaScript", protocol })}`);
}

/** Prints the totals and ends the program. */
function finish(failed = 0) {
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed ? 1 : 0);
}

/** Runs the walk-through. An error that no check expects is a failed check, also one thrown outside of a callback. */
function run(through) {
  const failedBy = (error) => {
    const shown = util.inspect(error, { breakLength: Infinity }).replace(/\s+/g, " ").slice(0, SHOWN_MAX);
    console.log(`FAILED after ${passed} checks: ${shown}`);
    finish(1);
  };
  process.on("uncaughtException", failedBy);
  through().then(() => finish(), failedBy);
}

module.exports = { DATA, KEY, check, checkInAnyOrder, checkPages, checkQuery, plain, report, run };
