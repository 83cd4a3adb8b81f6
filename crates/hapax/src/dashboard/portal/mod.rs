//! The consumers' portal: what somebody sees who came by a magic link. Data in, markup out, as everywhere in [`crate::dashboard`].
//!
//! - [`theme`]: name, logo and colour, as the config has them; [`frame`]: what every page has around it
//! - [`enter`]: the way in
//! - [`endpoints`]: the list; [`endpoint`]: one of them, with its figures ([`bars`]) and attempts
//! - [`settings`]: the form that makes or changes one, its headers, its end; [`secret`]: its secret
//! - [`verify`]: how to verify, in six languages ([`code`](mod@code))
//! - [`messages`], [`attempt`]: what was sent, and what came back
//! - [`catalogue`]: types of events with schemas and examples

pub mod attempt;
pub mod bars;
pub mod catalogue;
pub mod code;
pub mod endpoint;
pub mod endpoints;
pub mod enter;
pub mod frame;
pub mod messages;
pub mod secret;
pub mod settings;
pub mod theme;
pub mod verify;
