//! Runtimes that are made before they are needed, while the server does something else.
//!
//! One is kept for functions of the query before, one for any script, and one each for the scripts called last, with
//! their compiled text. A runtime in which a text was compiled serves only that text, in one container. Compiling
//! executes nothing of it, and is bounded as if it did: the next call may wait already.
//!
//! Making a runtime takes longer than most calls. So a script that is called often gets a sealed one, which serves many
//! of its calls: no code can change what a later call sees. Code that may notice that it is sealed (`sealing`), or that
//! throws what the engine throws, has a runtime of its own for each call. So has a call that fails for want of memory, and
//! a script whose calls use up their sealed runtimes.

use super::compile::Strictness;
use super::realm::{Kind, Prelude, Realm};
use super::sealing::is_sealable;
use super::{NoRuntime, compile};
use crate::{Call, Function, FunctionBatch};
use rquickjs::Persistent;
use std::sync::Arc;
use std::time::Duration;

/// Scripts for which a runtime is kept.
const SCRIPTS_MAX: usize = 4;

/// Calls of a script after which it gets a sealed runtime: to make one takes as long as several others.
const SEALED_AFTER_CALLS: u32 = 3;

/// Sealed runtimes of a script that calls in succession may use up. To make one takes as long as several calls.
const LOST_MAX: u32 = 3;

/// Calls of functions for which no runtime is sealed: that takes as long as making several. An estimate.
const FEW_CALLS: u32 = 8;

/// Texts that are compiled ahead; longer ones would hold up the next call.
const COMPILED_BYTES_MAX: usize = 64 << 10;

/// What compiling a script ahead may take.
const PREPARATION_TIME_MAX: Duration = Duration::from_millis(20);
const PREPARATION_BYTES_MAX: u64 = 8 << 20;

/// The prepared runtimes of a worker.
pub(super) struct Spares {
    prelude: Prelude,
    /// What compiling a script ahead may take; one that takes more is compiled when it is called.
    preparation_time_max: Duration,
    documents: Option<Realm>,
    /// That of the last batch of functions, which the next one of the same query can use: no code changes it.
    sealed: Option<Sealed>,
    /// The script called last is at the end.
    scripts: Vec<Prepared>,
}

struct Sealed {
    functions: Vec<Function>,
    realm: Realm,
}

struct Prepared {
    name: String,
    source: Arc<str>,
    /// The link of its container.
    container: String,
    calls: u32,
    /// Whether each of its calls needs a runtime of its own.
    needs_own: bool,
    /// Its sealed runtimes that were not kept, since a call that has ended normally.
    lost: u32,
    /// `None` while it has to be made again.
    realm: Option<Realm>,
}

impl Prepared {
    fn new(call: &Call) -> Prepared {
        Prepared {
            name: call.name.clone(),
            source: Arc::clone(&call.source),
            container: call.links.self_link.clone(),
            calls: 0,
            needs_own: !is_sealable(&call.source),
            lost: 0,
            realm: None,
        }
    }

    fn is_of(&self, call: &Call) -> bool {
        self.name == call.name && self.container == call.links.self_link && self.source == call.source
    }

    fn is_to_be_sealed(&self) -> bool {
        !self.needs_own && self.lost < LOST_MAX && self.calls >= SEALED_AFTER_CALLS
    }

    /// Makes its runtime, unless it has the right one.
    fn prepare(&mut self, prelude: Prelude, time_max: Duration) -> Result<(), NoRuntime> {
        let is_to_be_sealed = self.is_to_be_sealed();
        if self.realm.as_ref().is_some_and(|realm| realm.is_sealed || !is_to_be_sealed) {
            return Ok(());
        }
        if is_to_be_sealed {
            match prepare(prelude, &self.name, &self.source, Strictness::Strict, time_max)? {
                Ok(realm) => self.realm = Some(realm),
                Err(Unprepared::Refused) => self.needs_own = true,
                // The machine may be busy: this is tried again after some calls.
                Err(Unprepared::Late) => self.calls = 0,
            }
        }
        if self.realm.is_none() {
            self.realm = prepare(prelude, &self.name, &self.source, Strictness::AsWritten, time_max)?.ok();
        }
        Ok(())
    }
}

