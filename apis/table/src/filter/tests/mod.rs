//! Filters: their texts, their meaning, and how the engine executes them.

mod generate;
mod in_engine;
mod meaning;
mod naive;
mod texts;
