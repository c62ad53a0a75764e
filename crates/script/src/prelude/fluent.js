// Queries in JavaScript: `__.chain().filter(…).map(…).value()` and the same methods alone. Compiled when a script first
// uses one.
//
// A query reads documents and applies its steps to each, until its page is full: `pageSize` counts results, not the
// documents that a filter leaves out. A page may end within the documents that were read, so its continuation is that of
// these documents with the number of those that are done. A query that sorts reads all pages first, since the first
// result may be on the last page; it has no continuation.
(function (core, helpers) {
'use strict';
const { apply, defineProperty, indexOf, isArray, isInteger, isObject, jsonStringify, slice, sort, ErrorCodes, fail } = core;
const { optional, pageSize, textOption, collection, response } = helpers;

// Appends to an array, whatever a script did to Array.prototype.
const append = (array, value) =>
  defineProperty(array, array.length, { value, writable: true, enumerable: true, configurable: true });

const SORT_PAGE_SIZE = 1000;
// Fewest documents that a query reads at once.
const READ_SIZE_MIN = 100;
const CONTINUATION = 'fluent:';

function expectFunction(value, name) {
  if (typeof value !== 'function') throw fail(ErrorCodes.BadRequest, `${name}: a function is expected.`);
  return value;
}

function flattenInto(results, value, isShallow) {
  for (let index = 0; index < value.length; index += 1) {
    if (isArray(value[index]) && !isShallow) flattenInto(results, value[index], false);
    else append(results, value[index]);
  }
}

// The order of sort keys: undefined, null, booleans, numbers, strings, then the rest as equal.
function rank(value) {
  switch (typeof value) {
    case 'undefined': return 0;
    case 'boolean': return 2;
    case 'number': return 3;
    case 'string': return 4;
    default: return value === null ? 1 : 5;
  }
}

function compareKeys(left, right) {
  const ranks = rank(left) - rank(right);
  if (ranks !== 0) return ranks;
  if (left < right) return -1;
  return left > right ? 1 : 0;
}

function sorted(values, selector, sign) {
  const keyed = [];
  for (let index = 0; index < values.length; index += 1) {
    append(keyed, { __proto__: null, key: selector(values[index]), value: values[index] });
  }
  apply(sort, keyed, [(left, right) => sign * compareKeys(left.key, right.key)]);
  const results = [];
  for (let index = 0; index < keyed.length; index += 1) append(results, keyed[index].value);
  return results;
}

// A step that makes the results of each value on its own.
const each = (make) => (values) => {
  const results = [];
  for (let index = 0; index < values.length; index += 1) make(values[index], results);
  return results;
};

// The steps by name. Each takes its own arguments and returns a function from values to values, and how many
// arguments were its own.
const STEPS = {
  __proto__: null,
  filter(predicate) {
    expectFunction(predicate, 'filter');
    return { count: 1, run: each((value, results) => { if (predicate(value)) append(results, value); }) };
  },
  map(transformation) {
    expectFunction(transformation, 'map');
    return { count: 1, run: each((value, results) => append(results, transformation(value))) };
  },
  pluck(name) {
    if (typeof name !== 'string') throw fail(ErrorCodes.BadRequest, 'pluck: the name of a property is expected.');
    const run = each((value, results) => append(results, isObject(value) ? value[name] : undefined));
    return { count: 1, run };
  },
  flatten(isShallow) {
    const hasOwn = typeof isShallow === 'boolean';
    const run = (values) => {
      const results = [];
      flattenInto(results, values, hasOwn && isShallow);
      return results;
    };
    // The values of a page are a level of their own, which both forms remove.
    const shallow = each((value, results) => {
      if (isArray(value)) flattenInto(results, value, true);
      else append(results, value);
    });
    return { count: hasOwn ? 1 : 0, run: hasOwn && isShallow ? shallow : run };
  },
  sortBy(selector) {
    expectFunction(selector, 'sortBy');
    return { count: 1, sorts: true, run: (values) => sorted(values, selector, 1) };
  },
  sortByDescending(selector) {
    expectFunction(selector, 'sortByDescending');
    return { count: 1, sorts: true, run: (values) => sorted(values, selector, -1) };
  },
  unwind(collectionSelector, resultSelector) {
    expectFunction(collectionSelector, 'unwind');
    // A single function may be the callback of a query that is not chained: then there is no result selector.
    const hasOwn = typeof resultSelector === 'function';
    const run = each((value, results) => {
      const inner = collectionSelector(value);
      if (!isArray(inner)) return;
      for (let index = 0; index < inner.length; index += 1) {
        append(results, hasOwn ? resultSelector(value, inner[index]) : [value, inner[index]]);
      }
    });
    return { count: hasOwn ? 2 : 1, run };
  },
};

// Applies the steps of a chain, the first one first.
const applySteps = (step, values) => (step === null ? values : step.run(applySteps(step.before, values)));

// Where a page begins: the continuation of documents, and how many of them are done.
function opened(continuation) {
  if (continuation === undefined || apply(indexOf, continuation, [CONTINUATION]) !== 0) return { continuation, done: 0 };
  const rest = apply(slice, continuation, [CONTINUATION.length]);
  const end = apply(indexOf, rest, [':']);
  const done = +apply(slice, rest, [0, end]);
  if (end < 1 || !isInteger(done)) throw fail(ErrorCodes.BadRequest, 'Invalid option continuation.');
  const documents = apply(slice, rest, [end + 1]);
  return { continuation: documents === '' ? undefined : documents, done };
}

const sealed = (continuation, done) => `${CONTINUATION}${done}:${continuation === undefined ? '' : continuation}`;

function readPage(steps, options, callback) {
  const size = pageSize(options);
  const results = [];
  // Applies the steps to documents until the page is full; returns how many are done.
  const take = (feed, done) => {
    while (done < feed.length && (size < 0 || results.length < size)) {
      flattenInto(results, applySteps(steps, [feed[done]]), true);
      done += 1;
    }
    return done;
  };
  const read = (from) => {
    const documents = { pageSize: size < 0 || size > READ_SIZE_MIN ? size : READ_SIZE_MIN, continuation: from.continuation };
    return collection.readDocuments(collection.getSelfLink(), documents, (error, feed, found) => {
      if (error !== undefined) {
        callback(error, undefined, found);
        return;
      }
      const done = take(feed, from.done);
      const { continuation } = found;
      if (done < feed.length) {
        callback(undefined, results, { ...found, continuation: sealed(from.continuation, done) });
      } else if (continuation === undefined || size < 0 || results.length >= size || !read({ continuation, done: 0 })) {
        // Also when the rest is not accepted: the caller goes on later.
        callback(undefined, results, found);
      }
    });
  };
  return read(opened(textOption(options, 'continuation')));
}

function readAll(steps, options, callback) {
  const all = [];
  const next = (continuation) =>
    collection.readDocuments(collection.getSelfLink(), { pageSize: SORT_PAGE_SIZE, continuation }, (error, feed, found) => {
      if (error !== undefined) {
        callback(error, undefined, found);
        return;
      }
      flattenInto(all, feed, true);
      if (found.continuation === undefined) {
        callback(undefined, applySteps(steps, all), found);
      } else if (!next(found.continuation)) {
        const text = 'The query was not accepted: the budget of the script is nearly used.';
        callback(fail(ErrorCodes.Forbidden, text), undefined, {});
      }
    });
  return next(textOption(options, 'continuation'));
}

// Executes the steps that end with `steps`. Without a callback the result becomes the response body.
function execute(steps, first, second) {
  const { options, callback } = optional(first, second);
  if (callback === undefined && response === undefined) {
    throw fail(ErrorCodes.BadRequest, 'A callback is required in a pre-trigger.');
  }
  const finish = callback !== undefined ? callback : (error, feed) => {
    if (error !== undefined) throw error;
    if (response.getBody() === undefined) response.setBody(feed);
    else response.appendBody(jsonStringify(feed));
  };
  let sorts = false;
  for (let step = steps; step !== null; step = step.before) sorts = sorts || step.sorts === true;
  return { isAccepted: (sorts ? readAll : readPage)(steps, options, finish) };
}

// A chain that has been started. Each step returns a longer one.
class Chain {
  #steps;

  constructor(steps) {
    this.#steps = steps;
  }

  #then(name, values) {
    const step = apply(STEPS[name], undefined, values);
    if (values.length > step.count) {
      throw fail(ErrorCodes.BadRequest, `${name}: options and callback belong to value() in a chain.`);
    }
    step.before = this.#steps;
    return new Chain(step);
  }

  filter(...values) { return this.#then('filter', values); }
  map(...values) { return this.#then('map', values); }
  pluck(...values) { return this.#then('pluck', values); }
  flatten(...values) { return this.#then('flatten', values); }
  sortBy(...values) { return this.#then('sortBy', values); }
  sortByDescending(...values) { return this.#then('sortByDescending', values); }
  unwind(...values) { return this.#then('unwind', values); }
  value(options, callback) { return execute(this.#steps, options, callback); }
}

// Starts a chain, or executes a single step.
return (name, values) => {
  if (name === 'chain') return new Chain(null);
  // A second function is the callback, not a second selector.
  const own = name === 'unwind' && values.length === 2 ? [values[0]] : values;
  const step = apply(STEPS[name], undefined, own);
  step.before = null;
  return execute(step, values[step.count], values[step.count + 1]);
};
})
