// What every script gets: errors with numbers, the time and randomness of the call, and a console. Also the built-in
// functions that the prelude itself uses.
//
// `core.js` and `documents.js` are concatenated to one module, which is loaded into every new JavaScript runtime. The
// time to load it is proportional to its size, so what few scripts use is in files of their own (`fluent.js`, `seal.js`,
// `text.js`), which are compiled when a script first needs them.
//
// A script may replace any built-in function, so the prelude calls only what it has taken before. Queues are linked
// nodes, because an assignment to an index of an array can call a setter of Array.prototype.

const { apply, construct, defineProperty } = Reflect;
const { create, getOwnPropertyDescriptor, isExtensible } = Object;
const { isArray } = Array;
const { isInteger } = Number;
const { parse: jsonParse, stringify: jsonStringify } = JSON;
const globals = globalThis;
const NativeDate = Date;
const NativeError = Error;
const NativeMap = Map;
const NativeString = String;
const NativeTypeError = TypeError;
const { set: mapSet, delete: mapDelete, forEach: mapForEach } = Map.prototype;

const isObject = (value) => typeof value === 'object' && value !== null;

const ErrorCodes = {
  BadRequest: 400,
  Forbidden: 403,
  NotFound: 404,
  Conflict: 409,
  PreconditionFailed: 412,
  RequestEntityTooLarge: 413,
  RetryWith: 449,
  InternalServerError: 500,
};

// An error as scripts make it: `new Error(number, text)`. With other arguments it is the usual one.
function ScriptError(first, second) {
  const target = new.target === undefined ? ScriptError : new.target;
  if (typeof first !== 'number' || arguments.length < 2) return construct(NativeError, arguments, target);
  const text = NativeString(second);
  const error = construct(NativeError, [text], target);
  error.number = first;
  error.body = text;
  return error;
}

const fail = (number, text) => new ScriptError(number, text);

// The engine's hook for stack traces. Its value is kept in the engine, so these work in sealed runtimes too.
const { get: getHook, set: setHook } = getOwnPropertyDescriptor(NativeError, 'prepareStackTrace');
const noStack = () => undefined;

// An error that the engine gives a stack trace where it is thrown first, not where it is made.
function failWithoutStack(number, text) {
  const hook = apply(getHook, NativeError, []);
  apply(setHook, NativeError, [noStack]);
  try {
    return fail(number, text);
  } finally {
    apply(setHook, NativeError, [hook]);
  }
}

// The place of a replaced constructor: the name, the prototype and the static functions of the native one.
function replaceConstructor(name, native, replacement, statics) {
  defineProperty(replacement, 'name', { value: name });
  defineProperty(replacement, 'prototype', { value: native.prototype, writable: false });
  native.prototype.constructor = replacement;
  for (let index = 0; index < statics.length; index += 1) replacement[statics[index]] = native[statics[index]];
  globalThis[name] = replacement;
}

// Prepares the globals that all scripts have.
function installShared(natives) {
  const { now, random, log, logs, load } = natives;
  delete globalThis.SharedArrayBuffer;
  delete globalThis.Atomics;
  // Makes JSON text that is none for others.
  delete JSON.rawJSON;
  delete JSON.isRawJSON;
  replaceConstructor('Error', NativeError, ScriptError, ['captureStackTrace', 'isError']);
  globalThis.ErrorCodes = { ...ErrorCodes };
  function ScriptDate() {
    if (new.target === undefined) return `${new NativeDate(now())}`;
    return construct(NativeDate, arguments.length === 0 ? [now()] : arguments, new.target);
  }
  replaceConstructor('Date', NativeDate, ScriptDate, ['UTC', 'parse']);
  ScriptDate.now = () => now();
  Math.random = () => random();
  let text;
  globalThis.console = {
    log(...values) {
      if (!logs()) return;
      text ??= load('text')(core);
      log(text.format(values));
    },
  };
}

// Describes an error for the server.
const describer = (natives) => (error) => natives.load('text')(core).describe(error);

// What the files get that are compiled later, when the script may have replaced the built-in functions.
const core = {
  __proto__: null,
  apply,
  defineProperty,
  isArray,
  isInteger,
  isObject,
  jsonStringify,
  NativeString,
  sort: Array.prototype.sort,
  indexOf: String.prototype.indexOf,
  slice: String.prototype.slice,
  ErrorCodes,
  fail,
};

// Prepares the globals of functions in queries, which have no documents.
export function installFunctions(natives) {
  installShared(natives);
  return { describe: describer(natives), seal: () => natives.load('seal')(natives, []) };
}
