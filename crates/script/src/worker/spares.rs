//! Runtimes that are made before they are needed, while the server does something else.
//!
//! One is kept for functions of the query before, one for any script, and one each for the scripts called last, with their compiled text.
//! A runtime in which a text was compiled serves only that text. Compiling executes nothing of it, and is bounded as if
//! it did: the next call may wait already.

use super::realm::{Kind, Prelude, Realm};
use super::{NoRuntime, compile};
use crate::{Function, FunctionBatch};
use rquickjs::Persistent;
use std::sync::Arc;
use std::time::Duration;

/// Scripts for which a runtime is kept.
const SCRIPTS_MAX: usize = 4;

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
    /// `None` while it has to be made again.
    realm: Option<Realm>,
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
            Kind::Functions | Kind::SealedFunctions => None,
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
    pub(super) fn take_script(&mut self, name: &str, source: &Arc<str>) -> Result<Realm, NoRuntime> {
        let position =
            self.scripts.iter().position(|prepared| prepared.name == name && prepared.source == *source);
        let mut prepared = match position {
            Some(position) => self.scripts.remove(position),
            None => Prepared { name: name.to_owned(), source: Arc::clone(source), realm: None },
        };
        let realm = prepared.realm.take();
        if self.scripts.len() >= SCRIPTS_MAX {
            self.scripts.remove(0);
        }
        self.scripts.push(prepared);
        match realm {
            Some(realm) => Ok(realm),
            None => self.take(Kind::Documents),
        }
    }

    /// Makes the runtimes that were taken.
    pub(super) fn replenish(&mut self) -> Result<(), NoRuntime> {
        if self.documents.is_none() {
            self.documents = Some(Realm::new(self.prelude, Kind::Documents)?);
        }
        for prepared in &mut self.scripts {
            if prepared.realm.is_none() {
                prepared.realm = prepare(self.prelude, &prepared.name, &prepared.source)?;
            }
        }
        self.scripts.retain(|prepared| prepared.realm.is_some());
        Ok(())
    }
}

/// A runtime with a compiled script; `None` if compiling it fails or takes too much.
fn prepare(prelude: Prelude, name: &str, source: &str) -> Result<Option<Realm>, NoRuntime> {
    if source.len() > COMPILED_BYTES_MAX {
        return Ok(None);
    }
    let mut realm = Realm::new(prelude, Kind::Documents)?;
    realm.state.start_preparation(PREPARATION_TIME_MAX);
    realm.limit_memory(PREPARATION_BYTES_MAX);
    realm.script = realm.context.with(|ctx| {
        let script = compile::compile(&ctx, name, source).ok()?;
        Some(Persistent::save(&ctx, script))
    });
    let is_prepared = realm.script.is_some() && !realm.state.is_late();
    Ok(is_prepared.then_some(realm))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_that_takes_much_to_compile_is_not_prepared() {
        let prelude = Prelude::compile().unwrap();
        let is_prepared = |source: &str| prepare(prelude, "proc", source).unwrap().is_some();
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
        spares.take_script("proc", &Arc::from("function () { no text")).unwrap();
        spares.replenish().unwrap();
        assert!(spares.scripts.is_empty());
    }
}
