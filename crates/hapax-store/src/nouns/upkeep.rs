//! What upkeep says of itself.

/// What one step of reaping deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reaped {
    /// Raw bytes deleted.
    pub payloads: u32,
    /// Identities deleted, each with its event.
    pub identities: u32,
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

/// How full and how well a store is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Events, tombstones included.
    pub events: u64,
    /// Bytes on disk.
    pub bytes: u64,
    /// Keys found twice by the cross-check; anything but zero is a broken promise.
    pub keys_twice: u64,
}
