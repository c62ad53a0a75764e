//! Calls that must not compile. Each has a counterpart that differs only in the forbidden part and compiles, so that
//! no other mistake makes the example fail. `cargo test` compiles all of them.
//!
//! A token is issued with a pass for the permissions of the database:
//!
//! ```
//! use engine::{CatalogPass, Engine, Permission, Permissions};
//! fn mint(engine: &Engine, pass: &CatalogPass<Permissions<'_>>, permission: &Permission) {
//!     let _ = engine.permission_token(pass, permission, model::TokenLife::DEFAULT);
//! }
//! ```
//!
//! and not without one, nor with a pass for users:
//!
//! ```compile_fail
//! use engine::{CatalogPass, Engine, Permission, Permissions};
//! fn mint(engine: &Engine, pass: &CatalogPass<Permissions<'_>>, permission: &Permission) {
//!     let _ = engine.permission_token(permission, model::TokenLife::DEFAULT);
//! }
//! ```
//!
//! ```compile_fail
//! use engine::{CatalogPass, Engine, Permission, Users};
//! fn mint(engine: &Engine, pass: &CatalogPass<Users<'_>>, permission: &Permission) {
//!     let _ = engine.permission_token(pass, permission, model::TokenLife::DEFAULT);
//! }
//! ```
//!
//! A container is replaced with a pass to change it:
//!
//! ```
//! use engine::{AdminPass, Container, Engine};
//! use model::ContainerChange;
//! async fn replace(engine: &Engine, pass: AdminPass<&Container>, change: ContainerChange) {
//!     let _ = engine.replace_container(pass, change, &plan::Condition::None).await;
//! }
//! ```
//!
//! not with a pass to read it, and not with one for its database:
//!
//! ```compile_fail
//! use engine::{CatalogPass, Container, Engine};
//! use model::ContainerChange;
//! async fn replace(engine: &Engine, pass: CatalogPass<&Container>, change: ContainerChange) {
//!     let _ = engine.replace_container(pass, change, &plan::Condition::None).await;
//! }
//! ```
//!
//! ```compile_fail
//! use engine::{AdminPass, Database, Engine};
//! use model::ContainerChange;
//! async fn replace(engine: &Engine, pass: AdminPass<&Database>, change: ContainerChange) {
//!     let _ = engine.replace_container(pass, change, &plan::Condition::None).await;
//! }
//! ```
//!
//! A document is written with a pass for the operation, not with one to read a document:
//!
//! ```
//! use engine::{Engine, WritePass};
//! async fn write(engine: &Engine, pass: WritePass<'_>) {
//!     let _ = engine.write(pass).await;
//! }
//! ```
//!
//! ```compile_fail
//! use engine::{DocumentPass, Engine};
//! async fn write(engine: &Engine, pass: DocumentPass<'_>) {
//!     let _ = engine.write(pass).await;
//! }
//! ```
//!
//! A query takes its scope from its pass, and a pass to list documents does not allow a query:
//!
//! ```
//! use engine::{Engine, QueryPass, QueryRequest};
//! async fn query(engine: &Engine, pass: QueryPass<'_>, request: &QueryRequest) {
//!     let _ = engine.query(pass, request).await;
//! }
//! ```
//!
//! ```compile_fail
//! use engine::{Engine, FeedPass, QueryRequest};
//! async fn query(engine: &Engine, pass: FeedPass<'_>, request: &QueryRequest) {
//!     let _ = engine.query(pass, request).await;
//! }
//! ```
//!
//! A pass allows one change, once:
//!
//! ```
//! use engine::{AdminPass, Container, Engine};
//! async fn delete(engine: &Engine, pass: AdminPass<&Container>) {
//!     let _ = engine.delete_container(pass, &plan::Condition::None).await;
//! }
//! ```
//!
//! ```compile_fail
//! use engine::{AdminPass, Container, Engine};
//! async fn delete(engine: &Engine, pass: AdminPass<&Container>) {
//!     let _ = engine.delete_container(pass, &plan::Condition::None).await;
//!     let _ = engine.delete_container(pass, &plan::Condition::None).await;
//! }
//! ```
//!
//! Other crates cannot make a pass:
//!
//! ```compile_fail
//! fn forge() -> engine::CatalogPass<engine::Account> {
//!     engine::CatalogPass { resource: engine::Account }
//! }
//! ```
//!
//! A pass that is dropped unused is a check whose result is not used; the compiler warns about it:
//!
//! ```
//! #![deny(unused_must_use)]
//! use engine::{Account, Engine, Principal};
//! fn list(engine: &Engine, principal: &Principal) -> Result<(), model::AccessFault> {
//!     let _pass = engine.access().read_catalog(principal, Account)?;
//!     Ok(())
//! }
//! ```
//!
//! ```compile_fail
//! #![deny(unused_must_use)]
//! use engine::{Account, Engine, Principal};
//! fn list(engine: &Engine, principal: &Principal) -> Result<(), model::AccessFault> {
//!     engine.access().read_catalog(principal, Account)?;
//!     Ok(())
//! }
//! ```
