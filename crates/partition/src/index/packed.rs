//! Ascending numbers in few bits, with random access.
//!
//! Numbers are stored in blocks of 128. A block has its first number in full. Of each number it stores how much it
//! exceeds the first number plus its index times `STEP`, all with the number of bits that the last one needs. With a
//! step of 1, consecutive numbers take no bits.

/// Numbers per block. A full block takes twice as many words as its numbers have bits.
const BLOCK: usize = 128;
const WORD_BITS: usize = u64::BITS as usize;

/// Packed ascending numbers. Each number is at least `STEP` greater than the previous one.
#[derive(Debug, Default)]
pub(crate) struct Packed<const STEP: u64> {
    blocks: Box<[PackedBlock]>,
    words: Box<[u64]>,
    len: usize,
    last: u64,
}

#[derive(Clone, Copy, Debug)]
struct PackedBlock {
    first: u64,
    /// The index of its first word.
    word: u32,
    /// Bits per number.
    width: u32,
}

impl<const STEP: u64> Packed<STEP> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn size_bytes(&self) -> usize {
        size_of_val(&*self.blocks) + size_of_val(&*self.words)
    }

    pub(crate) fn first(&self) -> Option<u64> {
        self.blocks.first().map(|block| block.first)
    }

    pub(crate) fn last(&self) -> Option<u64> {
        (self.len > 0).then_some(self.last)
    }

    /// The number at an index.
    pub(crate) fn get(&self, index: usize) -> Option<u64> {
        if index >= self.len {
            return None;
        }
        self.blocks.get(index / BLOCK).map(|block| self.value(*block, index % BLOCK))
    }

    /// The numbers from an index on, ascending.
    pub(crate) fn iter_from(&self, index: usize) -> impl Iterator<Item = u64> {
        (index..self.len).filter_map(|index| self.get(index))
    }

    /// The index of a number.
    pub(crate) fn find(&self, number: u64) -> Option<usize> {
        let index = self.first_from(number);
        (self.get(index) == Some(number)).then_some(index)
    }

    /// The first index with `number` or a greater one; the length if there is none.
    pub(crate) fn first_from(&self, number: u64) -> usize {
        let after = self.blocks.partition_point(|block| block.first < number);
        let Some(index) = after.checked_sub(1) else { return 0 };
        let block = self.blocks[index];
        let (mut low, mut high) = (1, self.block_len(index));
        if block.width == 0 && STEP == 1 {
            let distance = usize::try_from(number - block.first).unwrap_or(usize::MAX);
            low = high.min(distance);
            high = low;
        }
        while low < high {
            let middle = low.midpoint(high);
            if self.value(block, middle) < number {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        index * BLOCK + low
    }

    fn block_len(&self, index: usize) -> usize {
        BLOCK.min(self.len - index * BLOCK)
    }

    fn value(&self, block: PackedBlock, index: usize) -> u64 {
        block.first + STEP * index as u64 + self.excess(block, index)
    }

    fn excess(&self, block: PackedBlock, index: usize) -> u64 {
        if block.width == 0 {
            return 0;
        }
        let width = block.width as usize;
        let bit = index * width;
        let (word, shift) = (block.word as usize + bit / WORD_BITS, bit % WORD_BITS);
        let mut excess = self.words[word] >> shift;
        if shift + width > WORD_BITS {
            excess |= self.words[word + 1] << (WORD_BITS - shift);
        }
        excess & (u64::MAX >> (WORD_BITS - width))
    }
}

/// Packs numbers one by one.
#[derive(Debug, Default)]
pub(crate) struct Packer<const STEP: u64> {
    blocks: Vec<PackedBlock>,
    words: Vec<u64>,
    /// Numbers of the incomplete block.
    open: Vec<u64>,
    len: usize,
    last: u64,
}

impl<const STEP: u64> Packer<STEP> {
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Adds a number if it is at least a step greater than the last one. Returns whether it was added.
    pub(crate) fn push(&mut self, number: u64) -> bool {
        if self.len > 0 && self.last.checked_add(STEP).is_none_or(|least| number < least) {
            return false;
        }
        self.open.push(number);
        self.len += 1;
        self.last = number;
        if self.open.len() == BLOCK {
            self.end_block();
        }
        true
    }

    fn end_block(&mut self) {
        let [Some(&first), Some(&last)] = [self.open.first(), self.open.last()] else {
            return;
        };
        let expected_at = |index: usize| first + STEP * index as u64;
        let excess_max = last - expected_at(self.open.len() - 1);
        let width = u64::BITS - excess_max.leading_zeros();
        let word = self.words.len();
        let bits = self.open.len() * width as usize;
        self.words.resize(word + bits.div_ceil(WORD_BITS), 0);
        if width > 0 {
            for (index, number) in self.open.iter().enumerate() {
                let excess = number - expected_at(index);
                let bit = index * width as usize;
                let (at, shift) = (word + bit / WORD_BITS, bit % WORD_BITS);
                self.words[at] |= excess << shift;
                if shift + width as usize > WORD_BITS {
                    self.words[at + 1] |= excess >> (WORD_BITS - shift);
                }
            }
        }
        // There are fewer words than numbers, and fewer numbers than a rank can count.
        let word = u32::try_from(word).unwrap_or(u32::MAX);
        self.blocks.push(PackedBlock { first, word, width });
        self.open.clear();
    }

    pub(crate) fn finish(mut self) -> Packed<STEP> {
        self.end_block();
        Packed { blocks: self.blocks.into(), words: self.words.into(), len: self.len, last: self.last }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packed<const STEP: u64>(numbers: &[u64]) -> Packed<STEP> {
        let mut packer = Packer::default();
        assert!(numbers.iter().all(|number| packer.push(*number)));
        packer.finish()
    }

    fn check<const STEP: u64>(numbers: &[u64]) {
        let packed: Packed<STEP> = packed(numbers);
        assert_eq!(packed.len(), numbers.len());
        assert_eq!(packed.iter_from(0).collect::<Vec<_>>(), numbers);
        assert_eq!((packed.first(), packed.last()), (numbers.first().copied(), numbers.last().copied()));
        for (index, number) in numbers.iter().enumerate() {
            assert_eq!(packed.get(index), Some(*number));
            for near in [number.saturating_sub(1), *number, number.saturating_add(1)] {
                assert_eq!(
                    packed.first_from(near),
                    numbers.partition_point(|number| *number < near),
                    "{near}"
                );
                assert_eq!(packed.find(near).is_some(), numbers.binary_search(&near).is_ok());
            }
        }
        assert_eq!(packed.get(numbers.len()), None);
        assert_eq!(packed.first_from(u64::MAX), numbers.partition_point(|number| *number < u64::MAX));
    }

    #[test]
    fn numbers_are_found_again_whatever_lies_between_them() {
        for length in [0, 1, 2, 127, 128, 129, 500, 1_000] {
            for shift in (0..50).step_by(7) {
                let mut state: u64 = 77 + shift;
                let mut number: u64 = 1 << 40;
                let mut next = || {
                    state =
                        state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    number += 1 + (state >> 14 & ((1 << shift) - 1));
                    number
                };
                check::<1>(&(0..length).map(|_| next()).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn numbers_may_repeat_without_a_step() {
        let numbers: Vec<u64> = (0..700).map(|number| number / 3 * 5).collect();
        let packed: Packed<0> = packed(&numbers);
        assert_eq!(packed.iter_from(0).collect::<Vec<_>>(), numbers);
        assert_eq!(packed.first_from(10), 6);
    }

    #[test]
    fn what_does_not_ascend_is_refused() {
        let mut packer = Packer::<1>::default();
        assert!(packer.push(7) && !packer.push(7) && !packer.push(6) && packer.push(u64::MAX));
        assert!(!packer.push(u64::MAX));
        assert_eq!(packer.finish().iter_from(0).collect::<Vec<_>>(), [7, u64::MAX]);
    }

    #[test]
    fn numbers_without_holes_take_a_few_bits() {
        let numbers: Vec<u64> = (0..128_000).collect();
        assert_eq!(packed::<1>(&numbers).size_bytes(), 16_000);
        let every_tenth: Vec<u64> = numbers.iter().map(|number| number * 10).collect();
        assert!(packed::<1>(&every_tenth).size_bytes() < 2 * 128_000);
    }
}
