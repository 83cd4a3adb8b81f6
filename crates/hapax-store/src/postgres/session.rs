//! One connection to the server: opened, checked, and driven by a task of ours, because it sees the notices (see [`super::notice`]).

use std::future::poll_fn;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::{AsyncMessage, Client, Config, Connection, Error, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::direct;
use super::fault::{nothing_written, unavailable};
use super::kept::Kept;
use super::notice::Notices;
use crate::error::{StoreError, StoreErrorKind};

/// From the first packet to a usable session.
const CONNECT_WAIT: Duration = Duration::from_secs(5);
/// How long the first answer may take. Behind a pooler it may have to wait for its turn.
const CHECK_WAIT: Duration = Duration::from_secs(15);
/// How long preparing may take before another session is opened instead. It waits for whoever changes the shape of tables.
const PREPARE_WAIT: Duration = Duration::from_secs(5);

/// One connection, and the task that drives it.
pub(super) struct Session {
    pub(super) client: Client,
    /// `None`: every statement is sent anew.
    pub(super) kept: Option<Kept>,
    /// Are its statements planned once, without being told in each transaction?
    pub(super) planned: bool,
    /// The process of the server that serves it.
    serving: i32,
    pub(super) notices: Notices,
    driver: JoinHandle<()>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Session {
    /// Connects, and refuses a server that is not fit for us.
    pub(super) async fn open(
        config: &Config,
        tls: &MakeRustlsConnect,
    ) -> Result<Session, StoreError> {
        let connecting = timeout(CONNECT_WAIT, config.connect(tls.clone()));
        let (client, connection) = connecting
            .await
            .map_err(|_| unavailable("the database does not answer"))?
            .map_err(|error| nothing_written(&error))?;
        let notices = Notices::default();
        let mut session = Session {
            client,
            kept: None,
            planned: false,
            serving: 0,
            notices: notices.clone(),
            driver: tokio::spawn(drive(connection, notices)),
        };
        session.serving = check_settings(&session.client).await?;
        Ok(session)
    }

    /// Keeps statements from now on, if nobody is in between.
    pub(super) async fn keep_statements(&mut self) {
        let direct = direct::is_direct(&self.client, self.serving).await;
        tracing::debug!(direct, "a session with the database begins");
        self.kept = direct.then(Kept::default);
    }

    /// Prepares what was run for the first time when the session was last used. An error without words: it took too long.
    pub(super) async fn prepare_noted(&mut self) -> Result<(), Option<Error>> {
        let Some(kept) = &mut self.kept else {
            return Ok(());
        };
        match timeout(PREPARE_WAIT, kept.prepare_noted(&self.client)).await {
            Ok(prepared) => prepared.map_err(Some),
            Err(_) => Err(None),
        }
    }
}

/// Refuses a server whose settings would make an ack a lie, or a duplicate an error. Says which process serves the session.
async fn check_settings(client: &Client) -> Result<i32, StoreError> {
    let asked = client.query_typed_one(
        "SELECT current_setting('synchronous_commit'), current_setting('default_transaction_isolation'),
             pg_backend_pid()",
        &[],
    );
    let row = timeout(CHECK_WAIT, asked)
        .await
        .map_err(|_| unavailable("the database does not answer"))?
        .map_err(|error| nothing_written(&error))?;
    let refuse = |what: &str| Err(StoreError::new(StoreErrorKind::Incompatible, what));
    match (row.get(0), row.get(1)) {
        ("off", _) => refuse(
            "synchronous_commit is off for this role or database: what is acknowledged could be lost",
        ),
        (_, "read committed" | "read uncommitted") => Ok(row.get(2)),
        (_, _) => refuse(
            "default_transaction_isolation must be `read committed` for this role or database",
        ),
    }
}

/// Moves the connection's bytes until it ends, and listens to what the server says on the side.
async fn drive<T>(mut connection: Connection<Socket, T>, notices: Notices)
where
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    while let Some(message) = poll_fn(|cx| connection.poll_message(cx)).await {
        match message {
            // Noted before the next message is looked at: the caller hears of its commit after us.
            Ok(AsyncMessage::Notice(notice)) => notices.heard(&notice),
            Ok(_) => {}
            Err(error) => {
                tracing::debug!(%error, "a connection to the database ended");
                return;
            }
        }
    }
}
