// Makes the globals of a runtime unchangeable that many calls share: every object that code can reach without making it.
// Nothing that one call does may be visible to another. Called when a runtime is prepared.
//
// What freezing cannot stop, and what would tell that something is frozen, is guarded: when code reads it, `notice` is
// called, and then the call is repeated in a runtime of its own and this one is not used again.
//
// `shared` are objects that code cannot reach, but whose methods it gets.
(function (notice, shared) {
  'use strict';
  const { defineProperty, freeze, getOwnPropertyDescriptor, getPrototypeOf } = Object;
  const { apply, ownKeys } = Reflect;
  const NativeError = getPrototypeOf(TypeError);

  const guarded = [
    // State behind accessors and in the engine.
    [NativeError, ['prepareStackTrace', 'stackTraceLimit']],
    // Calls back after the call, or shows what is still in memory.
    [globalThis, ['FinalizationRegistry', 'WeakRef']],
    // Makes code that is not strict, or reaches globals by names that are no words of the script.
    [globalThis, ['Function', 'eval', 'globalThis']],
    [Function.prototype, ['constructor']],
    [getPrototypeOf(function* () {}), ['constructor']],
    [getPrototypeOf(async function () {}), ['constructor']],
    [getPrototypeOf(async function* () {}), ['constructor']],
    // Changes that are refused without an error, or errors that are hidden.
    [globalThis, ['Reflect', 'Promise', 'AggregateError', 'AsyncDisposableStack', 'queueMicrotask']],
    [Array, ['fromAsync']],
    [NativeError, ['captureStackTrace']],
    [Error, ['captureStackTrace']],
    // Shows what is frozen or guarded.
    [Object, ['isExtensible', 'isFrozen', 'isSealed', 'getOwnPropertyDescriptor', 'getOwnPropertyDescriptors']],
    [Object.prototype, ['__lookupGetter__', '__lookupSetter__']],
  ];

  // What syntax and methods make, and no global names.
  const pending = [
    ...shared,
    globalThis,
    function* () {},
    async function () {},
    async function* () {},
    (async function* () {})(),
    [].values(),
    ''[Symbol.iterator](),
    new Map().entries(),
    new Set().values(),
    'x'.matchAll(/x/g),
    (function () { return arguments; })(),
    [].values().map((value) => value),
    Iterator.from({ next() {} }),
    Iterator.concat([]),
  ];

  for (const [object, names] of guarded) {
    for (const name of names) {
      const property = getOwnPropertyDescriptor(object, name);
      if (property === undefined) continue;
      const { value, get, enumerable } = property;
      pending.push(value);
      defineProperty(object, name, {
        get() {
          notice();
          return get === undefined ? value : apply(get, object, []);
        },
        set: notice,
        enumerable,
        configurable: false,
      });
    }
  }

  const seen = new Set();
  while (pending.length > 0) {
    const value = pending.pop();
    const isObject = (typeof value === 'object' && value !== null) || typeof value === 'function';
    if (!isObject || seen.has(value)) continue;
    seen.add(value);
    pending.push(getPrototypeOf(value));
    for (const key of ownKeys(value)) {
      const property = getOwnPropertyDescriptor(value, key);
      pending.push(property.value, property.get, property.set);
    }
  }
  for (const value of seen) freeze(value);
})
