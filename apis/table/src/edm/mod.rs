//! Edm types: their values, their texts and how a document stores them.
