//! Scripts that could notice that their calls share a runtime: each call ends as if it had a runtime of its own.

use crate::fixture::{CALLER, Documents, NOW_MS, call, workers};
use bytes::Bytes;
use script::{
    Call, CallFault, Clock, Evaluated, Function, FunctionBatch, Role, TriggerOperation, Turn, Workers,
};
use serde_json::json;
use std::sync::Arc;
use value::{Value, ValueRef};

/// More calls than a script needs to get a shared runtime.
const CALLS: usize = 8;

/// More rows than a function needs to get a shared runtime.
const ROWS: i64 = 60;

/// What a caller sees of a run: the result and log, or the error; and the documents. A script that has to be run again
/// is.
async fn outcome(workers: &Workers, call: &Call) -> String {
    let mut documents = Documents::with(json!([{ "id": "first", "n": 1 }]));
    let run = match workers.run(CALLER, call, &mut documents).await {
        Err(CallFault::Again) => {
            documents = Documents::with(json!([{ "id": "first", "n": 1 }]));
            let alone = Call { needs_own_runtime: true, ..call.clone() };
            workers.run(CALLER, &alone, &mut documents).await
        }
        run => run,
    };
    match run {
        Ok(finished) => format!("{finished:?} {:?}", documents.documents),
        Err(fault) => format!("{fault:?}"),
    }
}

