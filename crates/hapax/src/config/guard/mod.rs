//! `[[guard]]`: a reverse proxy that gives a retried request the first one's answer.
//!
//! - `raw`: what is written
//! - `together`, `resolve`, `caller`, `settings`, `tls`: what it means
//! - [`GuardConfig`]: what the program uses

mod caller;
pub(super) mod raw;
mod resolve;
mod resolved;
mod settings;
mod tls;
mod together;

pub use resolved::{CallerConfig, ForwardedRule, GuardConfig, HostRule, JwtConfig, UpstreamHttp};
pub(super) use together::guards;
