//! MurmurHash3, the hash of effective keys, in the two forms that clients also compute.
//!
//! Implemented here because the value is part of the protocol: it must never change with a dependency. The seed is 0.

/// The 32-bit form for x86.
pub(crate) fn murmur3_32(bytes: &[u8]) -> u32 {
    let mut hash = 0;
    let (blocks, tail) = bytes.as_chunks::<4>();
    for block in blocks {
        hash ^= scramble_32(u32::from_le_bytes(*block));
        hash = hash.rotate_left(13).wrapping_mul(5).wrapping_add(0xE654_6B64);
    }
    if !tail.is_empty() {
        let mut padded = [0; 4];
        padded[..tail.len()].copy_from_slice(tail);
        hash ^= scramble_32(u32::from_le_bytes(padded));
    }
    // The reference implementation also takes the length modulo 2^32.
    hash ^= (bytes.len() as u64 & 0xFFFF_FFFF) as u32;
    hash = (hash ^ hash >> 16).wrapping_mul(0x85EB_CA6B);
    hash = (hash ^ hash >> 13).wrapping_mul(0xC2B2_AE35);
    hash ^ hash >> 16
}

fn scramble_32(block: u32) -> u32 {
    block.wrapping_mul(0xCC9E_2D51).rotate_left(15).wrapping_mul(0x1B87_3593)
}

/// The 128-bit form for x64: returns the low and the high half.
pub(crate) fn murmur3_128(bytes: &[u8]) -> (u64, u64) {
    let (mut low, mut high) = (0_u64, 0_u64);
    let (blocks, tail) = bytes.as_chunks::<16>();
    for block in blocks {
        let (first, second) = halves(block);
        low = (low ^ scramble_low(first)).rotate_left(27).wrapping_add(high);
        low = low.wrapping_mul(5).wrapping_add(0x52DC_E729);
        high = (high ^ scramble_high(second)).rotate_left(31).wrapping_add(low);
        high = high.wrapping_mul(5).wrapping_add(0x3849_5AB5);
    }
    if !tail.is_empty() {
        // Missing bytes are zero, and a zero half scrambles to zero, so short tails need no special cases.
        let mut padded = [0; 16];
        padded[..tail.len()].copy_from_slice(tail);
        let (first, second) = halves(&padded);
        low ^= scramble_low(first);
        high ^= scramble_high(second);
    }
    let length = bytes.len() as u64;
    low ^= length;
    high ^= length;
    low = low.wrapping_add(high);
    high = high.wrapping_add(low);
    low = finish_64(low);
    high = finish_64(high);
    low = low.wrapping_add(high);
    (low, high.wrapping_add(low))
}

fn halves(block: &[u8; 16]) -> (u64, u64) {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = *block;
    (u64::from_le_bytes([a, b, c, d, e, f, g, h]), u64::from_le_bytes([i, j, k, l, m, n, o, p]))
}

fn scramble_low(half: u64) -> u64 {
    half.wrapping_mul(0x87C3_7B91_1142_53D5).rotate_left(31).wrapping_mul(0x4CF5_AD43_2745_937F)
}

fn scramble_high(half: u64) -> u64 {
    half.wrapping_mul(0x4CF5_AD43_2745_937F).rotate_left(33).wrapping_mul(0x87C3_7B91_1142_53D5)
}

fn finish_64(hash: u64) -> u64 {
    let hash = (hash ^ hash >> 33).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
    let hash = (hash ^ hash >> 33).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
    hash ^ hash >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_32_bit_values_are_met() {
        assert_eq!(murmur3_32(b""), 0);
        assert_eq!(murmur3_32(b"a"), 0x3C25_69B2);
        assert_eq!(murmur3_32(b"Hello, world!"), 0xC036_3E43);
        assert_eq!(murmur3_32(b"The quick brown fox jumps over the lazy dog"), 0x2E4F_F723);
    }

    #[test]
    fn the_published_128_bit_values_are_met() {
        assert_eq!(murmur3_128(b""), (0, 0));
        assert_eq!(murmur3_128(b"a"), (0x8555_5565_F659_7889, 0xE6B5_3A48_510E_895A));
        assert_eq!(murmur3_128(b"0123456789abcdef"), (0x4BE0_6D94_CF4A_D1A7, 0x87C3_5B5C_63A7_08DA));
        assert_eq!(murmur3_128(b"0123456789abcdef0"), (0xEB24_AE87_85A5_C075, 0x73FB_68B3_3131_28CA));
    }
}