/// Texts of functions that could notice that their calls share a runtime, or that they are strict there. `S(…)` sets the
/// response.
const NOTICING: &[&str] = &[
    // Globals and undeclared variables.
    "function () { x = 1; S(x); }",
    "function () { S(typeof x); x = 1; }",
    "function () { try { x = 1; } catch (e) { S('caught'); } S(typeof x); }",
    "function () { var x = 1; S(globalThis.x === undefined); }",
    "function () { this.x = (this.x || 0) + 1; S(x); }",
    "function () { globalThis.x = (globalThis.x || 0) + 1; S(globalThis.x); }",
    "function () { Math.max.constructor('x = 1')(); S(x); }",
    "function () { var f = Math['max']['const' + 'ructor']('return this'); S(typeof f()); }",
    "function () { S(typeof [].map['const' + 'ructor']('return this')().Array); }",
    "function () { (0, eval)('var y = 1'); S(y); }",
    "function () { undefined = 1; NaN = 2; S(String(undefined)); }",
    "function () { Array = 1; S(Array); }",
    "function () { Object = { keys: function () { return 'mine'; } }; S(Object.keys()); }",
    "function () { Math.x = (Math.x || 0) + 1; S(Math.x); }",
    "function () { delete Math.max; S(typeof Math.max); }",
    "function () { S(delete Math.max); }",
    "function () { delete Array.prototype.map; S([].map === undefined); }",
    "function () { __ = 1; S(typeof __); }",
    "function () { getContext = 1; S(typeof getContext); }",
    "function () { ErrorCodes.Mine = (ErrorCodes.Mine || 0) + 1; S(ErrorCodes.Mine); }",
    "function () { console.log = function () {}; console.log('x'); S(1); }",
    // Prototypes, with inherited properties that are read-only when they are frozen.
    "function () { Object.prototype.x = 1; S(({}).x); }",
    "function () { var o = {}; o.toString = function () { return 'mine'; }; S('' + o); }",
    "function () { var e = new Error('m'); e.name = 'Mine'; throw e; }",
    "function () { var e = new Error('m'); e.message = 'other'; throw e; }",
    "function () { var o = {}; o.constructor = 1; S(o); }",
    "function (n, o) { var c = {}; for (var k in o) c[k] = o[k]; S(c); }",
    "function () { var c = {}; ['a', 'valueOf', 'constructor'].forEach(function (w) { c[w] = (c[w] || 0) + 1; }); S(c); }",
    "function () { var a = [1]; a.map = function () { return 'mine'; }; S(a.map()); }",
    "function () { Object.setPrototypeOf(Array.prototype, { x: 1 }); S([].x); }",
    "function () { Array.prototype.__proto__ = null; S([].hasOwnProperty === undefined); }",
    "function () { Error.prepareStackTrace = function () { return 'mine'; }; S(new Error('x').stack); }",
    "function () { Object.getPrototypeOf(TypeError).stackTraceLimit = 0; S(new TypeError('x').stack); }",
    "function () { S(TypeError.stackTraceLimit); }",
    "function () { S('' + Object.getPrototypeOf(TypeError).prepareStackTrace); }",
    "function () { Error.captureStackTrace(Math); S(typeof Math.stack); }",
    // What tells that something is frozen.
    "function () { S([Object.isFrozen(Math), Object.isSealed(Array.prototype), Object.isExtensible(JSON)]); }",
    "function () { S(Object['is' + 'Frozen'](Math)); }",
    "function () { S(Object.getOwnPropertyDescriptor(Math, 'max').writable); }",
    "function () { S(Object.getOwnPropertyDescriptors(Math).max.writable); }",
    "function () { S(typeof Object.prototype.__lookupGetter__.call(Object, 'isFrozen')); }",
    "function () { S(Reflect.set(Math, 'x', 1) + ' ' + Math.x); }",
    "function () { S(new Proxy(Math, { get: function () { return 5; } }).max); }",
    "function () { new Proxy(Math, { set: function () { return true; } }).x = 1; S(Math.x === undefined); }",
    "function () { S(Object.keys(new Proxy(Array.prototype, { ownKeys: function () { return []; } }))); }",
    "function () { Object.freeze(Math); Math.x = 1; S(typeof Math.x); }",
    // Strict code.
    "function () { S((function () { return this === undefined; })()); }",
    "function (n) { n = 5; S(arguments[0]); }",
    "function () { S(typeof arguments.callee); }",
    "function () { { function inner() {} } S(typeof inner); }",
    "function () { var brace = '}'; { function inner() {} } S(typeof inner); }",
    "function f() { S(g()); } function g() { return 1; } if (true) { function g() { return 2; } }",
    "function () { var inner = 1; if (inner) { function inner() {} } S(typeof inner); }",
    "function () { S(010); }",
    "function () { with ({ x: 1 }) { S(x); } }",
    "function () { var o = Object.freeze({ a: 1 }); o.a = 2; S(o); }",
    "function () { 'text'.length = 1; (5).x = 1; S(1); }",
    "function () { var f = function g() { g = 1; return typeof g; }; S(f()); }",
    "function () { var f = function () { return f.caller; }; S(f()); }",
    "function () { S(delete Object.prototype); }",
    "function () { eval('var y = 1'); S(typeof y); }",
    // Errors that code hides.
    "function () { try { Math.max = 1; } finally { return S(Math.max); } }",
    "function () { Promise.resolve().then(function () { x = 1; S(x); }).catch(function () { S('no'); }); }",
    "async function () { try { await 1; x = 1; S(x); } catch (e) { S('no'); } }",
    "function () { Array['from' + 'Async']([1])['th' + 'en'](function (a) { x = a; S(x); }, 1); }",
    "function () { import('x'); S(1); }",
    "function () { queueMicrotask(function () { S('later'); }); }",
    "function () { queueMicrotask(function () { throw new Error('later'); }); }",
    "function () { globalThis['queue' + 'Microtask'](function () { x = 1; S(x); }); }",
    "function () { var i = {}; i[Symbol.iterator] = function () { return { next: function () { return {}; }, \
        return: function () { x = 1; console.log(x); return {}; } }; }; for (var v of i) { break; } S(x); }",
    "function () { var e = new Error(418, 'first'); var i = { next: function () { return { value: 1 }; }, \
        return: function () { x = 1; e.number = 419; return {}; } }; i[Symbol.iterator] = function () { return i; }; \
        for (var v of i) { throw e; } }",
    "function () { var o = { m() { return super.toString(); } }; var m = o.m; S(m()); }",
    "function () { var q = { of: 8 }, r = q?. of / 2; try { x = 1; S('own'); } catch (e) { S('no'); } var z = 1 / 2; }",
    "function () { { function\u{feff}inner() {} } S(typeof inner); }",
    // State of the language that is no property.
    "function () { var f = (x) => x; var o = f`a`; S(Object.isFrozen(o)); }",
    "function () { var r = /a/g; r.test('aa'); S(r.lastIndex); }",
    "function () { S(Symbol.keyFor(Symbol.for('mine'))); }",
    "function () { S([Math.random(), Math.random(), Date.now(), new Date().toISOString()]); }",
    "function () { class A { static n = 0; } A.n++; S(A.n); }",
    "function () { var m = new WeakMap(); var had = m.has(Math); m.set(Math, 1); S(had); }",
    "function () { globalThis['Weak' + 'Ref'].n = 1; S(WeakRef.n); }",
    "(function () { var n = 0; return function () { n++; S(n); }; })()",
    "function () { function* g() { yield 1; } var p = Object.getPrototypeOf(g); p.x = (p.x || 0) + 1; S(p.x); }",
    // The API.
    "function () { __.x = (__.x || 0) + 1; S(__.x); }",
    "function () { var c = __.chain(); c.x = 1; var p = Object.getPrototypeOf(c); p.x = (p.x || 0) + 1; S(p.x); }",
    "function () { Object.getPrototypeOf(__.chain()).filter = 1; S(1); }",
    "function () { __.filter(function (d) { seen = d.id; return true; }, function (e, f) { S(seen + f.length); }); }",
    "function () { __.readDocument(__.getAltLink() + '/docs/first', function (e, d) { d.toString = 1; S(d); }); }",
    "function () { __.createDocument(__.getSelfLink(), { id: 'a' }, function () { y = 1; S(y); }); }",
    "function () { __.createDocument(__.getSelfLink(), { id: 'first' }, function (e) { e.name = 'Mine'; throw e; }); }",
    "function () { __.createDocument(__.getSelfLink(), { id: 'first' }); }",
    "function () { console.log(typeof x); x = 1; console.log(x); S(x); }",
    "function () { console.log(1); getContext().abort(new TypeError('stop')); }",
    "function () { null.x; }",
    "function () { x; }",
    "function () { throw null; }",
    "function () { throw { name: 'TypeError', message: 'mine' }; }",
    "function () { throw { message: 'm', get number() { x = 412; return x; } }; }",
    "function () { throw { toString: function () { x = 'mine'; return x; } }; }",
    "function () { var e = new Error('m'); Object.defineProperty(e, 'stack', { get: function () { x = 's'; return x; } }); \
        throw e; }",
    "function () { throw Object.create(null); }",
    "function () { var f = function () { f(); }; f(); }",
    "function () { S(1n); }",
    "function () { var a = []; a.push(a); S(a); }",
    // Iterators that are closed while an error passes.
    "function () { var e = new Error(418, 'a'); function* g() { using r = { [Symbol.dispose]() { x = 1; e.number = 419; } }; \
        yield 1; } for (var v of g()) throw e; }",
    "function () { var e = new Error(418, 'a'); function* g() { using r = { [Symbol.dispose]() { x = 1; e.number = 419; } }; \
        yield 1; } Array.from(g(), () => { throw e; }); }",
    "function () { var e = new Error(418, 'a'); function* g() { using r = { [Symbol.dispose]() { x = 1; e.number = 419; } }; \
        yield { get 0() { throw e; } }; } new Map(g()); }",
    "function () { var e = new Error(418, 'a'); function* g() { using r = { [Symbol.dispose]() { x = 1; e.number = 419; } }; \
        yield { get 0() { throw e; } }; } Object.fromEntries(g()); }",
    "function () { var e = new Error(418, 'a'); async function* g() { await using r = { [Symbol.asyncDispose]() { x = 1; \
        e.number = 419; } }; yield 1; } for (var v of g()) throw e; }",
    "function () { var e = new Error(418, 'a'); var p = new Proxy({}, { get: (t, k) => k === 'next' ? \
        () => ({ value: 1, done: false }) : k === Symbol.iterator ? () => p : () => { x = 1; e.number = 419; return {}; } }); \
        for (var v of p) throw e; }",
    "function () { var e = new Error(418, 'a'), i = { next: () => ({ value: 1 }) }; i[Symbol.iterator] = () => i; \
        i['ret' + 'urn'] = () => { x = 1; e.number = 419; return {}; }; for (var v of i) throw e; }",
    "function () { var e = new Error(418, 'a'), i = { next: () => ({ value: 1 }) }; i[Symbol.iterator] = () => i; \
        i['ret' + 'urn'] = () => { Math.max = 1; e.number = 419; return {}; }; \
        for (var v of i) throw e; }",
    "function () { var e = new Error(418, 'a'), o = Object.fromEntries([['next', () => ({ value: 1 })], \
        ['return'.trim(), () => { 'a'.length = 2; e.number = 419; }]]); o[Symbol.iterator] = () => o; \
        for (var v of o) throw e; }",
    "function () { var e = new Error(418, 'a'), i = Iterator.from({ next: () => ({ value: 1 }), \
        ['ret' + 'urn']() { x = 1; e.number = 419; return {}; } }); i.map((v) => { throw e; }).next(); }",
    "function () { var e = new Error(418, 'a'), s = new DisposableStack(); s.defer(() => { x = 1; }); \
        s.defer(() => { throw e; }); s.dispose(); }",
    "function () { var e = new Error(418, 'a'), s = new DisposableStack(); s.defer(() => { throw e; }); \
        s.defer(() => { x = 1; }); s.dispose(); }",
    "function () { var s = new DisposableStack(), n = 0; s.defer(() => { n = 1; }); s.dispose(); S(n); }",
    "function () { throw new SuppressedError(new Error(1, 'a'), new Error(2, 'b')); }",
    // Objects that the engine makes once for a text.
    "function () { var t = ((s) => s)`a`; t.n = (t.n || 0) + 1; t.raw.push(1); S([t.n, t.raw.length]); }",
    "function () { var t = ((s) => s)`a`; t.raw.push(1); S(t.raw.length); }",
    "function () { var t = () => ((s) => s)`a`, m = new WeakMap(); m.set(t(), 1); S([m.get(t()), t() === t()]); }",
    "function () { var m = new WeakSet(), had = m.has(JSON); m.add(JSON); S([had, m.has(JSON)]); }",
    "function () { class A { #n = 1; static n(o) { return o.#n++; } } var a = new A(); A.n(a); S(A.n(a)); }",
    "function () { class B { constructor(o) { return o; } } class C extends B { #n = 1; static has(o) { return #n in o; } } \
        new C(Math); S(C.has(Math)); }",
    "function () { class B { constructor(o) { return o; } } class C extends B { #n = 1; static next(o) { return o.#n++; } \
        constructor(o) { super(o); } } new C(Math); C.next(Math); S(C.next(Math)); }",
    "function () { var B = function (o) { return o; }; class C extends B { #n = 1; static has(o) { return #n in o; } } \
        var had = C.has(Math); new C(Math); S([had, C.has(Math)]); }",
    "function () { var B = function (o) { return o; }; class C extends B { #m() { return 7; } \
        static call(o) { return o.#m(); } } new C(Array.prototype); S(C.call([]['__pro' + 'to__'])); }",
    "function () { var B = function (o) { return o; }; class C extends B { #n = 1; } new C(Math); new C(Math); S(1); }",
    "function () { var B = function (o) { return o; }; class C extends B { n = 1; } new C(Math); S(Math.n); }",
    // Properties of functions, which strict code has not.
    "function () { S([Object.getOwnPropertyNames(function () {}), 'caller' in S, (function () {})['argu' + 'ments']]); }",
    "function () { S([Object.getOwnPropertyNames(function () {}), 'caller' in S]); }",
    "function () { S((function () {})['argu' + 'ments'] === undefined); }",
    "function () { S((function () {})['call' + 'er'] === null); }",
    "function () { var f = function () { return f['argu' + 'ments']; }; S(f(1)); }",
    "function () { S(Object.entries(Function.prototype).length + Object.keys(S).length); }",
    "function () { var f = function () {}; f.caller = 1; f.name = 2; f.length = 3; S([f.name, f.length, f.caller]); }",
    "function () { S((function () {}).hasOwnProperty('caller') + ' ' + (() => 1).hasOwnProperty('prototype')); }",
    "function () { S([function () {} + '', String(class A {}), (() => { 'use strict'; }).toString()]); }",
    // Names that are inherited from what is frozen.
    "function () { var o = Object.create(Array); o.fromAsync = 5; S(o.fromAsync); }",
    "function () { var o = Object.create(Math); o.max = 5; S(o.max); }",
    "function () { var o = { __proto__: Math }; o.max = 5; S([o.max, Object.keys(o)]); }",
    "function () { var o = Object.create(globalThis); o.eval = 5; S(o.eval); }",
    "function () { S(Object.assign({}, { constructor: 1, toString: 2 })); }",
    "function () { var r = /x/; r.exec = () => null; S([r.test('x'), 'x'.replace(r, 'y')]); }",
    "function () { var e = new Error(); e.message = 'x'; S(e.message); }",
    "function () { var e = new Error(); e.message = 'x'; throw e; }",
    "function () { var e = new Error('m'); e.stack = 'mine'; S(e.stack); }",
    "function () { var e = new Error('m'); e.number = 7; e.body = 'b'; throw e; }",
    "function () { class E extends Error { name = 'Mine'; } throw new E('m'); }",
    "function () { class E extends Error {} E.prototype.name = 'Mine'; throw new E('m'); }",
    "function () { class E extends Error { get message() { x = 1; return 'm'; } } throw new E(); }",
    "function () { var a = [1]; a.toString = () => 'mine'; S('' + a); }",
    "function () { var d = new Date(0); d.toJSON = () => 'mine'; S(d); }",
    "function () { var m = new Map(); m.size = 5; S(m.size); }",
    "function () { var o = JSON.parse('{\"__proto__\": {\"x\": 1}, \"toString\": 1}'); S([o.x === undefined, Object.keys(o)]); }",
    "function () { var o = {}; o.__proto__ = { x: 1 }; S(o.x); }",
    "function () { function A() {} A.prototype.toString = () => 'mine'; A.prototype.constructor = A; S('' + new A()); }",
    "function () { var A = function () {}; A.prototype = { toString: () => 'mine' }; S('' + new A()); }",
    "function () { class A { toString() { return 'mine'; } } S(`${new A()}`); }",
    "function () { var a = [3, 4]; a.length = 1; a[5] = 1; S([a, a.at(-1), Object.keys(a)]); }",
    "function () { [].constructor.prototype.x = 1; S([].x); }",
    "function () { Object.defineProperty(Math, 'max', { value: 1 }); S(Math.max); }",
    "function () { Object.defineProperty(Array.prototype, 'x', { get: () => 1 }); S([].x); }",
    "function () { ({}).__defineGetter__.call(Math, 'x', () => 1); S(Math.x); }",
    "function () { Array.prototype.push.call(Math, 1); S(Math.length); }",
    "function () { Array.prototype.splice.call(Array.prototype, 0, 0, 'x'); S([][0]); }",
    "function () { [1].forEach.call([1], function () {}, Math); Object.seal(Math); Math.x = 1; S(Math.x === undefined); }",
    "function () { Object.preventExtensions(Array.prototype); Array.prototype.x = 1; S([].x === undefined); }",
    "function () { Object.freeze(Array.prototype); var a = []; a.map = 1; S(typeof a.map); }",
    "function () { [Math.x, Math.y] = [1, 2]; S(Math.x); }",
    "function () { for (Math.x of [1, 2]); S(Math.x); }",
    "function () { for (x of [1, 2]); S(x); }",
    "function () { for (x in { a: 1 }); S(x); }",
    "function () { ({ x } = { x: 3 }); S(x); }",
    "function () { Math.x ??= 1; Math.x += 1; S(Math.x); }",
    "function () { S(typeof x); x ??= 1; }",
    "function () { x++; }",
    "function () { S(delete Math.x); S(delete Math['max']); }",
    "function () { Math.max.length = 7; S(Math.max.length); }",
    // Proxies.
    "function () { S('x' in new Proxy(Math, { has: () => true })); }",
    "function () { var p = new Proxy(Math, { preventExtensions: () => true }); Object.preventExtensions(p); S(1); }",
    "function () { S('max' in new Proxy(Math, { has: () => false })); }",
    "function () { S(Object.getPrototypeOf(new Proxy(Math, { getPrototypeOf: () => null }))); }",
    "function () { S(new Proxy(Array.prototype, { getPrototypeOf: () => Date.prototype }) instanceof Date); }",
    "function () { S(delete new Proxy(Math, { deleteProperty: () => true }).max); }",
    "function () { S(delete new Proxy(Array.prototype, { deleteProperty: () => false }).map); }",
    "function () { S(Object.entries(new Proxy({ a: 1 }, { ownKeys: () => ['a', 'b'] }))); }",
    "function () { var p = new Proxy([], { set: (t, k, v) => { t[k] = v; return k !== 'x'; } }); p.x = 1; S(p.x); }",
    "function () { var p = new Proxy({}, { defineProperty: () => false }); p.x = 1; S(p.x === undefined); }",
    "function () { var p = Proxy.revocable({}, {}); p.revoke(); S(typeof p.proxy); }",
    "function () { throw new Proxy(new Error('m'), { get: (t, k) => { x = k; return t[k]; } }); }",
    "function () { throw new Proxy({}, { getPrototypeOf: () => { x = 1; return null; } }); }",
    // Stacks of errors that are made where the engine calls back.
    "function () { throw new Error(402, [1].map((x) => new Error('m').stack)[0]); }",
    "function () { var o = { valueOf() { throw new Error('m'); } }; S(o + 1); }",
    "function () { var o = { valueOf() { throw new Error('m'); } }; S(-o); }",
    "function () { var o = { valueOf() { throw new Error('m'); } }; S(o < 1); }",
    "function () { var o = { [Symbol.toPrimitive]() { throw new Error('m'); } }; S(`a${o}`); }",
    "function () { var o = { toString() { throw new Error('m'); } }; S({ [o]: 1 }); }",
    "function () { var o = { toString() { throw new Error('m'); } }; S(o in {}); }",
    "function () { var o = { get x() { throw new Error('m'); } }; S(o.x); }",
    "function () { var o = { set x(v) { throw new Error('m'); } }; o.x = 1; }",
    "function () { var o = { get x() { throw new Error('m'); } }; var { x } = o; }",
    "function () { var o = { get x() { throw new Error('m'); } }; S({ ...o }); }",
    "function () { var o = { static: class { static [Symbol.hasInstance]() { throw new Error('m'); } } }; \
        S({} instanceof o.static); }",
    "function () { class A { static { throw new Error('m'); } } }",
    "function () { class A { x = (() => { throw new Error('m'); })(); } new A(); }",
    "function () { var i = { [Symbol.iterator]() { return { next() { throw new Error('m'); } }; } }; for (var v of i); }",
    "function () { var i = { [Symbol.iterator]() { return { next() { throw new Error('m'); } }; } }; S([...i]); }",
    "function () { var i = { [Symbol.iterator]() { throw new Error('m'); } }; var [a] = i; }",
    "function () { function* g() { throw new Error('m'); } function* h() { yield* g(); } h().next(); }",
    "function () { [2, 1].sort(() => { throw new Error('m'); }); }",
    "function () { JSON.stringify({ toJSON() { throw new Error('m'); } }); }",
    "function () { JSON.parse('[1]', () => { throw new Error('m'); }); }",
    "function () { 'a'.replace(/a/, () => { throw new Error('m'); }); }",
    "function () { (function named() { throw new Error('m'); }).bind(1)(); }",
    "function () { var f = (n) => { if (n) f(n - 1); else throw new Error('m'); }; f(20); }",
    "function () { var n = String.fromCharCode(0xd800, 32, 228), o = { [n]: () => { throw new Error('m'); } }; o[n](); }",
    "function () { JSON.parse('{'); }",
    "function () { new RegExp('('); }",
    "function () { throw new RangeError('m'); }",
    "function () { throw 'text'; }",
    "function () { S(new Error('m').stack); }",
    "function () { S([new TypeError('m').stack, new Error(4, 'm').stack]); }",
    "function () { var e = new Error('m'); S([Object.keys(e), Object.getOwnPropertyNames(e), typeof e.stack]); }",
    "function () { var f = () => { f(); }, i = { next: () => ({ value: 1 }) }; i[Symbol.iterator] = () => i; \
        i['ret' + 'urn'] = () => { f(); }; for (var v of i) throw new Error(418, 'a'); }",
    // State that the engine keeps.
    "function () { var s = Symbol.for('mine' + Math.floor(7)); S([Symbol.keyFor(s), s.description]); }",
    "function () { var f = () => /a/g, r = f(); r.test('aa'); S([r.lastIndex, f().lastIndex]); }",
    "function () { 'ab'.match(/(b)/); S([typeof RegExp.$1, typeof RegExp.lastMatch]); }",
    "function () { S([new Date(0).toLocaleString(), new Date(0).toString(), new Date(0).getTimezoneOffset(), typeof Intl]); }",
    "function () { S([typeof Atomics, typeof SharedArrayBuffer, typeof performance, typeof setTimeout, typeof gc]); }",
    "function () { S([(5).toLocaleString(), 'ä'.localeCompare('z'), [1.5].toLocaleString()]); }",
    "function () { var b = new ArrayBuffer(8, { maxByteLength: 16 }); b.resize(16); S(b.byteLength); }",
    "function () { function* g() { yield* [1, 2]; } var i = g(); i.next(); S([...i]); }",
    "function () { S(Object.keys(globalThis)); }",
    "function () { var n = 0; for (var k in Math) n++; for (var k in []) n++; S(n); }",
    "function () { S([typeof undeclared, typeof S, typeof $script]); }",
    "function () { S([new Function('x = 1; return x')(), typeof x]); }",
    "function () { var G = (function* () {})['const' + 'ructor']; S([...G('y = 1; yield y')()]); }",
    "function () { S(Object.values(Object.getPrototypeOf(function () {})).length); var f = S; f['const' + 'ructor']('x = 1')(); }",
    "function () { S(globalThis['Ref' + 'lect'].construct(Date, [0]).getTime()); }",
    "function () { var k = Object.getOwnPropertyNames(globalThis).find((n) => n.length === 7 && n.startsWith('Ref')); S(k); }",
    "function () { console.log({ toJSON() { x = 1; return x; } }); S(typeof x); }",
    "function () { console.log('%s', { toString() { x = 1; return 'a'; } }); S(typeof x); }",
    "function () { var let_ = 1, of = 2; label: for (;;) { break label; } S([let_, of]); }",
    "function () { var yield_ = 1; if (yield_) function f() {} S(typeof f); }",
    "function () { switch (1) { case 1: function f() {} } S(typeof f); }",
    "function () { label: function f() {} S(typeof f); }",
    "function (a, a) { S(a); }",
    "function () { var static = 1, let = 2; S([static, let]); }",
    "function () { var o = { get a() { return 1; } }; o.a = 2; S(o.a); }",
    "function () { var f = (o) => { o.a = 2; return o.a; }; S(f({ get a() { return 1; } })); }",
    "function () { 'use strict'; try { x = 1; } catch (e) { S('strict'); } }",
    "function () { 'use strict'; x = 1; }",
    "function () { S([..._()]); function* _() { x = 1; yield x; } }",
];

