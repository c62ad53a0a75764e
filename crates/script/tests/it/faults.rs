//! Scripts that fail, and checks of their text.

use crate::fixture::{CALLER, Documents, call, check, execute, thrown, workers};
use script::{CallFault, ResultFault, ScriptFault, SyntaxFault};
use serde_json::json;

async fn syntax(source: &str) -> SyntaxFault {
    let checked = workers().check(CALLER, source).await;
    let executed = execute(&mut Documents::default(), source, &json!([])).await;
    let Err(ScriptFault::Syntax(fault)) = checked else { panic!("{source}: {checked:?}") };
    assert_eq!(executed, Err(CallFault::Script(ScriptFault::Syntax(fault.clone()))), "{source}");
    fault
}

#[tokio::test]
async fn syntax_errors_have_a_place() {
    for (source, line, column) in [
        ("function () { var x = ; }", 1, 23),
        ("function () {\n  foo(\n}", 3, 1),
        ("function a() {}\nfunction b() {\n  var = 1;\n}", 3, 7),
        ("", 1, 1),
        ("function () {\n  if (", 2, 7),
        ("}", 1, 1),
    ] {
        let fault = syntax(source).await;
        assert_eq!((fault.line, fault.column), (line, column), "{source}: {fault}");
    }
    for source in ["5", "'function () {}'", "{}", "function () {}, 5", "function () { \0 }"] {
        let _ = syntax(source).await;
    }
}

#[tokio::test]
async fn a_text_that_is_no_function_is_refused_in_words() {
    let several = "function without a name; in a script of several functions each needs one";
    let end = "unexpected end of the script, or unbalanced brackets";
    for (source, message, line, column) in [
        ("", "the script is empty, a function is expected", 1, 1),
        ("\n \t\n;", "the script is empty, a function is expected", 1, 1),
        ("// nothing\n/* here */", "the script is empty, a function is expected", 1, 1),
        ("5", "the script is a number, not a function", 1, 1),
        ("// text\n\n  'a';", "the script is a string, not a function", 3, 3),
        ("/* ä */ ({ a: 1 })", "the script is an object, not a function", 1, 9),
        ("[]", "the script is an array, not a function", 1, 1),
        ("(function () {})();", "the script is undefined, not a function", 1, 1),
        ("function () {}, null", "the script is null, not a function", 1, 1),
        ("function f() {} var f = true;", "the script is a boolean, not a function", 1, 1),
        ("var a = 1;", "the script declares no function", 1, 1),
        ("\nlet f = () => {};", "the script declares no function", 2, 1),
        ("return function () {}", "the script declares no function", 1, 1),
        ("function () {}\n\n  function () {}", several, 3, 3),
        ("function () {}\nfunction b() {}", several, 1, 1),
        ("function a() {}\nfunction () {}", several, 2, 1),
        ("function () {\n  if (", end, 2, 7),
        ("function () {}\n)", end, 2, 2),
        ("function () {\n  'ä\0' }", "unexpected character U+0000", 2, 5),
    ] {
        let message = message.to_owned();
        assert_eq!(syntax(source).await, SyntaxFault { message, line, column }, "{source}");
    }
}

/// The check of a stored script finds what its calls would find.
#[tokio::test]
async fn a_class_is_no_script() {
    for (source, column) in [("class A {}", 1), ("  (class { constructor() {} })", 3)] {
        let fault =
            SyntaxFault { message: "the script is a class, not a function".to_owned(), line: 1, column };
        assert_eq!(workers().check(CALLER, source).await, Err(ScriptFault::Syntax(fault)), "{source}");
    }
    for source in [
        "class A {} function f() { return new A(); }",
        "function* f() {}",
        "() => 1",
        "async () => 1",
        "classes => 1",
        "Object.freeze(function () {})",
    ] {
        assert_eq!(workers().check(CALLER, source).await, Ok(()), "{source}");
    }
}

