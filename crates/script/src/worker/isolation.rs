//! Tests: nothing that code does in a sealed runtime is visible to later code.
//!
//! The code here is no script: it is neither strict nor refused for its words, and it catches all errors. What it cannot
//! change, no script can.

use super::realm::{Kind, Prelude, Realm};
use super::state::State;
use crate::Clock;
use crate::wire::to_worker::Allowance;
use std::time::Duration;

/// Describes every object that code can reach: its class, prototype and properties, with what accessors return.
const DESCRIBE: &str = r#"
(function (roots) {
  const numbers = new Map(), texts = [], pending = [];
  const reference = (value) => {
    if ((typeof value !== 'object' || value === null) && typeof value !== 'function') {
      return typeof value + ' ' + String(value);
    }
    if (!numbers.has(value)) {
      numbers.set(value, numbers.size);
      pending.push(value);
    }
    return '#' + numbers.get(value);
  };
  const attempt = (read) => { try { return reference(read()); } catch (error) { return 'throws ' + error.name; } };
  roots.forEach(reference);
  while (pending.length > 0) {
    const value = pending.shift();
    const lines = ['#' + numbers.get(value), Object.prototype.toString.call(value), typeof value,
      Object.isFrozen(value), reference(Object.getPrototypeOf(value))];
    for (const key of Reflect.ownKeys(value)) {
      const property = Object.getOwnPropertyDescriptor(value, key);
      lines.push(String(key) + (property.writable ? ' w' : '') + (property.configurable ? ' c' : '')
        + (property.enumerable ? ' e' : ''));
      if ('value' in property) lines.push(reference(property.value));
      else lines.push(reference(property.get), reference(property.set), attempt(() => value[key]));
    }
    lines.push(attempt(() => String(value)), attempt(() => value.stack));
    texts.push(lines.join('|'));
  }
  // What the engine does by itself.
  function f(x) { return x.y.z; }
  texts.push(attempt(() => f({})));
  try { f({}); } catch (error) { texts.push(error.stack, String(Object.getOwnPropertyNames(error))); }
  texts.push(new Error('e').stack, String(new Date(0)), JSON.stringify([{ a: 1 }, [2]]), [3, 1, 2].sort().join());
  texts.push('abcabc'.replace(/b/g, 'x'), JSON.stringify('a1b2'.match(/\d/g)), `${1}`, [...'ab'].join('-'));
  texts.push((x => x`a${1}b`)((strings, value) => strings.raw.join() + value));
  return texts.join('\n');
})
"#;

/// What syntax and built-in functions make, besides the globals.
const ROOTS: &str = r#"
[globalThis, function* () {}, async function () {}, async function* () {}, (function* () {})(), [].values(), [].entries(),
 ''[Symbol.iterator](), new Map().entries(), new Set().values(), 'x'.matchAll(/x/g), (function () { return arguments; })(),
 [].values().map((value) => value), [].values().drop(1), [].values().flatMap((value) => [value]),
 Iterator.from({ next() {} }), Iterator.concat([]), new Uint8Array(1).values(), Object(1n), Object(Symbol.iterator),
 new Proxy({}, {}), (class {}), (() => 1), (function () {}).bind(null), /x/, new Date(0), new Error('x'),
 (async function* () {})(), Promise.resolve(1), new WeakRef({}), new FinalizationRegistry(() => 1), [][Symbol.iterator](),
 ...(typeof getContext === 'undefined' ? [] : [getContext(), getContext().getCollection(), getContext().getRequest(),
 getContext().getResponse(), __])]
"#;

/// Attempts to change each object by syntax and by `Object` and `Reflect`.
const CHANGE: &str = r#"
(function (objects) {
  const attempt = (change) => { try { change(); } catch (error) { } };
  for (const object of objects) {
    for (const key of [...Reflect.ownKeys(object), 'added', 0, Symbol.toPrimitive, Symbol.for('added')]) {
      const values = [undefined, 1, 'text', () => 'changed', object, [object]];
      for (const value of values) {
        attempt(() => { object[key] = value; });
        attempt(() => { 'use strict'; object[key] = value; });
        attempt(() => Reflect.set(object, key, value));
        attempt(() => Reflect.set(object, key, value, {}));
        attempt(() => Reflect.set({}, key, value, object));
        attempt(() => Reflect.defineProperty(object, key, { value, configurable: true, writable: true }));
        attempt(() => Object.defineProperty(object, key, { get: () => value, configurable: true }));
      }
      attempt(() => { delete object[key]; });
      attempt(() => { object[key](); });
      attempt(() => { new object[key](object); });
    }
    attempt(() => Object.setPrototypeOf(object, null));
    attempt(() => { object.__proto__ = { added: 1 }; });
    attempt(() => Object.assign(object, { added: 1 }));
    attempt(() => object.__defineGetter__('added', () => 1));
    attempt(() => Error.captureStackTrace(object));
    attempt(() => { throw object; });
    attempt(() => { for (const value of object) { } });
    attempt(() => { with (object) { added = 1; toString = 1; } });
    attempt(() => { object.length = 0; object.length++; });
    attempt(() => { class Derived extends object { static { super.added = 1; } } new Derived(); });
    attempt(() => { added = 1; undefined = 1; NaN = 1; var created = 1; });
    attempt(() => new Proxy(object, { set() { return true; } }).added = 1);
  }
})
"#;