impl Spares {
    pub(super) fn new(prelude: Prelude) -> Result<Spares, NoRuntime> {
        let documents = Some(Realm::new(prelude, Kind::Documents)?);
        let preparation_time_max = PREPARATION_TIME_MAX;
        Ok(Spares { prelude, preparation_time_max, documents, sealed: None, scripts: Vec::new() })
    }

    /// A runtime without a script.
    pub(super) fn take(&mut self, kind: Kind) -> Result<Realm, NoRuntime> {
        let spare = match kind {
            Kind::Documents => self.documents.take(),
            Kind::Functions | Kind::SealedFunctions | Kind::SealedDocuments => None,
        };
        match spare {
            Some(realm) => Ok(realm),
            None => Realm::new(self.prelude, kind),
        }
    }

    pub(super) fn prelude(&self) -> Prelude {
        self.prelude
    }

    /// A sealed runtime for the functions of a batch; `None` if it has too few calls to make one for it, or if each call
    /// needs one of its own.
    pub(super) fn take_sealed(&mut self, batch: &FunctionBatch) -> Result<Option<Realm>, NoRuntime> {
        match self.sealed.take() {
            Some(sealed) if !batch.needs_own_runtimes && sealed.functions == batch.functions => {
                Ok(Some(sealed.realm))
            }
            Some(_) | None if batch.needs_own_runtimes || (1..=FEW_CALLS).contains(&batch.count) => Ok(None),
            Some(_) | None => Ok(Some(Realm::new(self.prelude, Kind::SealedFunctions)?)),
        }
    }

    /// Keeps a sealed runtime for more calls of the same functions, unless they have left work behind.
    pub(super) fn keep_sealed(&mut self, functions: Vec<Function>, realm: Realm) {
        if !realm.state.has_noticed.get() && !realm.runtime.is_job_pending() {
            realm.runtime.run_gc();
            self.sealed = Some(Sealed { functions, realm });
        }
    }

    /// A runtime for a script, with its compiled text if it was called lately.
    pub(super) fn take_script(&mut self, call: &Call) -> Result<Realm, NoRuntime> {
        let position = self.scripts.iter().position(|prepared| prepared.is_of(call));
        let mut prepared = match position {
            Some(position) => self.scripts.remove(position),
            None => Prepared::new(call),
        };
        prepared.calls = prepared.calls.saturating_add(1);
        let realm = prepared.realm.take_if(|realm| !(realm.is_sealed && call.needs_own_runtime));
        if realm.as_ref().is_some_and(|realm| realm.is_sealed) {
            // Until it is kept.
            prepared.lost += 1;
        }
        if self.scripts.len() >= SCRIPTS_MAX {
            self.scripts.remove(0);
        }
        self.scripts.push(prepared);
        match realm {
            Some(realm) => Ok(realm),
            None => self.take(Kind::Documents),
        }
    }

    /// Keeps the sealed runtime of a call, unless it has left something behind.
    pub(super) fn keep_script(&mut self, call: &Call, realm: Realm, has_finished: bool) {
        if realm.is_sealed
            && !realm.state.has_noticed.get()
            && realm.is_reusable()
            && let Some(prepared) = self.scripts.last_mut().filter(|prepared| prepared.is_of(call))
        {
            prepared.realm = Some(realm);
            prepared.lost = if has_finished { 0 } else { prepared.lost.saturating_sub(1) };
        }
    }

    /// From now on, each call of this script has a runtime of its own.
    pub(super) fn needs_own(&mut self, call: &Call) {
        if let Some(prepared) = self.scripts.last_mut().filter(|prepared| prepared.is_of(call)) {
            prepared.needs_own = true;
            prepared.realm = None;
        }
    }

    /// Makes the runtimes that were taken.
    pub(super) fn replenish(&mut self) -> Result<(), NoRuntime> {
        if self.documents.is_none() {
            self.documents = Some(Realm::new(self.prelude, Kind::Documents)?);
        }
        for prepared in &mut self.scripts {
            prepared.prepare(self.prelude, self.preparation_time_max)?;
        }
        self.scripts.retain(|prepared| prepared.realm.is_some());
        Ok(())
    }
}

