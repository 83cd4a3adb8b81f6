//! A database of its own for each test; the fault suite of the program uses the same.

pub(crate) use hapax_store::conformance::database::{Database, with_database};
