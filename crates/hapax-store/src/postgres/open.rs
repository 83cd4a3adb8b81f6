//! Opening the store: where the server is, how to reach it, and a schema that fits.

use std::time::Duration;

use tokio_postgres::Config;

use super::kept::Statements;
use super::pool::{self, Pool};
use super::wake::Line;
use super::{Options, keys, migrate, tls};
use crate::error::{StoreError, StoreErrorKind};
use crate::nouns::Migrated;

/// Connections that accept. Two keep the server busy while one of them waits for its disk; a third showed no gain beyond
/// the noise, and makes the groups smaller, each of which costs the server a parse and a plan.
pub(super) const WRITERS: usize = 2;
/// Lanes that store messages, each with a connection.
pub(super) const PUBLISHERS: usize = 2;
/// Lanes that carry out moves of effects. Two, so that one group is put together while the other commits.
pub(super) const MOVERS: usize = 2;
/// Connections for claims and rescues.
const EFFECTS: usize = 2;
/// Connections for what people and their own code decide. Apart from the others: whoever waits there for an effect that is being
/// moved keeps nobody else waiting.
const DECIDERS: usize = 4;
/// Connections for beats, on which requests under way rely: they wait for no list that somebody reads. Two, since one whose commit got no
/// answer keeps its place for a while.
const BEATS: usize = 2;
/// Connections for all else: reads, the reaper, readiness.
const READERS: usize = 4;

/// How long a commit may take before its outcome counts as unknown. A server's own time-out does not end the wait for a
/// synchronous standby, so this one is ours. Well above any healthy commit, and below the 30 s after which senders give up.
pub const COMMIT_WAIT: Duration = Duration::from_secs(10);

/// The way to the server.
pub(super) struct Opened {
    /// For accepting.
    pub(super) writers: Pool,
    /// For claiming effects.
    pub(super) effects: Pool,
    /// For moving them.
    pub(super) movers: Pool,
    /// For commands, and claims of the user's own code.
    pub(super) deciders: Pool,
    /// For guarded keys.
    pub(super) keys: Pool,
    /// For beats.
    pub(super) beats: Pool,
    /// For all else.
    pub(super) readers: Pool,
    /// For a session of one's own.
    pub(super) line: Line,
    /// What became of its shape.
    pub(super) migrated: Migrated,
}

/// Connects once, to bring the schema up to date and to say early what is wrong.
pub(super) async fn open(options: &Options) -> Result<Opened, StoreError> {
    let mut config: Config = options
        .url
        .parse()
        .map_err(|error: tokio_postgres::Error| {
            // The driver's words name the bad part of the URL, never its value.
            StoreError::new(
                StoreErrorKind::Incompatible,
                "the database URL cannot be read",
            )
            .caused_by(error)
        })?;
    let tls = tls::connector(&mut config, options.root_certificates.as_deref())?;
    let new_pool =
        |size, statements| Pool::new(&config, tls.clone(), options.commit_wait, size, statements);
    let writers = new_pool(WRITERS + PUBLISHERS, Statements::Kept);
    let effects = new_pool(EFFECTS, Statements::Kept);
    let movers = new_pool(MOVERS, Statements::Planned);
    let deciders = new_pool(DECIDERS, Statements::Kept);
    let keys = new_pool(keys::CONNECTIONS, Statements::Planned);
    let beats = new_pool(BEATS, Statements::Kept);
    let readers = new_pool(READERS, Statements::Anew);
    let migrated = migrate::migrate(&readers, options.new_store_id).await?;
    let line = Line {
        config: pool::with_limits(&config),
        tls: tls.clone(),
    };
    Ok(Opened {
        writers,
        effects,
        movers,
        deciders,
        keys,
        beats,
        readers,
        line,
        migrated,
    })
}
