//! Values that an API derives from a resource and keeps with it, such as texts that every answer repeats.
//!
//! The engine does not know their types. There is one value for each type, made at its first use; reading one costs an
//! atomic load and a comparison of types.

use std::any::Any;
use std::fmt;
use std::sync::OnceLock;

/// Derived values of one resource: a list with a node for each type. It only grows, and only by as many types as there
/// are APIs that keep something.
#[derive(Default)]
pub struct Derived(OnceLock<Box<Node>>);

struct Node {
    value: Box<dyn Any + Send + Sync>,
    next: Derived,
}

impl Node {
    fn get<T: Any>(&self) -> Option<&T> {
        self.value.downcast_ref::<Option<T>>().and_then(Option::as_ref)
    }
}

impl Derived {
    /// The value of type `T`, made by `make` at its first use. Two threads may make it at the same time; one value is
    /// kept.
    pub fn get_or_make<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> &T {
        match self.find() {
            Some(value) => value,
            None => self.add(Some(make())),
        }
    }

    fn find<T: Any>(&self) -> Option<&T> {
        let mut list = self;
        while let Some(node) = list.0.get() {
            if let Some(value) = node.get() {
                return Some(value);
            }
            list = &node.next;
        }
        None
    }

    /// Adds `value` after those of other types, unless one of its type has been added meanwhile.
    fn add<T: Any + Send + Sync>(&self, mut value: Option<T>) -> &T {
        let make = || Box::new(Node { value: Box::new(value.take()), next: Derived::default() });
        let node = self.0.get_or_init(make);
        match node.get() {
            Some(kept) => kept,
            None => node.next.add(value),
        }
    }
}

impl fmt::Debug for Derived {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Derived")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_type_has_one_value() {
        let derived = Derived::default();
        let first: *const String = derived.get_or_make(|| "one".to_owned());
        assert_eq!(*derived.get_or_make(|| 7_u32), 7);
        assert_eq!(*derived.get_or_make(|| 8_u64), 8);
        assert_eq!(*derived.get_or_make(|| 9_u32), 7);
        let again: *const String = derived.get_or_make(|| "two".to_owned());
        assert_eq!(first, again);
    }

    #[test]
    fn threads_agree_on_one_value() {
        let derived = Derived::default();
        let values: Vec<(usize, usize)> = std::thread::scope(|scope| {
            let thread = |number: usize| {
                let derived = &derived;
                scope.spawn(move || {
                    let text: &String = derived.get_or_make(|| number.to_string());
                    let count: &usize = derived.get_or_make(|| number);
                    (text.as_ptr() as usize, std::ptr::from_ref(count) as usize)
                })
            };
            let threads: Vec<_> = (0..8).map(thread).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(values.iter().all(|value| *value == values[0]));
    }
}