/// Calls every function with objects that calls share, as `this` and as arguments.
const CALL: &str = r#"
(function (objects, seed) {
  const random = (count) => { seed = (seed * 1103515245 + 12345) % 2147483648; return (seed >> 8) % count; };
  const endless = [Object.getPrototypeOf([].values().map((value) => value)).next];
  const functions = objects.filter((value) => typeof value === 'function' && !endless.includes(value));
  const change = () => { throw new Error('called'); };
  for (const callable of functions) {
    for (let round = 0; round < 24; round += 1) {
      const any = () => [objects[random(objects.length)], functions[random(functions.length)], random(4), 'added', change,
        { value: 1, writable: true, configurable: true }, [], /x/g, null][random(9)];
      try {
        const receiver = any();
        if (round % 6 === 5) new callable(any(), any());
        else callable.call(receiver, any(), any(), any());
      } catch (error) { }
    }
  }
})
"#;

/// The objects that code can reach.
const REACH: &str = r#"
(function (roots) {
  const seen = new Set(), pending = [...roots];
  while (pending.length > 0) {
    const value = pending.pop();
    if ((typeof value !== 'object' || value === null) && typeof value !== 'function' || seen.has(value)) continue;
    seen.add(value);
    pending.push(Object.getPrototypeOf(value));
    for (const key of Reflect.ownKeys(value)) {
      const property = Object.getOwnPropertyDescriptor(value, key);
      pending.push(property.value, property.get, property.set);
      try { pending.push(value[key]); } catch (error) { }
    }
  }
  return [...seen];
})
"#;

/// A runtime of this kind in which code may run for long.
fn realm(kind: Kind) -> Realm {
    let realm = Realm::new(Prelude::compile().unwrap(), kind).unwrap();
    start(&realm.state);
    realm
}

fn start(state: &State) {
    let allowance = Allowance { time: Duration::from_secs(600), memory_bytes: 256 << 20 };
    state.start(allowance, Clock::Fixed { at_ms: 0 }, 1);
}

/// Evaluates code, not strictly, as in a new call. Empties the queue of jobs.
fn evaluate(realm: &Realm, code: &str) -> String {
    realm.limit_memory(256 << 20);
    if let Some(entry) = &realm.entry.documents {
        realm.context.with(|ctx| entry.reset.clone().restore(&ctx).unwrap().call::<_, ()>(())).unwrap();
    }
    let mut options = rquickjs::context::EvalOptions::default();
    options.strict = false;
    let text = realm.context.with(|ctx| {
        let value = ctx.eval_with_options::<rquickjs::Value, _>(code, options);
        let value = value.map_err(|_| format!("{:?}", ctx.catch())).unwrap();
        value.into_string().map(|text| text.to_string().unwrap()).unwrap_or_default()
    });
    while let Ok(true) | Err(_) = realm.runtime.execute_pending_job() {}
    text
}

fn description(realm: &Realm) -> String {
    evaluate(realm, &format!("{DESCRIBE}({ROOTS})"))
}

/// What differs, line by line.
#[track_caller]
fn assert_unchanged(before: &str, after: &str, what: &str) {
    for (before, after) in before.lines().zip(after.lines()) {
        assert_eq!(before, after, "{what}");
    }
    assert_eq!(before.lines().count(), after.lines().count(), "{what}");
}

#[test]
fn code_changes_nothing_that_later_code_sees() {
    for kind in [Kind::SealedFunctions, Kind::SealedDocuments] {
        let realm = realm(kind);
        let before = description(&realm);
        assert!(before.lines().count() > 1000, "{}", before.lines().count());
        assert_unchanged(&before, &description(&realm), "nothing done");
        evaluate(&realm, &format!("{CHANGE}({REACH}({ROOTS}))"));
        assert_unchanged(&before, &description(&realm), "changes");
        for seed in 1..4 {
            evaluate(&realm, &format!("{CALL}({REACH}({ROOTS}), {seed})"));
            assert_unchanged(&before, &description(&realm), "calls");
        }
    }
}

#[test]
fn objects_that_calls_share_have_no_state_besides_properties() {
    // Classes whose objects can be changed although they are frozen.
    let code = format!(
        r#"(function (objects) {{
          const brands = [Date.prototype.getTime, Map.prototype.keys, Set.prototype.keys,
            Object.getOwnPropertyDescriptor(ArrayBuffer.prototype, 'byteLength').get,
            Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), 'length').get];
          const found = [];
          for (const object of objects) {{
            for (const brand of brands) {{
              try {{ brand.call(object); found.push(String(object)); }} catch (error) {{ }}
            }}
            if (object instanceof Promise || object instanceof RegExp || object instanceof WeakMap
              || object instanceof WeakSet) found.push(String(object));
          }}
          return found.join();
        }})({REACH}([globalThis]))"#
    );
    for kind in [Kind::SealedFunctions, Kind::SealedDocuments] {
        assert_eq!(evaluate(&realm(kind), &code), "");
    }
}

