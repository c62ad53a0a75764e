//! Limits on the memory and the rows of a query.
//!
//! A text of half a megabyte can name a document 100,000 times in an array, or join an array ten times with itself. So
//! values are weighed before they are built, and rows of sources are counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use value::{Decoded, Value, ValueRef, WALK_DEPTH_MAX};

use crate::EvalFault;

/// Most bytes of one computed value, approximately.
pub const VALUE_WEIGHT_MAX: usize = 32 << 20;

/// Size of a tree node without its text.
const NODE_WEIGHT: usize = size_of::<Value>();

/// Bytes that a query holds before it draws on the shared memory: most need no more.
const UNDRAWN_BYTES: usize = 64 << 10;

/// Bytes that a query draws at a time.
const DRAW_BYTES: usize = 256 << 10;

/// Room of a collection that gets its first element.
const ELEMENTS_AT_FIRST: usize = 4;

/// Memory shared by all queries.
#[derive(Debug)]
pub struct QueryMemory {
    bytes_max: usize,
    bytes_drawn: AtomicUsize,
}

impl QueryMemory {
    /// Nothing is drawn yet.
    pub fn new(bytes_max: usize) -> QueryMemory {
        QueryMemory { bytes_max, bytes_drawn: AtomicUsize::new(0) }
    }

    /// Bytes that queries have drawn.
    pub fn bytes_drawn(&self) -> usize {
        self.bytes_drawn.load(Ordering::Relaxed)
    }

    fn draw(&self, bytes: usize) -> Result<(), EvalFault> {
        let more = |drawn: usize| drawn.checked_add(bytes).filter(|sum| *sum <= self.bytes_max);
        let drawn = self.bytes_drawn.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
        drawn.map(drop).map_err(|_| EvalFault::MemoryBusy)
    }

