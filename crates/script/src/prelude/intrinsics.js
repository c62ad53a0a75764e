// What a script must not have, what it gets from the server instead, and the built-in functions that the prelude
// itself uses.
//
// The files of this folder are concatenated to one module, which is evaluated in every new JavaScript runtime before
// the script. A script may replace any built-in function afterwards, so the prelude calls only what it has taken here.
// Queues are linked nodes, because an assignment to an index of an array can call a setter of Array.prototype.

const { apply, construct, defineProperty, getPrototypeOf } = Reflect;
const { create, freeze } = Object;
const { isArray } = Array;
const { parse: jsonParse, stringify: jsonStringify } = JSON;
const NativeDate = Date;
const NativeError = Error;
const NativeMap = Map;
const NativeString = String;
const NativeNumber = Number;
const { isInteger } = Number;
const uncurry = (method) => (self, ...values) => apply(method, self, values);
const mapSet = uncurry(Map.prototype.set);
const mapDelete = uncurry(Map.prototype.delete);
const mapForEach = uncurry(Map.prototype.forEach);
const arraySort = uncurry(Array.prototype.sort);
const indexOf = uncurry(String.prototype.indexOf);
const slice = uncurry(String.prototype.slice);
const dateToString = uncurry(Date.prototype.toString);

const isObject = (value) => typeof value === 'object' && value !== null;

// Defines a property as built-in ones are: not enumerable, and a script may replace it.
const define = (object, name, value) =>
  defineProperty(object, name, { value, writable: true, enumerable: false, configurable: true });

// Appends to an array of the prelude's own, whatever a script did to Array.prototype.
const append = (array, value) =>
  defineProperty(array, array.length, { value, writable: true, enumerable: true, configurable: true });

const ErrorCodes = freeze({
  BadRequest: 400,
  Forbidden: 403,
  NotFound: 404,
  Conflict: 409,
  PreconditionFailed: 412,
  RequestEntityTooLarge: 413,
  RetryWith: 449,
  InternalServerError: 500,
});

// An error as scripts make it: `new Error(number, text)`. With other arguments it is the usual one.
function ScriptError(first, second) {
  const target = new.target === undefined ? ScriptError : new.target;
  if (typeof first !== 'number' || arguments.length < 2) {
    return construct(NativeError, arguments, target);
  }
  const text = NativeString(second);
  const error = construct(NativeError, [text], target);
  define(error, 'number', first);
  define(error, 'body', text);
  return error;
}

const fail = (number, text) => new ScriptError(number, text);

function installErrors(global) {
  define(ScriptError, 'name', 'Error');
  defineProperty(ScriptError, 'prototype', { value: NativeError.prototype, writable: false });
  define(NativeError.prototype, 'constructor', ScriptError);
  for (const name of ['captureStackTrace', 'isError']) {
    if (name in NativeError) define(ScriptError, name, NativeError[name]);
  }
  define(global, 'Error', ScriptError);
  define(global, 'ErrorCodes', ErrorCodes);
}

// Time and randomness come from the call, so that a call can be replayed.
function installClock(global, natives) {
  const { now, random } = natives;
  function ScriptDate() {
    if (new.target === undefined) return dateToString(new NativeDate(now()));
    return construct(NativeDate, arguments.length === 0 ? [now()] : arguments, new.target);
  }
  define(ScriptDate, 'name', 'Date');
  defineProperty(ScriptDate, 'length', { value: 7 });
  defineProperty(ScriptDate, 'prototype', { value: NativeDate.prototype, writable: false });
  define(NativeDate.prototype, 'constructor', ScriptDate);
  define(ScriptDate, 'UTC', NativeDate.UTC);
  define(ScriptDate, 'parse', NativeDate.parse);
  define(ScriptDate, 'now', { now() { return now(); } }.now);
  define(global, 'Date', ScriptDate);
  define(Math, 'random', { random() { return random(); } }.random);
}

// Memory that threads share, and clocks that do not come from the call.
function removeForbidden(global) {
  for (const name of ['SharedArrayBuffer', 'Atomics', 'performance', 'gc', 'navigator', 'queueMicrotask']) {
    delete global[name];
  }
}

// A value as text in a log or in a body that is appended to.
const asText = (value) => {
  if (typeof value === 'string') return value;
  if (!isObject(value)) return NativeString(value);
  const text = jsonStringify(value);
  return text === undefined ? NativeString(value) : text;
};

// Replaces each %s by the next argument; the rest is appended.
function format(values) {
  let index = 1;
  let text = '';
  let rest = values.length > 0 ? asText(values[0]) : '';
  for (let at = indexOf(rest, '%s'); at >= 0 && index < values.length; at = indexOf(rest, '%s')) {
    text += slice(rest, 0, at) + asText(values[index]);
    rest = slice(rest, at + 2);
    index += 1;
  }
  text += rest;
  for (; index < values.length; index += 1) text += ' ' + asText(values[index]);
  return text;
}

function installConsole(global, natives) {
  const { log, logs } = natives;
  const console = create(null);
  define(console, 'log', { log(...values) { if (logs()) log(format(values)); } }.log);
  define(global, 'console', console);
}

// What the server shows of an error: text, message, number, stack. Reading it may call the script's own code.
function describe(error) {
  const read = (name) => {
    try {
      return error[name];
    } catch {
      return undefined;
    }
  };
  const text = (value) => {
    try {
      return typeof value === 'string' ? value : NativeString(value);
    } catch {
      return 'unknown error';
    }
  };
  if (!isObject(error)) return [text(error), text(error), undefined, ''];
  const number = read('number');
  const body = read('body');
  const message = read('message');
  const shown = typeof message === 'string' ? message : typeof body === 'string' ? body : text(error);
  const name = read('name');
  const stack = read('stack');
  return [
    typeof name === 'string' ? `${name}: ${shown}` : shown,
    shown,
    isInteger(number) ? number : undefined,
    typeof stack === 'string' ? stack : '',
  ];
}
