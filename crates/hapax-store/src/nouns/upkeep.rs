//! What upkeep says of itself.

/// What one step of reaping deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reaped {
    /// Raw bytes deleted.
    pub payloads: u32,
    /// Events whose deliveries, attempts and runs were deleted.
    pub ledgers: u32,
    /// Identities deleted, each with its event.
    pub identities: u32,
    /// Guarded keys deleted, each with its answer.
    pub keys: u32,
    /// Is there more to do right away?
    pub more: bool,
}

/// The disk that a store is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskState {
    /// Bytes that are free.
    pub free_bytes: u64,
    /// Below so many nothing new is taken.
    pub free_bytes_min: u64,
}

/// The shape of a store, by the number of its migrations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Migrated {
    /// What it had.
    pub from: usize,
    /// What it has now.
    pub to: usize,
}

/// How full and how well a store is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Events, tombstones included.
    pub events: u64,
    /// Guarded keys.
    pub keys: u64,
    /// Events whose bytes are kept.
    pub payloads: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// Keys of events, effects and guarded requests found twice by the cross-check; anything but zero is a broken promise.
    pub keys_twice: u64,
}
