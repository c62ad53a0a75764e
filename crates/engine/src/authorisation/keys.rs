//! Account keys: verification of request signatures, and which key signed.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The name of one of the account's four keys. Two of each kind, so that one can be changed while the other is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KeyName {
    /// Reads and writes.
    Primary,
    /// Reads and writes.
    Secondary,
    /// Reads only.
    PrimaryReadOnly,
    /// Reads only.
    SecondaryReadOnly,
}

impl KeyName {
    /// All names, in the order in which they are shown.
    pub const ALL: [KeyName; 4] =
        [KeyName::Primary, KeyName::Secondary, KeyName::PrimaryReadOnly, KeyName::SecondaryReadOnly];

    /// The name as text.
    pub fn text(self) -> &'static str {
        match self {
            KeyName::Primary => "primary",
            KeyName::Secondary => "secondary",
            KeyName::PrimaryReadOnly => "primary-readonly",
            KeyName::SecondaryReadOnly => "secondary-readonly",
        }
    }

    /// The key name with this text.
    pub fn parse(text: &str) -> Option<KeyName> {
        KeyName::ALL.into_iter().find(|name| name.text() == text)
    }

    /// Whether such a key can only read.
    pub(crate) fn is_read_only(self) -> bool {
        match self {
            KeyName::Primary | KeyName::Secondary => false,
            KeyName::PrimaryReadOnly | KeyName::SecondaryReadOnly => true,
        }
    }
}

/// Distinguishes two keys without revealing anything about either.
pub type KeyFingerprint = [u8; 4];

/// An account key, ready to check signatures. Its bytes are never shown.
#[derive(Clone)]
pub struct AccountKey {
    name: KeyName,
    mac: Hmac<Sha256>,
}

impl AccountKey {
    /// The primary key, from its bytes (the decoded base64 text).
    pub fn new(bytes: &[u8]) -> AccountKey {
        AccountKey::named(KeyName::Primary, bytes)
    }

    /// A key with a name, from its bytes.
    pub fn named(name: KeyName, bytes: &[u8]) -> AccountKey {
        AccountKey { name, mac: Hmac::new_from_slice(bytes).expect("HMAC takes keys of any length") }
    }

    /// Its name.
    pub fn name(&self) -> KeyName {
        self.name
    }

    /// Four bytes of a MAC that no request can obtain.
    pub fn fingerprint(&self) -> KeyFingerprint {
        let [first, second, third, fourth, ..] = <[u8; 32]>::from(self.mac(b"fingerprint of an account key"));
        [first, second, third, fourth]
    }

    /// Whether this key signed `payload`; takes constant time for any signature.
    pub(super) fn signed(&self, payload: &[u8], signature: &[u8]) -> bool {
        let mut mac = self.mac.clone();
        mac.update(payload);
        mac.verify_slice(signature).is_ok()
    }

    /// The value that resource tokens depend on: a complete MAC that no request can obtain.
    pub(super) fn token_fingerprint(&self) -> [u8; 32] {
        self.mac(b"the account key that resource tokens depend on").into()
    }

    fn mac(&self, payload: &[u8]) -> hmac::digest::Output<Hmac<Sha256>> {
        let mut mac = self.mac.clone();
        mac.update(payload);
        mac.finalize().into_bytes()
    }

    /// The signature of `payload` by this key.
    pub fn sign(&self, payload: &[u8]) -> Vec<u8> {
        self.mac(payload).to_vec()
    }
}

impl std::fmt::Debug for AccountKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "AccountKey({}, …)", self.name.text())
    }
}

/// When a key was last used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyUse {
    /// The name of the key.
    pub name: KeyName,
    /// The fingerprint of the key.
    pub fingerprint: KeyFingerprint,
    /// Seconds since 1970; `None` if no use is known.
    pub last_used_seconds: Option<u64>,
}

/// The keys that are valid now, and the times of their use.
#[derive(Debug)]
pub(super) struct KeyRing {
    keys: Vec<AccountKey>,
    /// When each key was last used; 0 for never.
    used_seconds: Vec<AtomicU64>,
    /// Which key signed last.
    recent: AtomicUsize,
}