#[tokio::test]
async fn calls_end_as_if_each_had_a_runtime_of_its_own() {
    let workers = workers();
    for source in NOTICING {
        let source = source.replace("S(", "getContext().getResponse().setBody(");
        let shared = call(&source, &json!([1, { "a": 1, "toString": 2, "constructor": 3 }]));
        let alone = Call { needs_own_runtime: true, ..shared.clone() };
        let expected = outcome(&workers, &alone).await;
        for number in 0..CALLS {
            assert_eq!(outcome(&workers, &shared).await, expected, "call {number} of {source}");
        }
        assert_eq!(outcome(&workers, &alone).await, expected, "{source}");
    }
}

/// Checks that calls which take turns end as if each had a runtime of its own, also when all of them share one.
async fn check_in_turn(calls: &[Call]) {
    let workers = workers();
    let mut expected = Vec::new();
    for call in calls {
        expected.push(outcome(&workers, &Call { needs_own_runtime: true, ..call.clone() }).await);
    }
    for round in 0..CALLS {
        for (call, expected) in calls.iter().zip(&expected) {
            assert_eq!(outcome(&workers, call).await, *expected, "round {round} of {call:?}");
        }
    }
}

#[tokio::test]
async fn a_text_serves_all_roles_in_turn() {
    for source in [
        "function () { console.log(typeof __.response); if (__.response === undefined) __.request.setBody({ id: 'set' }); \
            else __.response.setBody('set'); }",
        "function () { console.log(typeof getContext().getResponse); getContext().getResponse().setBody(1); }",
        "function () { __.response.appendBody('a'); __.response.appendBody('b'); }",
        "function () { __.filter(function () { return true; }); }",
        "function () { __.chain().pluck('id').value(function (e, ids) { console.log(ids); }); }",
        "function (n) { console.log(n, __.request.getBody(), __.request.getOperationType()); }",
        "function () { __.request.setValue('body', { id: 'set' }); console.log(__.request.getValue('body')); }",
        "var request = getContext().getRequest(); function f() { console.log(request.getBody()); request.setBody({ id: 'b' }); }",
        "function (n) { __.createDocument(__.getSelfLink(), { id: 'a' }); throw new Error(403, 'role ' + n); }",
        "function () { getContext().abort('stop'); }",
    ] {
        let procedure = call(source, &json!([1]));
        let document = Bytes::from_static(b"{\"id\":\"item\"}");
        let (create, delete) = (TriggerOperation::Create, TriggerOperation::Delete);
        let roles = [
            Role::PreTrigger { operation: create, document: document.clone() },
            Role::PostTrigger { operation: create, request: document.clone(), document: document.clone() },
            Role::PreTrigger { operation: delete, document: Bytes::new() },
            Role::PostTrigger { operation: delete, request: Bytes::new(), document: Bytes::new() },
        ];
        let mut calls = vec![procedure.clone(), Call { logs: false, ..procedure.clone() }];
        calls.extend(roles.map(|role| Call { role, ..procedure.clone() }));
        check_in_turn(&calls).await;
    }
}

