//! The only thing a door can see: catalog, routing, documents.