/// Why no runtime was prepared for a script.
enum Unprepared {
    /// Compiling it fails or takes too much memory.
    Refused,
    /// Compiling it takes too long.
    Late,
}

/// A runtime with a compiled script, sealed if that is strict.
fn prepare(
    prelude: Prelude,
    name: &str,
    source: &str,
    strictness: Strictness,
    time_max: Duration,
) -> Result<Result<Realm, Unprepared>, NoRuntime> {
    if source.len() > COMPILED_BYTES_MAX {
        return Ok(Err(Unprepared::Refused));
    }
    let kind = match strictness {
        Strictness::AsWritten => Kind::Documents,
        Strictness::Strict => Kind::SealedDocuments,
    };
    let mut realm = Realm::new(prelude, kind)?;
    realm.state.start_preparation(time_max);
    realm.limit_memory(PREPARATION_BYTES_MAX);
    realm.script = realm.context.with(|ctx| {
        let script = compile::compile_as(&ctx, name, source, strictness).ok()?;
        Some(Persistent::save(&ctx, script))
    });
    if realm.state.is_late() {
        return Ok(Err(Unprepared::Late));
    }
    if realm.script.is_none() {
        return Ok(Err(Unprepared::Refused));
    }
    if realm.is_sealed {
        realm.prepared();
    }
    Ok(Ok(realm))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::to_worker::Allowance;
    use crate::{Clock, Links, Quota, Role};
    use bytes::Bytes;
    use std::time::Instant;

    fn call(source: &str) -> Call {
        Call {
            name: "proc".to_owned(),
            source: Arc::from(source),
            role: Role::Procedure { parameters: Bytes::new() },
            links: Links::default(),
            clock: Clock::Fixed { at_ms: 0 },
            seed: 0,
            logs: false,
            quota: Quota::default(),
            needs_own_runtime: false,
        }
    }

    /// More calls than a script needs to have a sealed runtime.
    const MANY_CALLS: u32 = 20;

    /// The number of calls of a script with runtimes of their own before one with a sealed runtime.
    fn calls_before_sealed(spares: &mut Spares, call: &Call) -> Option<u32> {
        (0..MANY_CALLS).find(|_| {
            let is_sealed = spares.take_script(call).unwrap().is_sealed;
            spares.replenish().unwrap();
            is_sealed
        })
    }

    /// With time to compile a script on any machine.
    fn spares() -> Spares {
        let spares = Spares::new(Prelude::compile().unwrap()).unwrap();
        Spares { preparation_time_max: Duration::from_secs(600), ..spares }
    }

    #[test]
    fn a_script_that_is_called_often_has_a_sealed_runtime() {
        let ordinary = call("function () { return 1; }");
        assert!(calls_before_sealed(&mut spares(), &ordinary) >= Some(SEALED_AFTER_CALLS));
        for source in ["function () { return this; }", "function () { return 010; }"] {
            assert_eq!(calls_before_sealed(&mut spares(), &call(source)), None, "{source}");
        }
        let alone = Call { needs_own_runtime: true, ..ordinary };
        assert_eq!(calls_before_sealed(&mut spares(), &alone), None);
    }

    #[test]
    fn a_sealed_runtime_serves_one_container() {
        let mut spares = spares();
        let one = call("function () { return 1; }");
        assert!(calls_before_sealed(&mut spares, &one).is_some());
        let links = Links { self_link: "other".to_owned(), ..Links::default() };
        assert!(!spares.take_script(&Call { links, ..one.clone() }).unwrap().is_sealed);
    }

    #[test]
    fn a_runtime_is_kept_unless_something_is_left() {
        for (left, is_kept) in [
            ("1", true),
            // Garbage that only a search for cycles finds.
            ("for (let n = 0; n < 20000; n += 1) { const a = [n]; a.push(a); }", true),
            ("const kept = 1;", true),
            ("const kept = new Uint8Array(1 << 20);", false),
            ("(async function () { await 1; })(); 1", false),
        ] {
            let mut spares = spares();
            let call = call("function () { return 1; }");
            assert!(calls_before_sealed(&mut spares, &call).is_some());
            let realm = spares.take_script(&call).unwrap();
            start(&realm, &call);
            realm.context.with(|ctx| ctx.eval::<rquickjs::Value, _>(left).map(|_| ())).unwrap();
            assert_eq!(realm.is_reusable(), is_kept, "{left}");
        }
    }

    /// Calls a script until it has a sealed runtime; returns that.
    fn take_sealed(spares: &mut Spares, call: &Call) -> Option<Realm> {
        (0..MANY_CALLS).find_map(|_| {
            spares.replenish().unwrap();
            let realm = spares.take_script(call).unwrap();
            start(&realm, call);
            realm.is_sealed.then_some(realm)
        })
    }

    fn start(realm: &Realm, call: &Call) {
        let allowance = Allowance { time: Duration::from_secs(60), memory_bytes: 64 << 20 };
        realm.state.start(allowance, call.clock, 0);
        realm.limit_memory(allowance.memory_bytes);
    }

    #[test]
    fn a_sealed_runtime_serves_the_calls_after_a_throw() {
        let mut spares = spares();
        let call = call("function () { throw new Error(403, 'no'); }");
        for _ in 0..2 * LOST_MAX {
            let realm = take_sealed(&mut spares, &call).unwrap();
            spares.keep_script(&call, realm, false);
            assert!(spares.scripts[0].realm.is_some());
        }
    }

    #[test]
    fn a_call_of_any_length_leaves_its_runtime() {
        let mut spares = spares();
        let call = call("function () { return 1; }");
        let realm = take_sealed(&mut spares, &call).unwrap();
        // Longer than any threshold of time that is of use.
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(50) {
            std::hint::spin_loop();
        }
        spares.keep_script(&call, realm, true);
        assert!(spares.scripts[0].realm.is_some());
    }

    #[test]
    fn what_a_call_has_received_is_not_left_behind() {
        let mut spares = spares();
        let call = call("function () { return 1; }");
        let realm = take_sealed(&mut spares, &call).unwrap();
        let accept = realm.entry.documents.as_ref().unwrap().accept.clone();
        realm.context.with(|ctx| {
            let request: rquickjs::Value = ctx.eval("['x'.repeat(1 << 20)]").unwrap();
            accept.restore(&ctx).unwrap().call::<_, ()>((0, None::<&str>, request)).unwrap();
        });
        assert!(realm.is_reusable());
    }

    #[test]
    fn a_script_that_loses_its_sealed_runtimes_gets_no_more() {
        let mut spares = spares();
        let call = call("function () { null.x; }");
        for _ in 1..LOST_MAX {
            assert!(take_sealed(&mut spares, &call).is_some());
        }
        // One that is kept shows that it is worth the effort.
        let kept = take_sealed(&mut spares, &call).unwrap();
        spares.keep_script(&call, kept, true);
        for _ in 0..LOST_MAX {
            assert!(take_sealed(&mut spares, &call).is_some());
        }
        assert!(take_sealed(&mut spares, &call).is_none());
    }

    #[test]
    fn a_script_that_takes_much_to_compile_is_not_prepared() {
        let prelude = Prelude::compile().unwrap();
        let within = |source: &str, time_max| {
            prepare(prelude, "proc", source, Strictness::AsWritten, time_max).unwrap()
        };
        let is_prepared = |source: &str| within(source, Duration::from_secs(600)).is_ok();
        let of_length = |length: usize| format!("function () {{ {} }}", " ".repeat(length));
        assert!(!is_prepared(&of_length(COMPILED_BYTES_MAX)));
        assert!(!is_prepared("function () { no text"));
        // Every literal of a template is two strings and an object.
        let source = format!("function () {{ {} }}", "f``;".repeat(COMPILED_BYTES_MAX / 5));
        assert!(!is_prepared(&source));
        let sound = "function () { return 1; }";
        assert!(is_prepared(sound));
        assert!(matches!(within(sound, Duration::ZERO), Err(Unprepared::Late)));
    }

    #[test]
    fn what_is_not_prepared_is_forgotten() {
        let mut spares = spares();
        spares.take_script(&call("function () { no text")).unwrap();
        spares.replenish().unwrap();
        assert!(spares.scripts.is_empty());
    }
}