#[tokio::test]
async fn calls_with_and_without_a_log_take_turns() {
    for source in [
        "function (n) { console.log({ toJSON() { x = n; return x; } }); S(typeof x); }",
        "function (n) { console.log({ toJSON() { return 'read'; } }, n); S(n); }",
        "function (n) { console.log({ get a() { throw new Error(n, 'read'); } }); S(n); }",
        "function (n) { __.createDocument(__.getSelfLink(), { id: 'd' + n }); console.log(n); \
            if (n === 2) throw new Error(402, 'two'); S(__.request.getBody()); }",
    ] {
        let source = source.replace("S(", "getContext().getResponse().setBody(");
        let calls: Vec<Call> = [(1, true), (2, false), (2, true), (3, false)]
            .map(|(n, logs)| Call { logs, seed: n, ..call(&source, &json!([n])) })
            .into();
        check_in_turn(&calls).await;
    }
}

/// An error that is thrown where hardly any stack is left has its stack trace too.
#[tokio::test]
async fn errors_at_the_end_of_the_stack_have_the_same_trace() {
    let workers = workers();
    let source =
        "function (n) { var f = (n) => { if (n === 0) throw new Error(418, 'deep'); f(n - 1); }; f(n); }";
    let alone = |n: u32| Call { needs_own_runtime: true, ..call(source, &json!([n])) };
    let (mut fits, mut too_deep) = (0_u32, 1_u32 << 20);
    while fits + 1 < too_deep {
        let n = fits.midpoint(too_deep);
        match outcome(&workers, &alone(n)).await.contains("deep") {
            true => fits = n,
            false => too_deep = n,
        }
    }
    assert!(fits > 100, "{fits}");
    for n in fits - 12..=fits {
        let expected = outcome(&workers, &alone(n)).await;
        outcome(&workers, &call(source, &json!([1]))).await;
        assert_eq!(outcome(&workers, &call(source, &json!([n]))).await, expected, "{n} of {fits}");
    }
}

