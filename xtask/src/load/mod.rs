//! A load generator of our own: many connections to a loopback server, each with one request in flight.
//!
//! It runs as a process of its own, so that the measured server's CPU time is not mixed with it, and does as little as
//! possible per request: the request is prebuilt and only its id and signature change, the response is read up to
//! its content length. The bench writes an [`Order`] to the process and reads [`Signal`]s from it.
//!
//! - [`generator`]: threads, rounds. [`connection`]: one request after the other. [`process`]: the bench's side.
//! - [`histogram`], [`tally`]: what is counted. [`response`]: the parser.
//! - [`requests`]: the trait to implement for other requests; [`template`] helps; [`github`], [`stripe`], [`keyed`],
//!   [`message`], [`plain`].

mod connection;
mod generator;
mod github;
mod histogram;
mod keyed;
mod message;
mod order;
mod plain;
mod process;
mod requests;
mod response;
mod stripe;
mod tally;
mod template;

pub(crate) use generator::serve_order;
pub(crate) use order::{Order, Round, Shape, Signal};
pub(crate) use process::Generator;
