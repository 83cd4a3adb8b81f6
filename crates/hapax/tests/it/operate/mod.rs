//! What operators do, over real HTTP: who may, what they are told first, what is done, and what is recorded of it.
//!
//! - [`tokens`]: tokens and roles; [`secrets`]: secrets at rest; [`canaries`]: found nowhere
//! - [`actions`]: retry, replay, resolve, reconcile; refused ones; the same request twice
//! - [`reviews`]: events that wait for a person, and conflicts
//! - [`timeline`]: what happened, told in order
//! - [`bulk`]: replays of many events, also over a restart
//! - [`erase`]: bytes that go at once; [`audit`]: a log that somebody changed
//! - [`own`]: the ledger for the user's own code; [`handlers`]: the examples that use it;
//!   `hang_up`: callers that do not wait for it
//! - [`alerts`]: what somebody should look at; `alerts_held_up`: of work that is held up; it needs the shim, and so Linux
//! - [`live`]: events as they are accepted, on [`follow`]; [`listen`]: the same at a local URL
//! - [`keys`]: what the ledger tells about keys
//! - [`openapi`]: what the API says about itself
//! - [`mod@store`]: upkeep of the store; [`upkeep`]: what nobody asks for
//! - [`cli`]: the same at a prompt; [`cli_review`]: what only a person can decide

mod actions;
pub(crate) mod alerts;
#[cfg(target_os = "linux")]
mod alerts_held_up;
mod audit;
mod bulk;
mod canaries;
mod cli;
mod cli_review;
mod erase;
mod follow;
mod handlers;
#[cfg(target_os = "linux")]
mod hang_up;
mod keys;
mod listen;
mod live;
mod openapi;
mod own;
mod reviews;
mod secrets;
mod store;
mod timeline;
mod tokens;
mod upkeep;