/// What calls leave in memory is not taken from the memory of the next one.
#[tokio::test]
async fn memory_ends_at_the_same_size_for_each_call() {
    let workers = workers();
    // About 200 KB that only a search for cycles frees, and names that are kept while they are used.
    let source = "function (bytes) { for (let n = 0; n < 1000; n += 1) { const a = [n]; a.push(a); } \
                  for (let n = 0; n < 100; n += 1) Symbol.for('s' + bytes + n); \
                  getContext().getResponse().setBody(new Uint8Array(bytes).length); }";
    let heap = 48 << 20;
    let mut ends = Vec::new();
    for bytes in (0..24).map(|step| heap - (24 - step) * (64 << 10)) {
        let shared = call(source, &json!([bytes]));
        for _ in 0..4 {
            outcome(&workers, &call(source, &json!([1]))).await;
        }
        let alone = outcome(&workers, &Call { needs_own_runtime: true, ..shared.clone() }).await;
        assert_eq!(outcome(&workers, &shared).await, alone, "{bytes}");
        ends.push(alone.contains("MemoryExceeded"));
    }
    assert!(ends.contains(&true) && ends.contains(&false), "{ends:?}");
}

/// The same texts as functions of rows, as far as they use no documents.
#[tokio::test]
async fn rows_end_as_if_each_had_a_runtime_of_its_own() {
    let workers = workers();
    for source in NOTICING.iter().filter(|source| is_of_language(source)) {
        let source = format!(
            "(function () {{ var set, S = (x) => {{ set = x; }}, f = ({source}); \
             return (n, o) => {{ f(n, o); return set; }}; }})()"
        );
        let alone = evaluate(&workers, &source, 1).await;
        for rows in [ROWS, 1, ROWS, 1] {
            let shared = evaluate(&workers, &source, rows).await;
            assert_eq!(shared.fault, alone.fault, "{source}");
            // A long batch has the results of its first rows.
            assert_eq!(shared.results.is_empty(), alone.results.is_empty(), "{source}");
            assert!(shared.results.iter().all(|result| *result == alone.results[0]), "{source}: {shared:?}");
        }
    }
}

/// Whether a text is one function that is the same in each row and uses the language only.
fn is_of_language(source: &str) -> bool {
    let is_other = ["__", "getContext", "random"].iter().any(|word| source.contains(word));
    source.starts_with("function (") && !is_other
}

async fn evaluate(workers: &Workers, source: &str, rows: i64) -> Evaluated {
    let function = Function { name: "f".to_owned(), source: Arc::from(source) };
    let mut batch = FunctionBatch::new(vec![function], Clock::Fixed { at_ms: NOW_MS }, 7);
    let argument = Value::from_json(br#"{"a":1,"toString":2,"constructor":3}"#).unwrap();
    for _ in 0..rows {
        batch.push(0, [Some(ValueRef::from(&Value::Int64(1))), Some(ValueRef::from(&argument))].into_iter());
    }
    workers.evaluate(&batch, Turn::Own(CALLER)).await
}
