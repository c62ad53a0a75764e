//! The order of scripts on one logical partition.
//!
//! A script whose transaction begins while another one on the same key is being committed cannot be committed itself and
//! runs again. So scripts take their key one after the other. This saves work and is no lock: what they do is validated
//! at commit, other writes do not take part, and a script that has waited for a while goes on without.

use crate::authorisation::TransactionPass;
use model::{ContainerNumber, EffectiveKey};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::OwnedMutexGuard;

/// How long a script waits for those before it on its key. Most take less; for slow ones nobody waits.
const WAIT_MAX: Duration = Duration::from_millis(100);

type Key = (ContainerNumber, EffectiveKey);
type Places = HashMap<Key, Arc<tokio::sync::Mutex<()>>>;

/// The keys that scripts work on. A key is here while a script has a place on it or waits for one.
#[derive(Debug, Default)]
pub(crate) struct ScriptOrder {
    places: Mutex<Places>,
}

/// The place of a script on its key, until it is dropped.
#[derive(Debug)]
#[must_use]
pub struct ScriptPlace<'a> {
    order: &'a ScriptOrder,
    key: Key,
    guard: Option<OwnedMutexGuard<()>>,
}

impl ScriptOrder {
    /// Waits for the scripts on the key of a transaction that came before.
    pub(crate) async fn take(&self, pass: &TransactionPass<'_>) -> ScriptPlace<'_> {
        let effective = pass.container.definition().partition_key.effective_key(&pass.key);
        let key = (pass.container.number(), effective);
        // Made first, so that it is dropped last if nobody waits any more.
        let mut own = ScriptPlace { order: self, key: key.clone(), guard: None };
        let place = Arc::clone(self.places().entry(key).or_default());
        own.guard = tokio::time::timeout(WAIT_MAX, place.lock_owned()).await.ok();
        own
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ScriptPlace<'_> {
    fn drop(&mut self) {
        self.guard = None;
        let mut places = self.order.places();
        if places.get(&self.key).is_some_and(|place| Arc::strong_count(place) == 1) {
            places.remove(&self.key);
        }
    }
}
