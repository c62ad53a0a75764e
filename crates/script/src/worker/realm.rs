//! A JavaScript runtime with the prelude installed, for one call, or sealed for many calls of one script.
//!
//! A new runtime costs hardly more than a new context (measured: 82 µs and 76 µs, including the end), and shares nothing
//! with the one of the call before. The prelude is compiled once per worker; its bytecode is loaded into each runtime.

use super::NoRuntime;
use super::natives;
use super::state::State;
use crate::limits::heap_bytes_max;
use rquickjs::context::intrinsic;
use rquickjs::loader::bundle::Bundle;
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::{
    Context, Ctx, Error, Function, Module, Object, Persistent, Runtime, Value, WriteOptions,
    WriteOptionsEndianness,
};
use std::cell::Cell;
use std::rc::Rc;

/// The file name of the prelude in stack traces.
pub(super) const PRELUDE_NAME: &str = "perihelion-prelude";

/// Most of the stack that scripts may use.
const STACK_BYTES_MAX: usize = 1 << 20;

/// Memory of a runtime before its call sets its own limit.
const PREPARATION_BYTES_MAX: usize = 64 << 20;

/// What calls may leave in a sealed runtime, beyond the heap before the first one.
const LEFT_BYTES_MAX: usize = 256 << 10;

/// Larger than what the engine keeps in reserve for small objects.
const PROBE: &str = match str::from_utf8(&[b' '; 4096]) {
    Ok(text) => text,
    Err(_) => "",
};

/// Where the heap has to grow to before it is searched for cycles the first time.
const COLLECTION_THRESHOLD_BYTES: usize = 1 << 20;

const PRELUDE: &str = concat!(include_str!("../prelude/core.js"), include_str!("../prelude/documents.js"));

/// The globals of a script: all of the language but what has a clock of its own.
type Globals = (
    intrinsic::Date,
    intrinsic::Eval,
    intrinsic::RegExpCompiler,
    intrinsic::RegExp,
    intrinsic::Json,
    intrinsic::Proxy,
    intrinsic::MapSet,
    intrinsic::TypedArrays,
    intrinsic::Promise,
    intrinsic::WeakRef,
);

/// What a runtime is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Procedures and triggers, one call.
    Documents,
    /// One procedure or trigger, many calls: code can change nothing that another call sees.
    SealedDocuments,
    /// User-defined functions, one row.
    Functions,
    /// User-defined functions, many rows: code can change nothing that another row sees.
    SealedFunctions,
}

/// The compiled prelude. It lives as long as the worker.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prelude {
    modules: &'static [(&'static str, &'static [u8])],
}

impl Prelude {
    /// Compiles the prelude; called once per worker.
    pub(super) fn compile() -> Result<Prelude, NoRuntime> {
        let runtime = Runtime::new().map_err(|_| NoRuntime)?;
        let context = Context::custom::<Globals>(&runtime).map_err(|_| NoRuntime)?;
        let bytes = context
            .with(|ctx| {
                let module = Module::declare(ctx, PRELUDE_NAME, PRELUDE)?;
                let options =
                    WriteOptions { endianness: WriteOptionsEndianness::Native, ..WriteOptions::default() };
                module.write(WriteOptions { strip_source: true, ..options })
            })
            .map_err(|_| NoRuntime)?;
        let bytes: &'static [u8] = Box::leak(bytes.into_boxed_slice());
        Ok(Prelude { modules: Box::leak(Box::new([(PRELUDE_NAME, bytes)])) })
    }
}

/// A runtime that is ready for one call.
///
/// The fields are dropped in their order: values first, then the context, then the runtime.
pub(super) struct Realm {
    pub(super) entry: Entry,
    /// The compiled script, if the runtime was prepared for one.
    pub(super) script: Option<Persistent<Function<'static>>>,
    /// Whether code can change nothing that a later call sees.
    pub(super) is_sealed: bool,
    /// The heap before the first call, if sealed.
    prepared_bytes: Cell<usize>,
    pub(super) context: Context,
    pub(super) runtime: Runtime,
    pub(super) state: Rc<State>,
}

/// The functions of the prelude that the worker calls.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) describe: Persistent<Function<'static>>,
    /// The prototype of the errors of the engine itself.
    pub(super) internal_error: Persistent<Object<'static>>,
    /// The prototype of errors of no special class.
    pub(super) plain_error: Persistent<Object<'static>>,
    /// Absent for functions in queries.
    pub(super) documents: Option<DocumentEntry>,
}

#[derive(Debug, Clone)]
pub(super) struct DocumentEntry {
    pub(super) reset: Persistent<Function<'static>>,
    pub(super) accept: Persistent<Function<'static>>,
    pub(super) begin: Persistent<Function<'static>>,
    pub(super) deliver: Persistent<Function<'static>>,
    pub(super) finish: Persistent<Function<'static>>,
}

impl Realm {
    /// Makes a runtime.
    pub(super) fn new(prelude: Prelude, kind: Kind) -> Result<Realm, NoRuntime> {
        make(prelude, kind).map_err(|_| NoRuntime)
    }

    /// Bounds the heap for a call with this memory.
    pub(super) fn limit_memory(&self, memory_bytes: u64) {
        let heap_bytes = heap_bytes_max(memory_bytes);
        self.runtime.set_memory_limit(usize::try_from(heap_bytes).unwrap_or(usize::MAX));
    }

    /// Notes the heap of a sealed runtime that is ready for its first call.
    pub(super) fn prepared(&self) {
        let bytes = self.runtime.memory_usage().malloc_size;
        self.prepared_bytes.set(usize::try_from(bytes).unwrap_or(usize::MAX));
    }

