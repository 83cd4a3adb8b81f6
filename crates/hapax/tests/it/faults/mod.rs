//! What the program must survive (`INVARIANTS.md`, faults), done to the real program.
//!
//! - [`kill`]: `kill -9` under load, and a key index that is lost or old
//! - `power_cut`: loss of what was not synced; an ack waits for its sync
//! - `disk_full`: no space, in the database, in the key index, and by the watermark
//! - `sync_error`: a sync that fails, so that nobody knows what is on disk
//! - [`store_down`]: PostgreSQL away, silent, or cut off between a commit and its answer, through a wire
//! - [`shutdown`]: SIGTERM and SIGHUP
//! - [`bad_senders`]: slow, large, broken or too many requests
//!
//! `shim` stands between the program and the kernel for the faults that only the kernel can make; it knows Linux.

mod bad_senders;
#[cfg(target_os = "linux")]
mod disk_full;
mod kill;
#[cfg(target_os = "linux")]
mod power_cut;
#[cfg(target_os = "linux")]
pub(crate) mod shim;
mod shutdown;
mod store_down;
#[cfg(target_os = "linux")]
mod sync_error;
