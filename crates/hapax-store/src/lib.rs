//! Where the ledger is kept. The only place in Hapax that speaks SQL.
//!
//! [`Store`] names what the program may ask: each method is one transaction with a verb of the domain, and there is
//! no `begin`, so that no transaction can be held open over a network call. Three stores keep that promise:
//! [`model`] (in memory, the oracle), [`sqlite`] (embedded, the default) and [`postgres`] (any number of nodes).
//! One suite, [`conformance`], runs on all three. [`Catalog`] is what they keep beside the ledger, [`Keys`] what
//! the guard keeps in it. [`atomic`] is for keys that live in somebody else's database, and in their transactions.
//! the guard keeps in it, [`Outbox`] what the outbox does, [`Polls`] what is for those who ask for messages,
//! [`Tidings`] what operators are to hear.

pub mod atomic;
pub mod catalog;
#[cfg(feature = "conformance")]
pub mod conformance;
mod deeds;
pub mod error;
mod guarded;
pub mod keys;
pub mod model;
pub mod nouns;
mod order_code;
pub mod outbox;
mod outcome_code;
mod own;
pub mod polling;
pub mod postgres;
mod posting;
mod posting_code;
pub mod sqlite;
pub mod store;
pub mod tidings;
pub mod vault;
mod walk;

pub use catalog::Catalog;
pub use deeds::verdict_json;
pub use error::{StoreError, StoreErrorKind};
pub use keys::Keys;
pub use outbox::Outbox;
pub use polling::Polls;
pub use store::{Clock, Store};
pub use tidings::Tidings;
