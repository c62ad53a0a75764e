// The context of procedures and triggers: request, response, and operations on documents. Each operation is queued
// and its method returns whether it was accepted; the server executes the operations when the script has returned, and
// the callbacks run in the same order.

// The roles of scripts, as the worker numbers them.
const PROCEDURE = 0;
const PRE_TRIGGER = 1;

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

const FLUENT_METHODS = ['chain', 'filter', 'map', 'pluck', 'flatten', 'sortBy', 'sortByDescending', 'unwind'];

const INDEX_ACTIONS = { __proto__: null, default: 0, include: 1, exclude: 2 };

const FOREIGN_TEXT = 'Function is not allowed to operate on resources outside current collection. '
  + 'Make sure that the link provided is correct.';

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

// A body that a script reads and may write, of one call after the other. It is written as text when the script has
// ended, since the script may change the object until then. A character has at most three bytes, so most texts need no
// exact count.
function makeBody(natives) {
  let value;
  let isWritable = false;
  const checked = (text) => {
    const { bodyMax, byteLength } = natives;
    if (text !== undefined && text.length * 3 > bodyMax && byteLength(text) > bodyMax) {
      throw fail(ErrorCodes.RequestEntityTooLarge, `Message size exceeded the limit of ${bodyMax} bytes.`);
    }
    return text;
  };
  const asText = (part) => (part === undefined ? '' : typeof part === 'string' ? part : jsonStringify(part));
  const body = {
    __proto__: null,
    isSet: false,
    start(initial, mayBeSet) {
      value = initial;
      isWritable = mayBeSet;
      body.isSet = false;
    },
    get: () => value,
    set(next) {
      if (!isWritable) throw fail(ErrorCodes.Forbidden, 'Not a writable property: body');
      checked(jsonStringify(next));
      value = next;
      body.isSet = true;
    },
    append: (part) => body.set(asText(value) + asText(part)),
    text: () => checked(jsonStringify(value)),
  };
  return body;
}

// The methods of a request or response: its properties by name, and its body. A property without `set` is read-only.
function makeMessage(properties) {
  const find = (name) => (typeof name === 'string' ? properties[name] : undefined);
  const writable = (name) => {
    const property = find(name);
    if (property === undefined) throw fail(ErrorCodes.BadRequest, `Cannot set new values: ${NativeString(name)}`);
    if (property.set === undefined) throw fail(ErrorCodes.Forbidden, `Not a writable property: ${name}`);
    return property;
  };
  const { body } = properties;
  return {
    getValue: (name) => find(name)?.get(),
    setValue: (name, value) => writable(name).set(value),
    appendValue: (name, value) => writable(name).append(value),
    getBody: () => body.get(),
    setBody: (value) => body.set(value),
    appendBody: (value) => body.append(value),
  };
}

const readOnly = (get) => ({ __proto__: null, get });

function makeRequest(state) {
  const getOperationType = () => state.operationType;
  const request = makeMessage({ __proto__: null, body: state.requestBody, operationType: readOnly(getOperationType) });
  request.getOperationType = getOperationType;
  return request;
}

function makeResponse(natives, state) {
  const getMaxResourceQuota = () => natives.quotaMax();
  const getResourceQuotaCurrentUsage = () => natives.quotaUsage();
  const response = makeMessage({
    __proto__: null,
    body: state.responseBody,
    maxResourceQuota: readOnly(getMaxResourceQuota),
    resourceQuotaCurrentUsage: readOnly(getResourceQuotaCurrentUsage),
  });
  response.getMaxResourceQuota = getMaxResourceQuota;
  response.getResourceQuotaCurrentUsage = getResourceQuotaCurrentUsage;
  return response;
}

