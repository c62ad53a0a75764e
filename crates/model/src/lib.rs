//! Ids, definitions, partition keys, faults, continuations: what the floors agree on.
