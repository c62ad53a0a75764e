//! What is wanted: mutations and transactions.