    fn give_back(&self, bytes: usize) {
        self.bytes_drawn.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// Bytes to draw from the shared memory for a query that holds this many.
fn drawn_for(held: usize) -> usize {
    held.saturating_sub(UNDRAWN_BYTES).next_multiple_of(DRAW_BYTES)
}

/// Memory and rows granted to a query.
#[derive(Debug)]
pub struct Budget {
    bytes_max: usize,
    bytes_held: AtomicUsize,
    /// Bytes drawn from the shared memory; returned with the budget.
    bytes_drawn: AtomicUsize,
    all: Option<Arc<QueryMemory>>,
    rows_max: u64,
    rows_seen: AtomicU64,
}

impl Budget {
    /// A budget of `bytes_max` bytes held at a time and `rows_max` rows in total.
    pub fn new(bytes_max: usize, rows_max: u64) -> Budget {
        Budget {
            bytes_max,
            bytes_held: AtomicUsize::new(0),
            bytes_drawn: AtomicUsize::new(0),
            all: None,
            rows_max,
            rows_seen: AtomicU64::new(0),
        }
    }

    /// The same within the memory shared by all queries.
    pub fn within(mut self, all: Arc<QueryMemory>) -> Budget {
        self.all = Some(all);
        self
    }

    /// Draws on the shared memory for the bytes held now.
    fn draw(&self, held: usize) -> Result<(), EvalFault> {
        let Some(all) = &self.all else { return Ok(()) };
        let wanted = drawn_for(held);
        loop {
            let before = self.bytes_drawn.load(Ordering::Relaxed);
            if before >= wanted {
                return Ok(());
            }
            all.draw(wanted - before)?;
            // Concurrent parts of a query draw once: who comes second returns what it drew and looks again.
            let raised =
                self.bytes_drawn.compare_exchange(before, wanted, Ordering::Relaxed, Ordering::Relaxed);
            if raised.is_ok() {
                return Ok(());
            }
            all.give_back(wanted - before);
        }
    }

    /// Returns memory that was drawn for more bytes than are held now.
    fn give_back_drawn(&self) {
        let Some(all) = &self.all else { return };
        let wanted = drawn_for(self.bytes_held());
        let lower = |drawn: usize| (drawn > wanted).then_some(wanted);
        if let Ok(before) = self.bytes_drawn.fetch_update(Ordering::Relaxed, Ordering::Relaxed, lower) {
            all.give_back(before - wanted);
        }
    }

    /// Bytes held now.
    pub fn bytes_held(&self) -> usize {
        self.bytes_held.load(Ordering::Relaxed)
    }

    /// Counts a row of a source.
    pub(crate) fn count_row(&self) -> Result<(), EvalFault> {
        if self.rows_seen.fetch_add(1, Ordering::Relaxed) >= self.rows_max {
            return Err(EvalFault::RowsExceeded { rows_max: self.rows_max });
        }
        Ok(())
    }

    /// An empty holding.
    pub fn holding(self: &Arc<Budget>) -> Holding {
        Holding { budget: Arc::clone(self), bytes: 0 }
    }
}

impl Drop for Budget {
    fn drop(&mut self) {
        if let Some(all) = &self.all {
            all.give_back(*self.bytes_drawn.get_mut());
        }
    }
}

/// Bytes of a budget that are returned on drop.
#[derive(Debug)]
pub struct Holding {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Holding {
    /// Takes more bytes.
    pub fn add(&mut self, bytes: usize) -> Result<(), EvalFault> {
        if bytes == 0 {
            return Ok(());
        }
        self.bytes = self.bytes.saturating_add(bytes);
        let held = self.budget.bytes_held.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        if held > self.budget.bytes_max {
            return Err(EvalFault::MemoryExceeded { bytes_max: self.budget.bytes_max });
        }
        if held > UNDRAWN_BYTES { self.budget.draw(held) } else { Ok(()) }
    }

    /// Takes the weight of a value.
    pub(crate) fn add_value(&mut self, value: ValueRef<'_>) -> Result<(), EvalFault> {
        self.add(weigh(value)?)
    }

    /// Counts a collection by its capacity, which grows in steps; `counted` is the size counted before.
    pub fn resize(&mut self, counted: &mut usize, bytes: usize) -> Result<(), EvalFault> {
        if bytes < *counted {
            self.give_back(*counted - bytes);
        } else {
            self.add(bytes - *counted)?;
        }
        *counted = bytes;
        Ok(())
    }

    /// Makes room for one more element. `counted` is the size counted before.
    ///
    /// The new room is counted before it is allocated, in addition to the old: both exist while the elements are
    /// moved, and that takes its time if there are millions.
    pub(crate) fn grow<E>(&mut self, elements: &mut Vec<E>, counted: &mut usize) -> Result<(), EvalFault> {
        if elements.len() < elements.capacity() {
            return Ok(());
        }
        let more = elements.capacity().max(ELEMENTS_AT_FIRST);
        let room = allocated((elements.capacity() + more) * size_of::<E>());
        self.add(room)?;
        elements.reserve_exact(more);
        self.give_back(*counted);
        self.budget.give_back_drawn();
        *counted = room;
        Ok(())
    }

    /// Returns bytes that were taken.
    pub fn give_back(&mut self, bytes: usize) {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        self.budget.bytes_held.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Takes over the bytes of another holding of the same budget.
    pub fn absorb(&mut self, mut other: Holding) {
        self.bytes = self.bytes.saturating_add(std::mem::take(&mut other.bytes));
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.budget.bytes_held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// Adds weights up to the limit of one value.
#[derive(Debug, Default)]
pub(crate) struct WeightSum {
    weight: usize,
}

impl WeightSum {
    pub(crate) fn add(&mut self, bytes: usize) -> Result<(), EvalFault> {
        self.weight = self.weight.saturating_add(bytes);
        if self.weight > VALUE_WEIGHT_MAX {
            return Err(EvalFault::ValueTooLarge { weight_max: VALUE_WEIGHT_MAX });
        }
        Ok(())
    }

    /// Adds the weight of a value.
    pub(crate) fn add_value(&mut self, value: ValueRef<'_>) -> Result<(), EvalFault> {
        self.add_nested(value, WALK_DEPTH_MAX)
    }

    fn add_nested(&mut self, value: ValueRef<'_>, levels_left: usize) -> Result<(), EvalFault> {
        self.add(NODE_WEIGHT)?;
        let Some(levels_left) = levels_left.checked_sub(1) else {
            return Ok(());
        };
        match value.decode() {
            Decoded::String(text) => self.add(allocated(text.len())),
            Decoded::Binary { bytes, .. } => self.add(allocated(bytes.len())),
            Decoded::Array(mut elements) => {
                elements.try_for_each(|element| self.add_nested(element, levels_left))
            }
            Decoded::Object(mut members) => members.try_for_each(|(name, member)| {
                self.add(size_of::<String>() + allocated(name.len()))?;
                self.add_nested(member, levels_left)
            }),
            Decoded::Null
            | Decoded::Bool(_)
            | Decoded::Int32(_)
            | Decoded::Int64(_)
            | Decoded::Double(_)
            | Decoded::Decimal(_)
            | Decoded::Date(_)
            | Decoded::Ticks(_)
            | Decoded::Guid(_)
            | Decoded::ObjectId(_) => Ok(()),
        }
    }
}

/// The weight of a value, or a fault if it is too large.
pub fn weigh(value: ValueRef<'_>) -> Result<usize, EvalFault> {
    let mut scale = WeightSum::default();
    scale.add_value(value)?;
    Ok(scale.weight)
}

/// The weight of a value without its own node, which is counted with the collection that holds it.
pub fn weigh_inside(value: ValueRef<'_>) -> Result<usize, EvalFault> {
    Ok(weigh(value)?.saturating_sub(NODE_WEIGHT))
}

/// Bytes that the allocator uses for a request of `bytes`: it has four size classes between powers of two.
pub fn allocated(bytes: usize) -> usize {
    match bytes {
        0 => 0,
        1..=8 => 8,
        9..=128 => bytes.next_multiple_of(16),
        _ => bytes.next_multiple_of((bytes.checked_next_power_of_two().unwrap_or(bytes) / 8).max(1)),
    }
}

/// Bytes of a hash table with this capacity: the number of slots is a power of two, an eighth stays empty.
pub(crate) fn table_bytes<E>(capacity: usize) -> usize {
    if capacity == 0 { 0 } else { (capacity + capacity / 7).next_power_of_two() * (size_of::<E>() + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn what_is_dropped_is_given_back() {
        let budget = Arc::new(Budget::new(100, 2));
        let mut holding = budget.holding();
        holding.add(60).unwrap();
        assert_eq!(budget.holding().add(50), Err(EvalFault::MemoryExceeded { bytes_max: 100 }));
        assert_eq!(budget.bytes_held(), 60);
        holding.give_back(20);
        let mut all = budget.holding();
        all.absorb(holding);
        assert_eq!(budget.bytes_held(), 40);
        drop(all);
        assert_eq!(budget.bytes_held(), 0);
    }

    #[test]
    fn a_collection_that_grows_is_counted_twice_while_it_is_moved() {
        let element = size_of::<u64>();
        let budget = Arc::new(Budget::new(3 * ELEMENTS_AT_FIRST * element, 0));
        let mut holding = budget.holding();
        let (mut elements, mut counted) = (Vec::new(), 0);
        for number in 0..2 * ELEMENTS_AT_FIRST as u64 {
            holding.grow(&mut elements, &mut counted).unwrap();
            elements.push(number);
            assert_eq!(budget.bytes_held(), elements.capacity() * element);
        }
        // Eight elements would become sixteen, and both rooms do not fit.
        assert!(holding.grow(&mut elements, &mut counted).is_err());
        assert_eq!(elements.capacity(), 2 * ELEMENTS_AT_FIRST);
    }

    #[test]
    fn memory_drawn_for_a_move_is_returned_after_it() {
        let all = Arc::new(QueryMemory::new(usize::MAX));
        let budget = Arc::new(Budget::new(usize::MAX, 0).within(Arc::clone(&all)));
        let mut holding = budget.holding();
        let mut elements = vec![0_u8; 8 * DRAW_BYTES];
        let mut counted = 0;
        holding.resize(&mut counted, elements.capacity()).unwrap();
        holding.grow(&mut elements, &mut counted).unwrap();
        assert_eq!(all.bytes_drawn(), 16 * DRAW_BYTES);
        drop((holding, budget));
        assert_eq!(all.bytes_drawn(), 0);
    }

    #[test]
    fn queries_share_one_memory() {
        let all = Arc::new(QueryMemory::new(3 * DRAW_BYTES));
        let query = || Arc::new(Budget::new(usize::MAX, 0).within(Arc::clone(&all)));
        let (first, second) = (query(), query());
        let (mut one, mut other) = (first.holding(), second.holding());
        one.add(UNDRAWN_BYTES).unwrap();
        assert_eq!(all.bytes_drawn(), 0);
        one.add(DRAW_BYTES + 1).unwrap();
        assert_eq!(all.bytes_drawn(), 2 * DRAW_BYTES);
        other.add(UNDRAWN_BYTES + 1).unwrap();
        assert_eq!(all.bytes_drawn(), 3 * DRAW_BYTES);
        assert_eq!(other.add(DRAW_BYTES), Err(EvalFault::MemoryBusy));
        assert_eq!(all.bytes_drawn(), 3 * DRAW_BYTES, "a refusal takes nothing");
        drop((one, first));
        assert_eq!(all.bytes_drawn(), DRAW_BYTES);
        other.add(1).unwrap();
        drop((other, second));
        assert_eq!(all.bytes_drawn(), 0);
    }

    #[test]
    fn rows_are_counted_to_the_bound() {
        let budget = Budget::new(0, 2);
        assert!(budget.count_row().is_ok() && budget.count_row().is_ok());
        assert_eq!(budget.count_row(), Err(EvalFault::RowsExceeded { rows_max: 2 }));
    }

    #[test]
    fn room_is_counted_as_the_allocator_gives_it() {
        let sizes = [0, 1, 8, 9, 16, 17, 128, 129, 160, 161, 1024, 1025];
        assert_eq!(sizes.map(allocated), [0, 8, 8, 16, 16, 32, 128, 160, 160, 192, 1024, 1280]);
        assert_eq!([0, 3, 7, 14, 28].map(table_bytes::<[u8; 7]>), [0, 32, 64, 128, 256]);
    }

    #[test]
    fn weights_are_bounded() {
        let text = Value::String("x".repeat(VALUE_WEIGHT_MAX / 8 * 7));
        assert_eq!(weigh(text.as_ref()), Ok(VALUE_WEIGHT_MAX / 8 * 7 + NODE_WEIGHT));
        assert!(weigh(Value::Array(vec![text.clone(), text]).as_ref()).is_err());
    }
}
