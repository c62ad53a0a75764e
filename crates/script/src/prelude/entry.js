// What the worker calls: one function that prepares a runtime and returns the functions for its call.
//
// As much as possible is made before the call is known, because a worker prepares the next runtime while it waits.

// The roles of scripts, as the worker numbers them.
const PROCEDURE = 0;
const PRE_TRIGGER = 1;

// Prepares the globals of functions in queries, which have no documents.
export function installFunctions(natives) {
  installShared(natives);
  return { describe };
}

// Prepares the globals of a procedure or trigger.
export function installDocuments(natives) {
  installShared(natives);
  const callbacks = new Callbacks();
  const rejections = new NativeMap();
  const requestBody = new Body(natives);
  const responseBody = new Body(natives);
  const state = { __proto__: null, input: undefined, requestBody, responseBody, abortedBy: undefined };
  const request = makeRequest(state);
  const response = makeResponse(state);
  const collection = makeCollection(natives, callbacks, state);
  const fluent = { __proto__: null, collection: { __proto__: null, ...collection }, response };
  addFluent(collection, fluent);
  const context = {
    getCollection: () => collection,
    getRequest: () => request,
    getResponse: () => response,
    // A script cannot take an abort back, even if it catches the error.
    abort(error) {
      state.abortedBy = { __proto__: null, error };
      throw error;
    },
  };
  const shortcut = create(collection);
  define(shortcut, 'request', request);
  define(shortcut, 'response', response);
  define(globalThis, 'getContext', () => context);
  define(globalThis, '__', shortcut);

  return {
    describe,

    // Calls the function of the script.
    begin(script, input) {
      state.input = input;
      requestBody.begin(input.request, input.role === PRE_TRIGGER);
      responseBody.begin(input.response, true);
      if (input.role === PRE_TRIGGER) {
        fluent.response = undefined;
        delete context.getResponse;
        delete shortcut.response;
      }
      apply(script, undefined, input.role === PROCEDURE ? parametersOf(input) : []);
    },

    deliver: (isDone, value, outcome) => deliver(callbacks, isDone, value, outcome),

    // A promise was rejected without a handler, or has got one afterwards.
    reject(promise, reason, isHandled) {
      if (isHandled) mapDelete(rejections, promise);
      else mapSet(rejections, promise, { __proto__: null, reason });
    },

    // Ends the call: the JSON texts of the response and of the changed document.
    finish() {
      if (state.abortedBy !== undefined) throw state.abortedBy.error;
      mapForEach(rejections, ({ reason }) => { throw reason; });
      return {
        __proto__: null,
        body: responseBody.isSet ? responseBody.text() : undefined,
        document: requestBody.isSet ? requestBody.text() : undefined,
      };
    },
  };
}

function installShared(natives) {
  removeForbidden(globalThis);
  installErrors(globalThis);
  installClock(globalThis, natives);
  installConsole(globalThis, natives);
}

function parametersOf({ request }) {
  if (request === undefined) return [];
  if (!isArray(request)) throw fail(ErrorCodes.BadRequest, 'The parameters must be an array.');
  return request;
}