#[test]
fn what_is_guarded_is_noticed() {
    for code in [
        "Function('return 1')",
        "(function () {}).constructor",
        "Math.max['const' + 'ructor']('return this')()",
        "(async function () {}).constructor",
        "(function* () {}).constructor",
        "(async function* () {}).constructor",
        "(0, eval)('x => x')",
        "new WeakRef({})",
        "new FinalizationRegistry(() => 1)",
        "TypeError.stackTraceLimit",
        "TypeError.stackTraceLimit = 5",
        "Object.getPrototypeOf(TypeError).prepareStackTrace = () => 1",
        "RangeError.prepareStackTrace",
        "Error.captureStackTrace({})",
        "Reflect.set([], 0, 1)",
        "Promise.resolve()",
        "Array.fromAsync([])",
        "globalThis['Weak' + 'Ref']",
        "Object.isFrozen([])",
        "Object.getOwnPropertyDescriptors(Math)",
        "({}).__lookupGetter__.call(Object, 'isFrozen')",
        "queueMicrotask(() => 1)",
        "Function = 1",
        "eval = 1",
    ] {
        let realm = realm(Kind::SealedDocuments);
        assert!(!realm.state.has_noticed.get());
        evaluate(&realm, code);
        assert!(realm.state.has_noticed.get(), "{code}");
        start(&realm.state);
        assert!(!realm.state.has_noticed.get());
    }
}

#[test]
fn ordinary_code_is_not_noticed() {
    let realm = realm(Kind::SealedDocuments);
    realm.state.logs.set(true);
    evaluate(
        &realm,
        r#"
        console.log('text %s', 1); getContext().getRequest(); __.response.getValue('body'); __.chain().filter(() => true);
        class Base { constructor() { this.x = 1; } } class Derived extends Base {}
        [new Derived(), [3, 1].map((x) => x).sort(), 'a,b'.split(/,/), new Map([[1, 2]]), new Date(), Math.random(),
         JSON.stringify({ a: [1] }), Object.keys({}), Object.assign({}, Math), { ...Object }, [...'ab'].values().toArray(),
         new Uint8Array(2).slice(1), `${{}}`, Symbol.for('a'), new Error('x').stack, new TypeError('x').message,
         ({}).constructor === Object, Object.freeze({}), (function* () { yield 1; })().next(), parseInt('3')];
        (async function () { await 1; })();
        "#,
    );
    assert!(!realm.state.has_noticed.get());
}

#[test]
fn errors_that_are_hidden_are_reported() {
    for (code, is_reported) in [
        ("(function () { 'use strict'; undeclared = 1; })()", true),
        ("(function () { 'use strict'; Math.max = 1; })()", true),
        ("Array.prototype.push.call(Math, 1)", true),
        ("null.x", true),
        ("throw new Error(403, 'no')", false),
        ("JSON.parse('{')", false),
        ("throw 'text'", false),
        // Whatever it is, it is no error.
        ("throw new Proxy({}, { getPrototypeOf() { null.x; } })", false),
    ] {
        for code in [format!("try {{ {code} }} catch (error) {{ }}"), hidden_by_iterator(code)] {
            let realm = realm(Kind::SealedFunctions);
            evaluate(&realm, &code);
            assert_eq!(realm.state.is_suspect(), is_reported, "{code}");
        }
    }
}

/// Code that hides an error in a method that the language calls while another error is thrown.
fn hidden_by_iterator(code: &str) -> String {
    format!(
        "(function () {{ const iterator = {{ [Symbol.iterator]() {{ return this; }}, next: () => ({{ value: 1 }}), \
         return() {{ {code}; }} }}; try {{ for (const value of iterator) throw 'first'; }} catch (error) {{ }} }})()"
    )
}

#[test]
fn stacks_are_those_of_other_runtimes() {
    for code in [
        "new Error('x').stack",
        "(function f() { return new Error(5, 'x').stack; })()",
        "[1].map(function g() { return new RangeError('x').stack; })[0]",
        "class A { static m() { return new Error('x').stack; } } A.m()",
        "try { JSON.parse('{\\n,'); } catch (error) { error.stack; }",
        "try { new RegExp('('); } catch (error) { error.stack; }",
        "const f = (n) => n > 0 ? f(n - 1) : new Error('x').stack; f(100)",
        "try { null.x; } catch (error) { error.stack; }",
        "(function () { return new Error('x').stack; }).bind(1)()",
        "const o = { 'ä b': () => new Error('x').stack }; o['ä b']()",
    ] {
        let [own, sealed] = [Kind::Functions, Kind::SealedFunctions].map(|kind| evaluate(&realm(kind), code));
        assert!(own.contains("    at "), "{code}: {own}");
        assert_eq!(sealed, own, "{code}");
    }
}
