//! Holding a request's body until its key is looked up: in memory, then on disk, up to a limit.

use std::io::{self, SeekFrom};
use std::path::Path;
use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use hapax_ledger::fingerprint::{Fingerprint, RequestHead};
use http_body_util::BodyExt;
use tokio::fs::File;
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

use super::{ByteBody, GuardBody};

/// Bytes that are hashed at a time.
const HASH_BYTES: usize = 64 * 1024;

/// How much is held where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits<'a> {
    pub(crate) memory_bytes_max: u64,
    pub(crate) bytes_max: u64,
    pub(crate) folder: &'a Path,
}

/// A body that has arrived.
#[derive(Debug)]
pub(crate) enum Held {
    /// In memory.
    Memory(Bytes),
    /// In a file without a name, which is gone with its handle.
    Disk { file: File, bytes: u64 },
}

/// Why a body is not held.
#[derive(Debug)]
pub(crate) enum HoldProblem {
    /// Longer than the limit.
    TooLarge,
    /// It broke off.
    Incomplete,
    /// The disk does not take it.
    Spool(io::Error),
}

/// Reads a whole body.
pub(crate) async fn hold<B>(mut body: Pin<&mut B>, limits: Limits<'_>) -> Result<Held, HoldProblem>
where
    B: ByteBody,
{
    // What says its length beforehand is refused before a byte of it is read.
    if body.size_hint().lower() > limits.bytes_max {
        return Err(HoldProblem::TooLarge);
    }
    let (mut memory, mut bytes) = (Memory::default(), 0u64);
    let mut disk: Option<File> = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_broken| HoldProblem::Incomplete)?;
        let Ok(part) = frame.into_data() else {
            // Trailers are no part of what is held.
            continue;
        };
        bytes += part.len() as u64;
        if bytes > limits.bytes_max {
            return Err(HoldProblem::TooLarge);
        }
        if disk.is_none() && bytes <= limits.memory_bytes_max {
            memory.add(part);
            continue;
        }
        let file = match &mut disk {
            Some(file) => file,
            None => disk.insert(spool(limits.folder, &memory.take()).await?),
        };
        file.write_all(&part).await.map_err(HoldProblem::Spool)?;
    }
    match disk {
        None => Ok(Held::Memory(memory.take())),
        Some(mut file) => {
            // The last write may still be under way.
            file.flush().await.map_err(HoldProblem::Spool)?;
            Ok(Held::Disk { file, bytes })
        }
    }
}

/// A file that begins with these bytes.
async fn spool(folder: &Path, start: &[u8]) -> Result<File, HoldProblem> {
    let folder = folder.to_owned();
    let made = tokio::task::spawn_blocking(move || tempfile::tempfile_in(folder)).await;
    let file = made
        .map_err(io::Error::other)
        .flatten()
        .map_err(HoldProblem::Spool)?;
    let mut file = File::from_std(file);
    file.write_all(start).await.map_err(HoldProblem::Spool)?;
    Ok(file)
}

/// Bytes as they come; a body of one part is not copied.
#[derive(Default)]
struct Memory {
    first: Bytes,
    more: BytesMut,
}

impl Memory {
    fn add(&mut self, part: Bytes) {
        if self.first.is_empty() && self.more.is_empty() {
            self.first = part;
            return;
        }
        if self.more.is_empty() {
            self.more
                .extend_from_slice(&std::mem::take(&mut self.first));
        }
        self.more.extend_from_slice(&part);
    }

    fn take(&mut self) -> Bytes {
        if self.more.is_empty() {
            std::mem::take(&mut self.first)
        } else {
            self.more.split().freeze()
        }
    }
}

impl Held {
    /// The fingerprint of the request that this is the body of.
    pub(crate) async fn fingerprint(&mut self, head: &RequestHead<'_>) -> io::Result<Fingerprint> {
        match self {
            Held::Memory(bytes) => {
                let mut print = head.begin(bytes.len() as u64);
                print.update(bytes);
                Ok(print.finish())
            }
            Held::Disk { file, bytes } => {
                let mut print = head.begin(*bytes);
                let mut buffer = vec![0; HASH_BYTES];
                file.seek(SeekFrom::Start(0)).await?;
                let mut left = *bytes;
                while left > 0 {
                    let read = file.read(&mut buffer).await?;
                    if read == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    print.update(&buffer[..read]);
                    left = left.saturating_sub(read as u64);
                }
                file.seek(SeekFrom::Start(0)).await?;
                Ok(print.finish())
            }
        }
    }

    /// For the service.
    pub(crate) fn into_body<B>(self) -> GuardBody<B> {
        match self {
            Held::Memory(bytes) => GuardBody::memory(bytes),
            Held::Disk { file, bytes } => GuardBody::disk(file, bytes),
        }
    }
}
