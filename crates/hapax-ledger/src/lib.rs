//! The rules of Hapax as pure functions.
//!
//! Nothing here reads a clock, draws a random number, waits, or touches a file, a socket or a database. What the
//! stores persist and the program carries out is decided here, where it can be tested as a table.
//! See INVARIANTS in `docs/design/` for the statements (A1, B3, ...) that comments name.

pub mod effect;
pub mod event;
pub mod id;
pub mod lease;
pub mod time;