    /// Whether a sealed runtime can serve another call: the one before must have left no jobs and hardly any memory.
    /// Forgets that one, and collects garbage if there is too much.
    pub(super) fn is_reusable(&self) -> bool {
        if self.runtime.is_job_pending() || !self.forget() {
            return false;
        }
        // To count the heap takes longer than most calls; to see whether it fits a limit does not.
        self.runtime.set_memory_limit(self.prepared_bytes.get().saturating_add(LEFT_BYTES_MAX));
        let fits = || {
            self.context.with(|ctx| match rquickjs::String::from_str(ctx.clone(), PROBE) {
                Ok(_) => true,
                Err(_) => {
                    ctx.catch();
                    false
                }
            })
        };
        let fits = fits() || {
            self.runtime.run_gc();
            fits()
        };
        self.runtime.set_gc_threshold(COLLECTION_THRESHOLD_BYTES);
        fits
    }

    /// Forgets input, response and callbacks of the call before; returns whether it could.
    fn forget(&self) -> bool {
        let Some(documents) = &self.entry.documents else { return true };
        self.context.with(|ctx| {
            let reset = || -> rquickjs::Result<()> { documents.reset.clone().restore(&ctx)?.call(()) };
            let is_done = reset().is_ok();
            if !is_done {
                ctx.catch();
            }
            is_done
        })
    }
}

impl Drop for Realm {
    fn drop(&mut self) {
        self.runtime.set_host_promise_rejection_tracker(None);
    }
}

fn make(prelude: Prelude, kind: Kind) -> rquickjs::Result<Realm> {
    let state = Rc::new(State::default());
    let runtime = Runtime::new()?;
    runtime.set_memory_limit(PREPARATION_BYTES_MAX);
    runtime.set_max_stack_size(STACK_BYTES_MAX);
    runtime.set_gc_threshold(COLLECTION_THRESHOLD_BYTES);
    runtime.set_loader(Bundle(prelude.modules), Bundle(prelude.modules));
    let context = Context::custom::<Globals>(&runtime)?;
    let (entry, reject) = context.with(|ctx| install(&ctx, &state, kind))?;
    // Scripts cannot import anything.
    runtime.set_loader(NoModules, NoModules);
    let shared = Rc::clone(&state);
    runtime.set_interrupt_handler(Some(Box::new(move || shared.is_late())));
    if let Some(reject) = reject {
        let shared = Rc::clone(&state);
        runtime.set_host_promise_rejection_tracker(Some(Box::new(
            move |ctx, promise, reason, is_handled| {
                if record_rejection(&ctx, &reject, promise, reason, is_handled).is_err() {
                    shared.has_lost_rejection.set(true);
                }
            },
        )));
    }
    let is_sealed = matches!(kind, Kind::SealedDocuments | Kind::SealedFunctions);
    let prepared_bytes = Cell::new(0);
    Ok(Realm { entry, script: None, is_sealed, prepared_bytes, context, runtime, state })
}

type Installed = (Entry, Option<Persistent<Function<'static>>>);

/// Evaluates the prelude and lets it prepare the globals.
fn install(ctx: &Ctx<'_>, state: &Rc<State>, kind: Kind) -> rquickjs::Result<Installed> {
    let prototype = |name: &str| -> rquickjs::Result<Persistent<Object<'static>>> {
        let class: Object = ctx.globals().get(name)?;
        Ok(Persistent::save(ctx, class.get::<_, Object>("prototype")?))
    };
    let (internal_error, plain_error) = (prototype("InternalError")?, prototype("Error")?);
    let module: Object = Module::import(ctx, PRELUDE_NAME)?.finish()?;
    let install: Function = module.get(match kind {
        Kind::Documents | Kind::SealedDocuments => "installDocuments",
        Kind::Functions | Kind::SealedFunctions => "installFunctions",
    })?;
    let entry: Object = install.call((natives::object(ctx, state)?,))?;
    let save = |name: &str| -> rquickjs::Result<Persistent<Function<'static>>> {
        Ok(Persistent::save(ctx, entry.get::<_, Function>(name)?))
    };
    let describe = save("describe")?;
    match kind {
        Kind::Functions | Kind::Documents => {}
        Kind::SealedFunctions | Kind::SealedDocuments => {
            entry.get::<_, Function>("seal")?.call::<_, ()>(())?;
        }
    }
    Ok(match kind {
        Kind::Functions | Kind::SealedFunctions => {
            (Entry { describe, internal_error, plain_error, documents: None }, None)
        }
        Kind::Documents | Kind::SealedDocuments => {
            let documents = DocumentEntry {
                reset: save("reset")?,
                accept: save("accept")?,
                begin: save("begin")?,
                deliver: save("deliver")?,
                finish: save("finish")?,
            };
            let documents = Some(documents);
            (Entry { describe, internal_error, plain_error, documents }, Some(save("reject")?))
        }
    })
}

fn record_rejection<'js>(
    ctx: &Ctx<'js>,
    reject: &Persistent<Function<'static>>,
    promise: Value<'js>,
    reason: Value<'js>,
    is_handled: bool,
) -> rquickjs::Result<()> {
    reject.clone().restore(ctx)?.call((promise, reason, is_handled))
}

/// Resolves no module.
struct NoModules;

impl Resolver for NoModules {
    fn resolve<'js>(
        &mut self,
        _ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<String> {
        Err(Error::new_resolving(base, name))
    }
}

impl Loader for NoModules {
    fn load<'js>(
        &mut self,
        _ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<Module<'js>> {
        Err(Error::new_loading(name))
    }
}
