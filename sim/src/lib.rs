//! Seeded simulations of partitions and engine against a model.
