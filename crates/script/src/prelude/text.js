// Texts for the log and for errors. Compiled when a script first needs it.
(function (core) {
  'use strict';
  const { apply, indexOf, isInteger, isObject, jsonStringify, NativeString, slice } = core;

  const asText = (value) => {
    if (!isObject(value)) return NativeString(value);
    const text = jsonStringify(value);
    return text === undefined ? NativeString(value) : text;
  };

  // Replaces each %s by the next argument; the rest is appended.
  function format(values) {
    let index = 1;
    let text = '';
    let rest = values.length > 0 ? asText(values[0]) : '';
    while (index < values.length) {
      const at = apply(indexOf, rest, ['%s']);
      if (at < 0) break;
      text += apply(slice, rest, [0, at]) + asText(values[index]);
      rest = apply(slice, rest, [at + 2]);
      index += 1;
    }
    text += rest;
    for (; index < values.length; index += 1) text += ' ' + asText(values[index]);
    return text;
  }

  // What the server shows of an error: text, message, number, stack. Reading it may call the script's own code, whose
  // errors are hidden.
  function describe(error) {
    const attempt = (read, otherwise) => {
      try {
        return read();
      } catch {
        return otherwise;
      }
    };
    const read = (name) => attempt(() => error[name], undefined);
    const plain = attempt(() => NativeString(error), 'unknown error');
    if (!isObject(error)) return [plain, plain, undefined, ''];
    const number = read('number');
    const body = read('body');
    const message = read('message');
    const shown = typeof message === 'string' ? message : typeof body === 'string' ? body : plain;
    const name = read('name');
    const stack = read('stack');
    return [
      typeof name === 'string' ? `${name}: ${shown}` : shown,
      shown,
      isInteger(number) ? number : undefined,
      typeof stack === 'string' ? stack : '',
    ];
  }

  return { __proto__: null, format, describe };
})
