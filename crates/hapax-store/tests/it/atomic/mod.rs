//! Keys in somebody else's transactions, on every driver.

mod claims;
mod once;
mod phases;
mod races;
mod world;
