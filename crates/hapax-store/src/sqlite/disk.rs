//! A disk that fills up: stop early, keep something to let go of, and come back without a restart.
//!
//! SQLite cannot even delete on a full disk. So intake stops at a watermark above zero, and a ballast file holds space that
//! is given back when everything else failed, so that a checkpoint and the reaper can make room.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use super::open::Paths;
use crate::error::{StoreError, StoreErrorKind};
use crate::nouns::DiskState;

/// Free space is asked for again after so many groups.
const GROUPS_BETWEEN_LOOKS: u32 = 16;
/// And after so many bytes of bodies: well below the watermark, since log and database each take them once.
const BYTES_BETWEEN_LOOKS: usize = 16 * 1024 * 1024;
/// The ballast is written in pieces of this size, since a sparse file would hold no space.
const PIECE: usize = 64 * 1024;

/// When to stop taking work, and how much to hold back.
#[derive(Clone, Copy, Debug)]
pub struct DiskLimits {
    /// Below so many free bytes nothing new is accepted.
    pub free_bytes_min: u64,
    /// The size of the ballast file.
    pub ballast_bytes: u64,
}

impl Default for DiskLimits {
    fn default() -> DiskLimits {
        DiskLimits {
            free_bytes_min: 64 * 1024 * 1024,
            ballast_bytes: 16 * 1024 * 1024,
        }
    }
}

/// Shows how full the disk is to whoever asks.
pub(super) struct Gauge {
    folder: PathBuf,
    free_bytes_min: u64,
}

impl Gauge {
    pub(super) fn new(paths: &Paths, limits: DiskLimits) -> Gauge {
        Gauge {
            folder: paths.folder.clone(),
            free_bytes_min: limits.free_bytes_min,
        }
    }

    /// Nothing if the operating system does not say.
    pub(super) fn read(&self) -> Option<DiskState> {
        Some(DiskState {
            free_bytes: free_bytes(&self.folder)?,
            free_bytes_min: self.free_bytes_min,
        })
    }
}

fn free_bytes(folder: &Path) -> Option<u64> {
    let space = rustix::fs::statvfs(folder).ok()?;
    Some(space.f_bavail * space.f_frsize)
}

/// Watches the disk for the writer.
pub(super) struct Disk {
    folder: PathBuf,
    ballast: PathBuf,
    limits: DiskLimits,
    groups_until_look: u32,
    bytes_until_look: usize,
    low: bool,
}

impl Disk {
    pub(super) fn new(paths: &Paths, limits: DiskLimits) -> Disk {
        let mut disk = Disk {
            folder: paths.folder.clone(),
            ballast: paths.ballast.clone(),
            limits,
            groups_until_look: 0,
            bytes_until_look: 0,
            low: false,
        };
        disk.look();
        disk
    }

    /// So many bytes of bodies are about to be written.
    pub(super) fn will_write(&mut self, bytes: usize) {
        self.bytes_until_look = self.bytes_until_look.saturating_sub(bytes);
    }

    /// May new work be taken? Looks at the disk now and then; while it is low, every time.
    pub(super) fn room(&mut self) -> Result<(), StoreError> {
        if self.groups_until_look == 0 || self.bytes_until_look == 0 || self.low {
            self.look();
        } else {
            self.groups_until_look -= 1;
        }
        match self.low {
            true => Err(StoreError::new(
                StoreErrorKind::Full,
                "the disk is nearly full; free some space, intake resumes by itself",
            )),
            false => Ok(()),
        }
    }

    /// A write failed for want of space: let the ballast go.
    pub(super) fn filled_up(&mut self) {
        self.low = true;
        if std::fs::remove_file(&self.ballast).is_ok() {
            tracing::warn!("the disk is full; gave up the ballast file to make room for deleting");
        }
    }

    fn look(&mut self) {
        self.groups_until_look = GROUPS_BETWEEN_LOOKS;
        self.bytes_until_look = BYTES_BETWEEN_LOOKS;
        let Some(free) = free_bytes(&self.folder) else {
            return;
        };
        let was_low = self.low;
        self.low = free < self.limits.free_bytes_min;
        match (was_low, self.low) {
            (false, true) => tracing::warn!(
                free_bytes = free,
                "the disk is nearly full; answering 503 until there is space"
            ),
            (true, false) => {
                tracing::info!(free_bytes = free, "the disk has space again; taking work")
            }
            _ => {}
        }
        let ballast_missing = std::fs::metadata(&self.ballast).map_or(0, |file| file.len())
            < self.limits.ballast_bytes;
        if ballast_missing
            && free > self.limits.free_bytes_min + 2 * self.limits.ballast_bytes
            && let Err(error) = self.fill_ballast()
        {
            tracing::warn!(%error, "cannot write the ballast file");
        }
    }

    fn fill_ballast(&self) -> std::io::Result<()> {
        let mut file = File::create(&self.ballast)?;
        // Not zeros: a file system that compresses would keep nothing back for them.
        let piece: Vec<u8> = (0..PIECE)
            .map(|at| (at as u32).wrapping_mul(2_654_435_761) as u8)
            .collect();
        let mut left = self.limits.ballast_bytes as usize;
        while left > 0 {
            let size = left.min(PIECE);
            file.write_all(&piece[..size])?;
            left -= size;
        }
        file.sync_data()
    }
}
