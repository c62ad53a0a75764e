//! Physical partition: records, log and the one writer of a hash range.
