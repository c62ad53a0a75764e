// The request and the response of a script: bodies and a few values with names.

// The bytes of a body are counted as those of its JSON text. A character has at most three bytes, so most texts need
// no exact count.
function checkBody(text, natives) {
  if (text !== undefined && text.length * 3 > natives.bodyMax && natives.byteLength(text) > natives.bodyMax) {
    throw fail(ErrorCodes.RequestEntityTooLarge, 'Message size exceeded the limit of ' + natives.bodyMax + ' bytes.');
  }
}

// A body that scripts read and may write. It is written as text only when the script has ended, since the script may
// change the object until then.
class Body {
  #value;
  #isWritable = false;
  #natives;
  isSet = false;

  constructor(natives) {
    this.#natives = natives;
  }

  begin(value, isWritable) {
    this.#value = value;
    this.#isWritable = isWritable;
  }

  get() {
    return this.#value;
  }

  set(value) {
    if (!this.#isWritable) throw fail(ErrorCodes.Forbidden, 'Not a writable property: body');
    checkBody(jsonStringify(value), this.#natives);
    this.#value = value;
    this.isSet = true;
  }

  append(value) {
    const before = this.#value === undefined ? '' : asText(this.#value);
    this.set(before + asText(value));
  }

  text() {
    const text = jsonStringify(this.#value);
    checkBody(text, this.#natives);
    return text;
  }
}

// getValue, setValue and appendValue over properties by name. A property without `set` is read-only.
function accessors(properties) {
  const find = (name) => (typeof name === 'string' ? properties[name] : undefined);
  const writable = (name) => {
    const property = find(name);
    if (property === undefined) throw fail(ErrorCodes.BadRequest, 'Cannot set new values: ' + NativeString(name));
    if (property.set === undefined) throw fail(ErrorCodes.Forbidden, 'Not a writable property: ' + name);
    return property;
  };
  return {
    getValue: (name) => find(name)?.get(),
    setValue: (name, value) => writable(name).set(value),
    appendValue: (name, value) => writable(name).append(value),
    getBody: () => properties.body.get(),
    setBody: (value) => properties.body.set(value),
    appendBody: (value) => properties.body.append(value),
  };
}

function makeRequest(state) {
  const operationType = { __proto__: null, get: () => state.input.operationType };
  const request = accessors({ __proto__: null, body: state.requestBody, operationType });
  request.getOperationType = operationType.get;
  return request;
}

function makeResponse(state) {
  const maxResourceQuota = { __proto__: null, get: () => state.input.quotaMax };
  const resourceQuotaCurrentUsage = { __proto__: null, get: () => state.input.quotaUsage };
  const response =
    accessors({ __proto__: null, body: state.responseBody, maxResourceQuota, resourceQuotaCurrentUsage });
  response.getMaxResourceQuota = maxResourceQuota.get;
  response.getResourceQuotaCurrentUsage = resourceQuotaCurrentUsage.get;
  return response;
}
