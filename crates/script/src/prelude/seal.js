// Makes the globals of a runtime unchangeable that many calls share: every object that code can reach without making it.
// Nothing that one call does may be visible to another. Called when a runtime is prepared.
//
// What freezing cannot stop, and what would tell that something is frozen, is guarded: when code reads it, `notice` is
// called, and then the call is repeated in a runtime of its own and this one is not used again.
//
// A change that is refused is an error of the engine, which code may hide: `suspect` is called when one is made, and the
// call is repeated too.
//
// `shared` are objects that code cannot reach, but whose methods it gets.
(function (natives, shared) {
  'use strict';
  const { notice, suspect } = natives;
  const { defineProperty, freeze, getOwnPropertyDescriptor, getPrototypeOf } = Object;
  const { apply, ownKeys } = Reflect;
  const NativeError = getPrototypeOf(TypeError);
  const { isError } = NativeError;

  // The classes of the errors that changes end with, or that want of memory does.
  const suspects = [TypeError.prototype, ReferenceError.prototype, InternalError.prototype];

  // The engine calls this hook for every error when it is made or first thrown, and keeps what it returns as its stack.
  // The engine's own text is only made without a hook, so this one makes the same. It calls no code of a script.
  let made;
  NativeError.prepareStackTrace = (error, sites) => { made = sites; };
  new NativeError();
  const { getColumnNumber, getFileName, getFunction, getFunctionName, getLineNumber, isNative } = getPrototypeOf(made[0]);
  const hook = (error, sites) => {
    if (isError(error)) {
      const prototype = getPrototypeOf(error);
      for (let index = 0; index < suspects.length; index += 1) if (prototype === suspects[index]) suspect();
    }
    let text = '';
    for (let index = 0; index < sites.length; index += 1) {
      const site = sites[index];
      const of = (method) => apply(method, site, []);
      const line = of(getLineNumber);
      const place = `${of(getFileName) ?? '<null>'}${line === null ? '' : `:${line}:${of(getColumnNumber)}`}`;
      // The place of an error of the parser has no function.
      const isOfParser = of(getFunction) === null;
      const name = of(getFunctionName) ?? '<anonymous>';
      text += isOfParser ? `    at ${place}\n` : `    at ${name} (${of(isNative) ? 'native' : place})\n`;
    }
    return text;
  };
  NativeError.prepareStackTrace = hook;

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
    hook,
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
