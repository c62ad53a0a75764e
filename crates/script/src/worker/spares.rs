//! Runtimes that are made before they are needed, while the server does something else.
//!
//! One is kept for functions of the query before, one for any script, and one each for the scripts called last, with
//! their compiled text. A runtime in which a text was compiled serves only that text, in one container. Compiling
//! executes nothing of it, and is bounded as if it did: the next call may wait already.
//!
//! Making a runtime takes longer than most calls. So a script that is called often gets a sealed one, which serves many
//! of its calls: no code can change what a later call sees. Code that may notice that it is sealed (`sealing`), or that
//! throws what the engine throws, has a runtime of its own for each call.

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

/// Processor time of a call after which its sealed runtime is not used again: it may have left much garbage.
const SHORT_CALL: Duration = Duration::from_millis(5);

/// Calls of functions for which no runtime is sealed: that takes as long as making several. An estimate.
const FEW_CALLS: u32 = 8;

/// Texts that are compiled ahead; longer ones would hold up the next call.
const COMPILED_BYTES_MAX: usize = 64 << 10;

/// What compiling a script ahead may take; one that takes more is compiled when it is called.
const PREPARATION_TIME_MAX: Duration = Duration::from_millis(20);
const PREPARATION_BYTES_MAX: u64 = 8 << 20;

/// The prepared runtimes of a worker.
pub(super) struct Spares {
    prelude: Prelude,
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
            realm: None,
        }
    }

    fn is_of(&self, call: &Call) -> bool {
        self.name == call.name && self.container == call.links.self_link && self.source == call.source
    }

    fn is_to_be_sealed(&self) -> bool {
        !self.needs_own && self.calls >= SEALED_AFTER_CALLS
    }

    /// Makes its runtime, unless it has the right one; `None` if compiling it fails or takes too much.
    fn prepare(&mut self, prelude: Prelude) -> Result<(), NoRuntime> {
        let is_to_be_sealed = self.is_to_be_sealed();
        if self.realm.as_ref().is_some_and(|realm| realm.is_sealed || !is_to_be_sealed) {
            return Ok(());
        }
        if is_to_be_sealed {
            self.realm = prepare(prelude, &self.name, &self.source, Strictness::Strict)?;
            self.needs_own = self.realm.is_none();
        }
        if self.realm.is_none() {
            self.realm = prepare(prelude, &self.name, &self.source, Strictness::AsWritten)?;
        }
        Ok(())
    }
}

