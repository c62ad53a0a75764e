//! Runtimes that are made before they are needed, while the server does something else.
//!
//! One is kept for functions, one for any script, and one each for the scripts called last, with their compiled text.
//! A runtime in which a text was compiled serves only that text, because a text can be written so that compiling it
//! executes a part of it.

use super::realm::{Kind, Prelude, Realm};
use super::{NoRuntime, compile};
use rquickjs::Persistent;
use std::sync::Arc;

/// Scripts for which a runtime is kept.
const SCRIPTS_MAX: usize = 4;

/// Texts that are compiled ahead; longer ones would hold up the next call.
const COMPILED_BYTES_MAX: usize = 64 << 10;

/// The prepared runtimes of a worker.
pub(super) struct Spares {
    prelude: Prelude,
    documents: Option<Realm>,
    functions: Option<Realm>,
    /// The script called last is at the end.
    scripts: Vec<Prepared>,
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
        Ok(Spares { prelude, documents, functions: None, scripts: Vec::new() })
    }

    /// A runtime without a script.
    pub(super) fn take(&mut self, kind: Kind) -> Result<Realm, NoRuntime> {
        let spare = match kind {
            Kind::Documents => self.documents.take(),
            Kind::Functions => self.functions.take(),
        };
        match spare {
            Some(realm) => Ok(realm),
            None => Realm::new(self.prelude, kind),
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
            if prepared.realm.is_none() && prepared.source.len() <= COMPILED_BYTES_MAX {
                let mut realm = Realm::new(self.prelude, Kind::Documents)?;
                let script = realm.context.with(|ctx| {
                    let script = compile::compile(&ctx, &prepared.name, &prepared.source).ok()?;
                    Some(Persistent::save(&ctx, script))
                });
                realm.script = script;
                prepared.realm = Some(realm);
            }
        }
        Ok(())
    }
}
