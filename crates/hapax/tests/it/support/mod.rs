//! What the fault suite drives the real program with: real processes, real sockets, no mocks.
//!
//! - [`site`]: a folder with a config and the program running in it
//! - [`server`]: the program as a child process, and its log
//! - [`client`]: HTTP/1.1 over one socket, down to single bytes
//! - [`sender`]: a provider that signs what it sends
//! - [`acks`]: what senders were told, and the checker that compares it with what is stored
//! - [`name_server`]: a name server that says what a test wants
//! - [`proxy`]: a wire to a database that can be cut
//! - [`world`]: a target with a log of its own
//! - [`files`]: what is in files, whoever wrote them
//! - [`example`]: the programs of `examples/`
//! - [`clock`], [`lots`]: time and seeded randomness

pub(crate) mod acks;
pub(crate) mod client;
pub(crate) mod clock;
pub(crate) mod example;
pub(crate) mod files;
pub(crate) mod lots;
pub(crate) mod name_server;
pub(crate) mod proxy;
pub(crate) mod screen;
pub(crate) mod sender;
pub(crate) mod server;
pub(crate) mod site;
pub(crate) mod world;