impl KeyRing {
    pub(super) fn new(keys: Vec<AccountKey>) -> KeyRing {
        let used_seconds = keys.iter().map(|_| AtomicU64::new(0)).collect();
        KeyRing { keys, used_seconds, recent: AtomicUsize::new(0) }
    }

    /// Which key signed `payload`.
    ///
    /// The key that signed last is tried first: a client uses one key, and one MAC per request is sufficient then. Each
    /// comparison takes constant time for any signature. A request that was not signed by the first key is compared
    /// with all of them, whether another one matches or none. So the time reveals to a caller without a key only the
    /// number of keys; a caller with a key learns which key the previous request used.
    pub(super) fn signer(&self, payload: &[u8], signature: &[u8], now_seconds: u64) -> Option<KeyName> {
        let recent = self.recent.load(Ordering::Relaxed);
        if self.keys.get(recent).is_some_and(|key| key.signed(payload, signature)) {
            return self.used(recent, now_seconds);
        }
        let mut found = None;
        for (index, key) in self.keys.iter().enumerate() {
            if key.signed(payload, signature) {
                found = Some(index);
            }
        }
        let index = found?;
        self.recent.store(index, Ordering::Relaxed);
        self.used(index, now_seconds)
    }

    /// Records the use of a key. Written at most once a second, to avoid contention on the cache line.
    fn used(&self, index: usize, now_seconds: u64) -> Option<KeyName> {
        let used = self.used_seconds.get(index)?;
        if used.load(Ordering::Relaxed) != now_seconds {
            used.store(now_seconds, Ordering::Relaxed);
        }
        self.keys.get(index).map(AccountKey::name)
    }

    /// When each key was last used.
    pub(super) fn uses(&self) -> Vec<KeyUse> {
        let times =
            self.used_seconds.iter().map(|used| Some(used.load(Ordering::Relaxed)).filter(|used| *used > 0));
        let uses = self.keys.iter().zip(times);
        uses.map(|(key, last_used_seconds)| KeyUse {
            name: key.name,
            fingerprint: key.fingerprint(),
            last_used_seconds,
        })
        .collect()
    }

    /// Takes over the times of keys that are in this ring too; the later time counts.
    pub(super) fn remember(&self, uses: &[KeyUse]) {
        for (key, used) in self.keys.iter().zip(&self.used_seconds) {
            let fingerprint = key.fingerprint();
            let same = uses.iter().filter(|known| known.name == key.name && known.fingerprint == fingerprint);
            for seconds in same.filter_map(|known| known.last_used_seconds) {
                used.fetch_max(seconds, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ring() -> KeyRing {
        KeyRing::new(KeyName::ALL.map(|name| AccountKey::named(name, name.text().as_bytes())).to_vec())
    }

    fn signature(name: KeyName) -> Vec<u8> {
        AccountKey::named(name, name.text().as_bytes()).sign(b"payload")
    }

    #[test]
    fn a_key_is_never_shown() {
        assert_eq!(format!("{:?}", AccountKey::new(b"secret")), "AccountKey(primary, …)");
        assert!(!format!("{:?}", ring()).contains("115, 101, 99"));
    }

    #[test]
    fn the_signer_is_found_whichever_signed_before() {
        let ring = ring();
        for before in KeyName::ALL {
            for now in KeyName::ALL {
                assert_eq!(ring.signer(b"payload", &signature(before), 1), Some(before));
                assert_eq!(ring.signer(b"payload", b"forged", 1), None);
                assert_eq!(ring.signer(b"payload", &signature(now), 1), Some(now));
                assert_eq!(ring.signer(b"other", &signature(now), 1), None);
            }
        }
    }

    #[test]
    fn uses_are_told_and_survive_a_change_of_other_keys() {
        let first = ring();
        first.signer(b"payload", &signature(KeyName::Secondary), 7);
        first.signer(b"payload", &signature(KeyName::Primary), 9);
        let mut keys = first.keys.clone();
        keys[0] = AccountKey::new(b"another");
        let second = KeyRing::new(keys);
        second.remember(&first.uses());
        let uses: Vec<_> = second.uses().iter().map(|known| known.last_used_seconds).collect();
        assert_eq!(uses, [None, Some(7), None, None]);
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for name in KeyName::ALL {
            assert_eq!(KeyName::parse(name.text()), Some(name));
        }
        assert_eq!(KeyName::parse("Primary"), None);
    }
}
