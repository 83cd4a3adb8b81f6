//! Is anybody between us and the server?
//!
//! A server announces the process that serves a session when the session begins, and can be asked for it at any time. A pooler
//! announces a number of its own, since the process behind it changes. So if the two agree, the session is ours alone, and what
//! is prepared in it stays there. In any doubt it is not.
//!
//! The driver keeps the announced number to itself, but sends it along when it asks for a query to be cancelled. So we have it
//! write such a request, to a stream that only listens.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::Client;
use tokio_postgres::tls::{ChannelBinding, TlsConnect, TlsStream};

/// A request to cancel: its length, this code, the process, and a secret.
const CANCEL_BYTES: usize = 16;
const CANCEL_CODE: i32 = 80_877_102;

/// Is the session served by the process that was announced for it? `serving` is what the server answers now.
pub(super) async fn is_direct(client: &Client, serving: i32) -> bool {
    announced(client).await == Some(serving)
}

/// The process that was announced when the session began.
async fn announced(client: &Client) -> Option<i32> {
    let mut ear = Ear::default();
    let token = client.cancel_token();
    token.cancel_query_raw(&mut ear, Unchanged).await.ok()?;
    process_in(&ear.heard)
}

/// The process that a request to cancel names. A request for TLS may stand before it. Relatives of PostgreSQL that have no
/// processes say zero, which tells us nothing.
fn process_in(heard: &[u8]) -> Option<i32> {
    let request = heard.last_chunk::<CANCEL_BYTES>()?;
    let number = |at: usize| {
        let bytes = request[at..].first_chunk::<4>()?;
        Some(i32::from_be_bytes(*bytes))
    };
    let is_cancel = number(0)? == CANCEL_BYTES as i32 && number(4)? == CANCEL_CODE;
    number(8).filter(|process| is_cancel && *process != 0)
}

/// Remembers what is written to it. To whoever reads it says `S`, as a server does that is ready for TLS.
#[derive(Default)]
struct Ear {
    heard: Vec<u8>,
}

impl AsyncRead for Ear {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if into.remaining() > 0 {
            into.put_slice(b"S");
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Ear {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        said: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.heard.extend_from_slice(said);
        Poll::Ready(Ok(said.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl TlsStream for &mut Ear {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

/// Stands in for TLS where nothing leaves this process.
struct Unchanged;

impl<S: TlsStream + Unpin> TlsConnect<S> for Unchanged {
    type Stream = S;
    type Error = Infallible;
    type Future = Ready<Result<S, Infallible>>;

    fn connect(self, stream: S) -> Self::Future {
        ready(Ok(stream))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio_postgres::Config;
    use tokio_postgres::config::{SslMode, SslNegotiation};

    /// A server that says this when a session begins, and nothing more.
    struct Server(&'static [u8]);

    impl AsyncRead for Server {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            into: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if self.0.is_empty() {
                return Poll::Pending;
            }
            let (now, later) = self.0.split_at(self.0.len().min(into.remaining()));
            into.put_slice(now);
            self.0 = later;
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for Server {
        fn poll_write(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
            said: &[u8],
        ) -> Poll<io::Result<usize>> {
            Poll::Ready(Ok(said.len()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    impl TlsStream for Server {
        fn channel_binding(&self) -> ChannelBinding {
            ChannelBinding::none()
        }
    }

    /// Authentication is done, process 4711 with a secret, ready for a query; with and without the `S` before TLS.
    const PLAIN: &[u8] = b"R\0\0\0\x08\0\0\0\0K\0\0\0\x0c\0\0\x12\x67\xde\xad\xbe\xefZ\0\0\0\x05I";
    const TLS: &[u8] = b"SR\0\0\0\x08\0\0\0\0K\0\0\0\x0c\0\0\x12\x67\xde\xad\xbe\xefZ\0\0\0\x05I";
    /// The same without a word about the process.
    const SILENT: &[u8] = b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I";

    #[tokio::test]
    async fn the_announced_process_is_heard_however_the_session_is_protected() {
        let (negotiated, at_once) = (SslNegotiation::Postgres, SslNegotiation::Direct);
        let table = [
            (SslMode::Disable, negotiated, PLAIN, Some(4711)),
            (SslMode::Prefer, negotiated, TLS, Some(4711)),
            (SslMode::Require, negotiated, TLS, Some(4711)),
            (SslMode::Require, at_once, PLAIN, Some(4711)),
            (SslMode::Disable, negotiated, SILENT, None),
        ];
        for (mode, negotiation, said, expected) in table {
            let mut config = Config::new();
            config
                .user("hapax")
                .ssl_mode(mode)
                .ssl_negotiation(negotiation);
            let (client, _connection) = config
                .connect_raw(Server(said), Unchanged)
                .await
                .expect("the session begins");
            assert_eq!(announced(&client).await, expected, "{mode:?}");
            assert_eq!(is_direct(&client, 4711).await, expected.is_some());
            assert!(!is_direct(&client, 4712).await, "a pooler's number");
        }
    }

    #[test]
    fn what_is_no_request_to_cancel_names_no_process() {
        let cancel = b"\0\0\0\x10\x04\xd2\x16\x2e\0\0\0\x07\0\0\0\x09";
        assert_eq!(process_in(cancel), Some(7));
        assert_eq!(process_in(&cancel[1..]), None);
        assert_eq!(process_in(&[&cancel[..], b"\0"].concat()), None);
        assert_eq!(process_in(b""), None);
    }
}
