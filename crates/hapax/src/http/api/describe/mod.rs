//! What the API says about itself: `GET /api/v1/openapi.json`, made from the routes.
//!
//! A route is registered once, with its handler, and the handler says what it takes and gives. What holds for many of
//! them alike is added in one place, so that no handler can forget it.
//!
//! - [`document`]: the document: its head, the roles, what every door may answer
//! - [`asked`]: what requests bring: queries, and the bodies that `body.rs` reads by name
//!   ([`asked_outbox`], [`asked_tasks`]: bodies of the outgoing API, [`asked_of_outbox`]: its queries)
//! - [`told`]: answers that are made elsewhere, and problems
//! - [`value`]: single values and their limits ([`value_outbox`]: those of the outgoing API)

pub mod asked;
pub mod asked_of_outbox;
pub mod asked_outbox;
pub mod asked_tasks;
pub mod document;
pub mod told;
pub mod value;
pub mod value_outbox;