#[tokio::test]
async fn an_error_outside_of_functions_has_its_line() {
    let error = thrown("// written for another place\nmodule.exports = function () {}").await;
    assert_eq!(error.text, "ReferenceError: module is not defined");
    assert!(error.stack.starts_with("    at proc:2:"), "{}", error.stack);
}

#[tokio::test]
async fn a_check_executes_no_function() {
    let workers = workers();
    for source in
        ["function () { while (true) {} }", "() => { throw 1; }", "function a() {}\nfunction b() {}"]
    {
        assert_eq!(workers.check(CALLER, source).await, Ok(()), "{source}");
    }
}

#[tokio::test]
async fn a_text_cannot_leave_its_function() {
    let workers = workers();
    let escape = "function () {})}); globalThis.left = 1; (function () { return (function () {}";
    for _ in 0..2 {
        let _ = workers.run(CALLER, &call(escape, &json!([])), &mut Documents::default()).await;
    }
    let look = "function () { if (typeof left !== 'undefined') throw 'seen'; }";
    for _ in 0..3 {
        workers.run(CALLER, &call(look, &json!([])), &mut Documents::default()).await.unwrap();
    }
}

#[tokio::test]
async fn thrown_errors_have_text_number_and_stack() {
    let error =
        thrown("function outer() {\n  inner();\n  function inner() { throw new Error(403, 'not you'); }\n}")
            .await;
    assert_eq!((error.number, error.text.as_str()), (Some(403), "Error: not you"));
    let frames: Vec<&str> = error.stack.lines().map(str::trim).collect();
    assert!(
        frames[0].starts_with("at inner (proc:3:") && frames[1].starts_with("at outer (proc:2:"),
        "{frames:?}"
    );
    assert_eq!(frames.len(), 2);
    let error = thrown("function () { null.x; }").await;
    assert!(error.text.starts_with("TypeError: ") && error.stack.contains("(proc:1:1"), "{error:?}");
    for (source, text) in [
        ("function () { throw 'text'; }", "text"),
        ("function () { throw 5; }", "5"),
        ("function () { throw new Error('out of memory'); }", "Error: out of memory"),
        ("function () { throw new RangeError('out of memory'); }", "RangeError: out of memory"),
        ("function () { throw undefined; }", "undefined"),
        ("function () { throw { number: 7, body: 'b' }; }", "b"),
        ("function () { throw Symbol('s'); }", "Symbol(s)"),
        ("function () { throw Object.create(null); }", "unknown error"),
        ("function () { throw { get message() { throw 1; }, toString() { throw 2; } }; }", "unknown error"),
        ("function () { throw new Proxy({}, { get() { throw 1; } }); }", "unknown error"),
    ] {
        let error = thrown(source).await;
        assert_eq!(error.text, text, "{source}");
    }
}

/// Where the error of the server is thrown, not where the server has made it.
#[tokio::test]
async fn errors_of_refused_operations_have_the_stack_of_their_throw() {
    let link = "__.getAltLink() + '/docs/none'";
    let plain = format!(
        "function () {{\n  __.readDocument({link}, function (err) {{\n    if (err) throw err;\n  }});\n}}"
    );
    let nested = format!(
        "function f() {{\n  __.readDocument({link}, function read(err) {{\n    check(err);\n  }});\n  \
         function check(err) {{\n    if (err) throw err;\n  }}\n}}"
    );
    let awaited = format!(
        "async function f() {{\n  await new Promise((done, fail) => {{\n    \
         __.readDocument({link}, (err) => err ? fail(err) : done());\n  }});\n}}"
    );
    let aborted = format!(
        "function () {{ __.readDocument({link}, function (err) {{\n  getContext().abort(err); }}); }}"
    );
    for (source, frames) in [
        (&plain, &["at <anonymous> (proc:3:"][..]),
        (&nested, &["at check (proc:6:", "at read (proc:3:"]),
        (&awaited, &["at f (proc:2:"]),
        (&aborted, &["at <anonymous> (proc:2:"]),
    ] {
        // The first calls have runtimes of their own, later ones may share one.
        let workers = workers();
        for _ in 0..4 {
            let result = workers.run(CALLER, &call(source, &json!([])), &mut Documents::default()).await;
            let Err(CallFault::Script(ScriptFault::Thrown(error))) = result else { panic!("{result:?}") };
            assert_eq!((error.number, error.text.as_str()), (Some(404), "Error: Resource Not Found."));
            let stack: Vec<&str> = error.stack.lines().map(str::trim).collect();
            assert_eq!(stack.len(), frames.len(), "{source}: {stack:?}");
            assert!(stack.iter().zip(frames).all(|(line, frame)| line.starts_with(frame)), "{stack:?}");
        }
    }
    // The hook of scripts for stack traces is theirs again.
    let hooked = format!(
        "function () {{
            var native = Object.getPrototypeOf(TypeError), hook = function () {{ return 'hooked'; }};
            native.prepareStackTrace = hook;
            __.readDocument({link}, function (err) {{
                __.response.setBody([native.prepareStackTrace === hook, err.number, err.body, typeof err.stack]);
            }}); }}"
    );
    check(&hooked, json!([]), json!([true, 404, "Resource Not Found.", "undefined"])).await;
}

