// Operations on documents. Each queues one operation and returns whether it was accepted; the server executes them
// when the script has returned, and the callbacks run in the same order.

// The numbers of operations, as the worker reads them.
const CREATE = 0;
const UPSERT = 1;
const READ = 2;
const REPLACE = 3;
const DELETE = 4;
const PATCH = 5;
const QUERY = 6;
const READ_ALL = 7;

// The verdicts of the worker on an operation.
const ACCEPTED = 1;
const FOREIGN = 2;
const TOO_LARGE = 3;

const PAGE_SIZE_DEFAULT = 100;

const INDEX_ACTIONS = { __proto__: null, default: 0, include: 1, exclude: 2 };

const FOREIGN_TEXT = 'Function is not allowed to operate on resources outside current collection. '
  + 'Make sure that the link provided is correct.';

// Callbacks of queued operations, oldest first.
class Callbacks {
  #first = null;
  #last = null;

  push(callback) {
    const node = { __proto__: null, callback, next: null };
    if (this.#last === null) this.#first = node;
    else this.#last.next = node;
    this.#last = node;
  }

  shift() {
    const { callback, next } = this.#first;
    this.#first = next;
    if (next === null) this.#last = null;
    return callback;
  }
}

// Splits the optional arguments of a method: `(options, callback)`, `(callback)` or nothing.
function optional(options, callback) {
  if (typeof options === 'function' && callback === undefined) {
    callback = options;
    options = undefined;
  }
  if (options !== undefined && options !== null && !isObject(options)) {
    throw fail(ErrorCodes.BadRequest, 'Invalid options: an object is expected.');
  }
  if (callback !== undefined && callback !== null && typeof callback !== 'function') {
    throw fail(ErrorCodes.BadRequest, 'Invalid callback: a function is expected.');
  }
  return { __proto__: null, options: isObject(options) ? options : {}, callback: callback ?? undefined };
}

function textOption(options, name) {
  const value = options[name];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') throw fail(ErrorCodes.BadRequest, `Invalid option ${name}: a string is expected.`);
  return value;
}

function pageSize(options) {
  const value = options.pageSize;
  if (value === undefined || value === null) return PAGE_SIZE_DEFAULT;
  if (!isInteger(value) || (value < 1 && value !== -1)) {
    throw fail(ErrorCodes.BadRequest, 'Invalid option pageSize: a positive integer or -1 is expected.');
  }
  return value;
}

function indexAction(options) {
  const value = options.indexAction;
  if (value === undefined || value === null) return 0;
  const action = typeof value === 'string' ? INDEX_ACTIONS[value] : undefined;
  if (action === undefined) {
    throw fail(ErrorCodes.BadRequest, 'Invalid option indexAction: default, include or exclude is expected.');
  }
  return action;
}

function link(value) {
  if (typeof value !== 'string') throw fail(ErrorCodes.BadRequest, 'Invalid link: a string is expected.');
  return value;
}

// A document as an object, from an object or its JSON text.
function documentOf(value) {
  if (typeof value === 'string') {
    try {
      value = jsonParse(value);
    } catch {
      throw fail(ErrorCodes.BadRequest, 'The document body must be an object or the JSON text of one.');
    }
  }
  if (!isObject(value) || isArray(value)) {
    throw fail(ErrorCodes.BadRequest, 'The document body must be an object or the JSON text of one.');
  }
  return value;
}

function documentText(value) {
  const text = jsonStringify(value);
  if (text === undefined) throw fail(ErrorCodes.BadRequest, 'The document body cannot be written as JSON.');
  return text;
}

// A document with an id. A missing one is generated on a copy: the caller's object stays as it is.
function identified(value, options, natives) {
  const document = documentOf(value);
  const { id } = document;
  if (options.disableAutomaticIdGeneration === true || (id !== undefined && id !== null && id !== '')) return document;
  return { ...document, id: natives.guid() };
}

function makeCollection(natives, callbacks, state) {
  // Queues an operation. A field that an operation does not have is absent.
  const queue = (operation, callback) => {
    const verdict = natives.enqueue(operation);
    if (verdict === FOREIGN) throw fail(ErrorCodes.BadRequest, FOREIGN_TEXT);
    if (verdict === TOO_LARGE) throw fail(ErrorCodes.RequestEntityTooLarge, 'The operation is too large.');
    if (verdict === ACCEPTED) callbacks.push(callback);
    return verdict === ACCEPTED;
  };
  const write = (kind, collectionLink, body, first, second) => {
    const { options, callback } = optional(first, second);
    return queue({
      __proto__: null,
      kind,
      link: link(collectionLink),
      text: documentText(identified(body, options, natives)),
      indexAction: indexAction(options),
      etag: kind === UPSERT ? textOption(options, 'etag') : undefined,
    }, callback);
  };
  const page = (operation, options, callback) => {
    operation.pageSize = pageSize(options);
    operation.continuation = textOption(options, 'continuation');
    return queue(operation, callback);
  };

  const refuseAttachment = () => {
    throw fail(ErrorCodes.BadRequest, 'Attachments are not supported.');
  };

  return {
    getSelfLink: () => state.input.selfLink,
    getAltLink: () => state.input.altLink,

    createDocument: (collectionLink, body, options, callback) =>
      write(CREATE, collectionLink, body, options, callback),

    upsertDocument: (collectionLink, body, options, callback) =>
      write(UPSERT, collectionLink, body, options, callback),

    readDocument(documentLink, first, second) {
      const { options, callback } = optional(first, second);
      const etag = textOption(options, 'ifNoneMatch');
      return queue({ __proto__: null, kind: READ, link: link(documentLink), etag }, callback);
    },

    replaceDocument(documentLink, body, first, second) {
      const { options, callback } = optional(first, second);
      return queue({
        __proto__: null,
        kind: REPLACE,
        link: link(documentLink),
        text: documentText(documentOf(body)),
        indexAction: indexAction(options),
        etag: textOption(options, 'etag'),
      }, callback);
    },

    deleteDocument(documentLink, first, second) {
      const { options, callback } = optional(first, second);
      const etag = textOption(options, 'etag');
      return queue({ __proto__: null, kind: DELETE, link: link(documentLink), etag }, callback);
    },

    patchDocument(documentLink, changes, first, second) {
      const { options, callback } = optional(first, second);
      if (!isObject(changes)) {
        throw fail(ErrorCodes.BadRequest, 'Invalid patch: an array of operations is expected.');
      }
      return queue({
        __proto__: null,
        kind: PATCH,
        link: link(documentLink),
        text: documentText(changes),
        etag: textOption(options, 'etag'),
      }, callback);
    },

    readDocuments(collectionLink, first, second) {
      const { options, callback } = optional(first, second);
      return page({ __proto__: null, kind: READ_ALL, link: link(collectionLink) }, options, callback);
    },

    queryDocuments(collectionLink, query, first, second) {
      const { options, callback } = optional(first, second);
      const text = isObject(query) ? query.query : query;
      if (typeof text !== 'string') {
        throw fail(ErrorCodes.BadRequest, 'Invalid query: a string or an object with a query is expected.');
      }
      const parameters = isObject(query) ? query.parameters : undefined;
      if (parameters !== undefined && parameters !== null && !isArray(parameters)) {
        throw fail(ErrorCodes.BadRequest, 'Invalid query parameters: an array is expected.');
      }
      return page({
        __proto__: null,
        kind: QUERY,
        link: link(collectionLink),
        text,
        parameters: isArray(parameters) ? jsonStringify(parameters) : undefined,
        enableScan: options.enableScan === true,
      }, options, callback);
    },

    createAttachment: refuseAttachment,
    readAttachment: refuseAttachment,
    readAttachments: refuseAttachment,
    replaceAttachment: refuseAttachment,
    upsertAttachment: refuseAttachment,
    deleteAttachment: refuseAttachment,
    queryAttachments: refuseAttachment,
  };
}

// Calls the callback of the oldest operation with its result. Without a callback a refusal ends the script.
function deliver(callbacks, isDone, value, outcome) {
  const callback = callbacks.shift();
  if (isDone) {
    if (callback === undefined) return;
    const { notModified, continuation, currentSize, maxSize } = outcome;
    const options = {};
    if (notModified) options.notModified = true;
    if (continuation !== undefined) options.continuation = continuation;
    if (currentSize !== undefined) {
      options.currentCollectionSizeInMB = currentSize;
      options.maxCollectionSizeInMB = maxSize;
    }
    callback(undefined, value, options);
  } else {
    const error = fail(outcome.number, outcome.message);
    if (callback === undefined) throw error;
    callback(error, undefined, {});
  }
}