impl Spares {
    pub(super) fn new(prelude: Prelude) -> Result<Spares, NoRuntime> {
        let documents = Some(Realm::new(prelude, Kind::Documents)?);
        Ok(Spares { prelude, documents, sealed: None, scripts: Vec::new() })
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

    /// A sealed runtime for the functions of a batch; `None` if it has too few calls to make one for it.
    pub(super) fn take_sealed(&mut self, batch: &FunctionBatch) -> Result<Option<Realm>, NoRuntime> {
        match self.sealed.take() {
            Some(sealed) if sealed.functions == batch.functions => Ok(Some(sealed.realm)),
            Some(_) | None if (1..=FEW_CALLS).contains(&batch.count) => Ok(None),
            Some(_) | None => Ok(Some(Realm::new(self.prelude, Kind::SealedFunctions)?)),
        }
    }

    /// Keeps a sealed runtime for more calls of the same functions, unless they have left work behind.
    pub(super) fn keep_sealed(&mut self, functions: Vec<Function>, realm: Realm) {
        if !realm.runtime.is_job_pending() {
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
        if self.scripts.len() >= SCRIPTS_MAX {
            self.scripts.remove(0);
        }
        self.scripts.push(prepared);
        match realm {
            Some(realm) => Ok(realm),
            None => self.take(Kind::Documents),
        }
    }

    /// Keeps the sealed runtime of a call that has ended normally, unless it has left something behind.
    pub(super) fn keep_script(&mut self, call: &Call, realm: Realm) {
        let is_clean = !realm.runtime.is_job_pending() && realm.state.processor_used() < SHORT_CALL;
        if realm.is_sealed
            && is_clean
            && let Some(prepared) = self.scripts.last_mut().filter(|prepared| prepared.is_of(call))
        {
            prepared.realm = Some(realm);
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
            prepared.prepare(self.prelude)?;
        }
        self.scripts.retain(|prepared| prepared.realm.is_some());
        Ok(())
    }
}

/// A runtime with a compiled script, sealed if that is strict; `None` if compiling it fails or takes too much.
fn prepare(
    prelude: Prelude,
    name: &str,
    source: &str,
    strictness: Strictness,
) -> Result<Option<Realm>, NoRuntime> {
    if source.len() > COMPILED_BYTES_MAX {
        return Ok(None);
    }
    let kind = match strictness {
        Strictness::AsWritten => Kind::Documents,
        Strictness::Strict => Kind::SealedDocuments,
    };
    let mut realm = Realm::new(prelude, kind)?;
    realm.state.start_preparation(PREPARATION_TIME_MAX);
    realm.limit_memory(PREPARATION_BYTES_MAX);
    realm.script = realm.context.with(|ctx| {
        let script = compile::compile_as(&ctx, name, source, strictness).ok()?;
        Some(Persistent::save(&ctx, script))
    });
    let is_prepared = realm.script.is_some() && !realm.state.is_late();
    Ok(is_prepared.then_some(realm))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Clock, Links, Quota, Role};
    use bytes::Bytes;

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

    /// Whether the next call of a script would have a sealed runtime after this many calls of it.
    fn is_sealed_after(calls: u32, call: &Call) -> bool {
        let mut spares = Spares::new(Prelude::compile().unwrap()).unwrap();
        for _ in 0..calls {
            spares.take_script(call).unwrap();
            spares.replenish().unwrap();
        }
        spares.take_script(call).unwrap().is_sealed
    }

    #[test]
    fn a_script_that_is_called_often_has_a_sealed_runtime() {
        let ordinary = call("function () { return 1; }");
        assert!(!is_sealed_after(SEALED_AFTER_CALLS - 1, &ordinary));
        assert!(is_sealed_after(SEALED_AFTER_CALLS, &ordinary));
        assert!(!is_sealed_after(SEALED_AFTER_CALLS, &call("function () { return this; }")));
        let alone = Call { needs_own_runtime: true, ..ordinary };
        assert!(!is_sealed_after(SEALED_AFTER_CALLS, &alone));
    }

    #[test]
    fn a_sealed_runtime_serves_one_container() {
        let mut spares = Spares::new(Prelude::compile().unwrap()).unwrap();
        let one = call("function () { return 1; }");
        for _ in 0..SEALED_AFTER_CALLS {
            spares.take_script(&one).unwrap();
            spares.replenish().unwrap();
        }
        let links = Links { self_link: "other".to_owned(), ..Links::default() };
        assert!(!spares.take_script(&Call { links, ..one.clone() }).unwrap().is_sealed);
        assert!(spares.take_script(&one).unwrap().is_sealed);
    }

    #[test]
    fn a_script_that_takes_much_to_compile_is_not_prepared() {
        let prelude = Prelude::compile().unwrap();
        let is_prepared =
            |source: &str| prepare(prelude, "proc", source, Strictness::AsWritten).unwrap().is_some();
        let of_length = |length: usize| format!("function () {{ {} }}", " ".repeat(length));
        assert!(!is_prepared(&of_length(COMPILED_BYTES_MAX)));
        assert!(!is_prepared("function () { no text"));
        // Every literal of a template is two strings and an object.
        let source = format!("function () {{ {} }}", "f``;".repeat(COMPILED_BYTES_MAX / 5));
        assert!(!is_prepared(&source));
    }

    #[test]
    fn what_is_not_prepared_is_forgotten() {
        let mut spares = Spares::new(Prelude::compile().unwrap()).unwrap();
        spares.take_script(&call("function () { no text")).unwrap();
        spares.replenish().unwrap();
        assert!(spares.scripts.is_empty());
    }
}