function makeCollection(natives, state, response) {
  const { enqueue } = natives;
  // Queues an operation. A field that an operation does not have is absent.
  const queue = (operation, callback) => {
    operation.wantsDocument = callback !== undefined;
    const verdict = enqueue(operation);
    if (verdict === FOREIGN) throw fail(ErrorCodes.BadRequest, FOREIGN_TEXT);
    if (verdict === TOO_LARGE) throw fail(ErrorCodes.RequestEntityTooLarge, 'The operation is too large.');
    if (verdict !== ACCEPTED) return false;
    const node = { __proto__: null, callback, next: null };
    if (state.last === null) state.first = node;
    else state.last.next = node;
    state.last = node;
    return true;
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

  const collection = {
    getSelfLink: () => natives.selfLink(),
    getAltLink: () => natives.altLink(),

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
  // Queries in JavaScript are compiled when the script first uses one.
  const { load } = natives;
  const own = { ...collection };
  const makeFluent = () => load('fluent')(core, {
    __proto__: null,
    optional,
    pageSize,
    textOption,
    collection: own,
    response: state.role === PRE_TRIGGER ? undefined : response,
  });
  for (let index = 0; index < FLUENT_METHODS.length; index += 1) {
    const name = FLUENT_METHODS[index];
    collection[name] = (...values) => {
      state.fluent ??= makeFluent();
      return state.fluent(name, values);
    };
  }
  return collection;
}

// Defines a global that is made when it is first read, and that a script may replace. In a sealed runtime it is made
// for each call, and an attempt to replace it throws.
function defineLazily(name, make) {
  defineProperty(globals, name, {
    get() {
      const value = make();
      if (isExtensible(globals)) {
        defineProperty(globals, name, { value, writable: true, enumerable: true, configurable: true });
      }
      return value;
    },
    set(value) {
      const property = { value, writable: true, enumerable: true, configurable: true };
      if (!defineProperty(globals, name, property)) throw new NativeTypeError(`${name} cannot be replaced`);
    },
    enumerable: true,
    configurable: true,
  });
}

// The methods of the objects that scripts get. Each call gets objects of its own with these methods, when it asks for
// them; in a sealed runtime the methods are frozen.
function makeMethods(natives, state) {
  const requestMethods = makeRequest(state);
  const responseMethods = makeResponse(natives, state);
  const collectionMethods = makeCollection(natives, state, responseMethods);
  const getRequest = () => (state.requestObject ??= { ...requestMethods });
  const getResponse = () => (state.responseObject ??= { ...responseMethods });
  const getCollection = () => (state.collection ??= { ...collectionMethods });
  // A script cannot take an abort back, even if it catches the error.
  const abort = (error) => {
    state.abortedBy = { __proto__: null, error };
    throw error;
  };
  const makeContext = () => {
    const context = { getCollection, getRequest, abort };
    if (state.role !== PRE_TRIGGER) context.getResponse = getResponse;
    return context;
  };
  const makeShortcut = () => {
    const shortcut = create(getCollection());
    shortcut.request = getRequest();
    if (state.role !== PRE_TRIGGER) shortcut.response = getResponse();
    return shortcut;
  };
  return {
    __proto__: null,
    getContext: () => (state.context ??= makeContext()),
    getShortcut: () => (state.shortcut ??= makeShortcut()),
    shared: [requestMethods, responseMethods, collectionMethods, makeContext()],
  };
}

// Prepares the globals of a procedure or trigger; returns what the worker calls.
export function installDocuments(natives) {
  installShared(natives);
  let rejections;
  const state = { __proto__: null, requestBody: makeBody(natives), responseBody: makeBody(natives) };
  // Gives the script its input, before its text is evaluated.
  const accept = (role, operationType, request, response) => {
    rejections = undefined;
    state.role = role;
    state.operationType = operationType;
    state.request = request;
    state.requestBody.start(request, role === PRE_TRIGGER);
    state.responseBody.start(response, true);
    state.abortedBy = undefined;
    state.context = undefined;
    state.shortcut = undefined;
    state.requestObject = undefined;
    state.responseObject = undefined;
    state.collection = undefined;
    state.fluent = undefined;
    // The callbacks of queued operations are linked nodes, oldest first.
    state.first = null;
    state.last = null;
  };
  const reset = () => accept();
  reset();
  const { getContext, getShortcut, shared } = makeMethods(natives, state);
  globalThis.getContext = getContext;
  defineLazily('__', getShortcut);

  return {
    describe: describer(natives),
    seal: () => natives.load('seal')(natives, shared),

    accept,

    // Forgets the call before, in a sealed runtime.
    reset,

    // Calls the function of the script; returns what it returns.
    begin(script) {
      const { role, request } = state;
      if (role === PROCEDURE && request !== undefined && !isArray(request)) {
        throw fail(ErrorCodes.BadRequest, 'The parameters must be an array.');
      }
      return apply(script, undefined, role === PROCEDURE && request !== undefined ? request : []);
    },

    // Calls the callback of the oldest operation with its result. Without a callback a refusal ends the script.
    deliver(isDone, value, outcome) {
      const { callback, next } = state.first;
      state.first = next;
      if (next === null) state.last = null;
      if (!isDone) {
        const error = failWithoutStack(outcome.number, outcome.message);
        if (callback === undefined) throw error;
        callback(error, undefined, {});
      } else if (callback !== undefined) {
        callback(undefined, value, outcome);
      }
    },

    // A promise was rejected without a handler, or has got one afterwards.
    reject(promise, reason, isHandled) {
      rejections ??= new NativeMap();
      if (isHandled) apply(mapDelete, rejections, [promise]);
      else apply(mapSet, rejections, [promise, { __proto__: null, reason }]);
    },

    // Ends the call: the JSON texts of the response and of the changed document.
    finish() {
      if (state.abortedBy !== undefined) throw state.abortedBy.error;
      if (rejections !== undefined) apply(mapForEach, rejections, [({ reason }) => { throw reason; }]);
      const { requestBody, responseBody } = state;
      return {
        __proto__: null,
        body: responseBody.isSet ? responseBody.text() : undefined,
        document: requestBody.isSet ? requestBody.text() : undefined,
      };
    },
  };
}
