//! Measures the cost of authenticating a request.
//!
//! `cargo run --release -p perihelion-engine --example measure_access`

use engine::{Access, AccountKey, KeyName};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::hint::black_box;
use std::time::{Duration, Instant};

/// Repetitions of each measurement.
const ROUNDS: u32 = 200_000;
/// The text of a usual request.
const PAYLOAD: &[u8] = b"get\ndocs\ndbs/database/colls/container/docs/5c2c7cd1-6e0a-4a70-a01e-5a52ac2f5a2c\n\
    mon, 16 nov 2026 00:00:00 gmt\n\n";

fn main() {
    let bytes = |name: KeyName| [name.text().as_bytes(), &[7; 48]].concat();
    let sign = |name: KeyName| {
        let mut mac = Hmac::<Sha256>::new_from_slice(&bytes(name)).expect("HMAC takes keys of any length");
        mac.update(PAYLOAD);
        mac.finalize().into_bytes()
    };
    let one = Access::new(vec![AccountKey::new(&bytes(KeyName::Primary))], [0; 32]);
    let four = Access::new(KeyName::ALL.map(|name| AccountKey::named(name, &bytes(name))).to_vec(), [0; 32]);
    let signatures = KeyName::ALL.map(sign);
    let verify = |access: &Access, signature: &[u8]| {
        black_box(access.verify_signature(black_box(PAYLOAD), black_box(signature), 1)).is_some()
    };
    let mut rounds = 0_usize;
    let mut next = || {
        rounds += 1;
        &signatures[rounds % signatures.len()]
    };
    report("one key, signed with it", || verify(&one, &signatures[0]));
    report("four keys, signed with the same one again and again", || verify(&four, &signatures[3]));
    report("four keys, each request signed with another one", || verify(&four, next()));
    report("four keys, signed with none of them", || verify(&four, &[0; 32]));
}

#[allow(clippy::print_stdout)] // what the program is for
fn report(what: &str, mut once: impl FnMut() -> bool) {
    for _ in 0..ROUNDS / 10 {
        black_box(once());
    }
    // The best of several runs: other programs can only add time.
    let mut best = Duration::MAX;
    for _ in 0..5 {
        let begun = Instant::now();
        for _ in 0..ROUNDS {
            black_box(once());
        }
        best = best.min(begun.elapsed());
    }
    println!("{:8.0} ns  {what}", best.as_secs_f64() * 1e9 / f64::from(ROUNDS));
}
