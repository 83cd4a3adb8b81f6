//! Carrying effects out. The sender is the only code of the server that opens outbound connections.
//!
//! From the outside in:
//! - [`dispatcher`]: what the doors tell it, and its loops: `beats` and `keeping` (this node among others), `claim` (lanes), `probe`
//! - `probes`: what waits for its probe, and how much is asked about at a time
//! - [`accept`]: effects that are born claimed in the accept commit and go out from memory
//! - `attempt`: one attempt from claim to settlement; `settled` says what came of it; `skip`: claims that are not carried out
//! - [`lanes`], [`lane`], `lines`, [`breaker`], [`rate`], [`shards`]: who may send and claim how much, decided without a clock or I/O of their own
//! - [`target`]: where effects go, by the current config; [`directory`]: and by those who keep endpoints; [`job`]: a claim with all it needs; `drift`: the store's clock
//! - [`request`]: what an effect's request looks like; [`envelope`] and [`signer`] make its body and its signature
//! - [`delivery`]: what a delivery to an endpoint looks like; [`signature`] signs it
//! - [`ask`]: questions to the operator's own services: was it applied, and what is the state now
//! - [`sender`]: sends one request and says what became of it, within one deadline
//! - [`connect`] and [`resolve`]: where a request may go, and how it gets there
//! - [`gate`]: where a URL that a consumer wrote may lead
//! - [`answer`]: what is kept of an answer; `redact` keeps secrets out of it
//! - `failure`: what an error proves: certainly nothing sent, or nobody knows

pub mod accept;
pub mod answer;
pub mod ask;
mod attempt;
mod beats;
pub mod breaker;
mod claim;
pub mod connect;
pub mod delivery;
pub mod directory;
pub mod dispatcher;
mod drift;
pub mod envelope;
pub(crate) mod failure;
pub mod gate;
pub mod job;
mod keeping;
pub mod lane;
pub mod lanes;
mod lines;
mod log;
mod pace;
mod probe;
mod probes;
pub mod rate;
mod redact;
pub mod request;
pub mod resolve;
pub mod sender;
mod settle;
mod settled;
pub mod shards;
pub mod signature;
pub mod signer;
mod skip;
pub mod target;

pub use accept::Promises;
pub use dispatcher::{Dispatcher, Parts};
pub use sender::{Sender, Settings};
pub use target::Targets;
