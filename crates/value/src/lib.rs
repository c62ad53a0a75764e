//! Documents and values: encoding, JSON, key code, paths, patch.
