// Makes the globals of functions in queries unchangeable: every object that code can reach without making it. Rows of a
// query share these globals, and nothing that one row does may be visible to another. Called when a runtime is prepared.
(function () {
  'use strict';
  const { freeze, getOwnPropertyDescriptor, getPrototypeOf } = Object;
  const { ownKeys } = Reflect;

  // State behind accessors, which freezing does not stop.
  const NativeError = getPrototypeOf(TypeError);
  delete NativeError.prepareStackTrace;
  delete NativeError.stackTraceLimit;

  // What syntax and methods make, and no global names.
  const pending = [
    globalThis,
    function* () {},
    async function () {},
    async function* () {},
    [].values(),
    ''[Symbol.iterator](),
    new Map().entries(),
    new Set().values(),
    'x'.matchAll(/x/g),
    (function () { return arguments; })(),
    [].values().map((value) => value),
    Iterator.from({ next() {} }),
  ];
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
