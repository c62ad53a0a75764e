//! The order of scripts on one logical partition.
//!
//! A script whose transaction begins while another one on the same key is being committed cannot be committed itself and
//! runs again. So scripts take their key one after the other. This saves work and is no lock: what they do is validated
//! at commit, other writes do not take part, and a script that has waited for a while goes on without.

use crate::authorisation::TransactionPass;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;
use tokio::sync::{Mutex, MutexGuard};

/// Keys with the same hash share a place.
const PLACES: usize = 1024;

/// How long a script waits for those before it on its key. Most take less; for slow ones nobody waits.
const WAIT_MAX: Duration = Duration::from_millis(100);

/// The keys that scripts work on.
#[derive(Debug)]
pub(crate) struct ScriptOrder {
    places: Box<[Mutex<()>]>,
    hasher: RandomState,
}

/// The place of a script on its key, until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct ScriptPlace<'a> {
    _guard: Option<MutexGuard<'a, ()>>,
}

impl Default for ScriptOrder {
    fn default() -> ScriptOrder {
        ScriptOrder { places: (0..PLACES).map(|_| Mutex::default()).collect(), hasher: RandomState::new() }
    }
}

impl ScriptOrder {
    /// Waits for the scripts on the key of a transaction that came before.
    pub(crate) async fn take(&self, pass: &TransactionPass<'_>) -> ScriptPlace<'_> {
        let effective = pass.container.definition().partition_key.effective_key(&pass.key);
        let hash = self.hasher.hash_one((pass.container.number(), effective));
        let place = usize::try_from(hash % PLACES as u64).unwrap_or(0);
        ScriptPlace { _guard: tokio::time::timeout(WAIT_MAX, self.places[place].lock()).await.ok() }
    }
}