#[tokio::test]
async fn results_that_are_no_json_are_refused() {
    let error = thrown("function () { var a = {}; a.a = a; __.response.setBody(a); }").await;
    assert!(error.text.starts_with("TypeError"), "{}", error.text);
    let error = thrown("function () { __.response.setBody('x'.repeat(5 << 20)); }").await;
    assert_eq!(error.number, Some(413));
    let source = "function () { var r = __.response; for (;;) r.appendBody('x'.repeat(1 << 20)); }";
    assert_eq!(thrown(source).await.number, Some(413));
    let source = "function () { var o = []; __.response.setBody(o); for (var i = 0; i < 6; i++) o.push('x'.repeat(1 << 20)); }";
    assert_eq!(thrown(source).await.number, Some(413));
    let error =
        thrown("function () { __.createDocument(__.getSelfLink(), { t: 'x'.repeat(5 << 20) }); }").await;
    assert_eq!(error.number, Some(413));
    let deep = |levels: usize| {
        format!(
            "function () {{ var v = []; for (var i = 1; i < {levels}; i++) v = [v]; __.response.setBody(v); }}"
        )
    };
    assert!(execute(&mut Documents::default(), &deep(128), &json!([])).await.is_ok());
    assert_eq!(
        execute(&mut Documents::default(), &deep(129), &json!([])).await,
        Err(CallFault::Script(ScriptFault::Result(ResultFault::TooDeep { depth_max: 128 })))
    );
}

#[tokio::test]
async fn parameters_must_be_an_array() {
    let workers = workers();
    for parameters in [json!({"a": 1}), json!(5)] {
        let result =
            workers.run(CALLER, &call("function () {}", &parameters), &mut Documents::default()).await;
        let Err(CallFault::Script(ScriptFault::Thrown(error))) = result else { panic!("{result:?}") };
        assert_eq!(error.number, Some(400));
    }
}

#[tokio::test]
async fn the_host_can_end_a_script() {
    let workers = workers();
    let mut documents = Documents { end: Some(1), ..Documents::default() };
    let source =
        "function () { __.createDocument(__.getSelfLink(), {}, function () { throw 'unreachable'; }); }";
    let ended = workers.run(CALLER, &call(source, &json!([])), &mut documents).await;
    assert_eq!(ended, Err(CallFault::Host("ended by the host")));
    workers.run(CALLER, &call("function () {}", &json!([])), &mut Documents::default()).await.unwrap();
    assert_eq!(workers.idle_count(), 1, "the worker goes on");
}

#[tokio::test]
async fn a_source_that_is_too_large_is_refused() {
    let source = format!("function () {{ {} }}", ";".repeat(script::SOURCE_BYTES_MAX));
    assert!(matches!(workers().check(CALLER, &source).await, Err(ScriptFault::InputTooLarge { .. })));
}
