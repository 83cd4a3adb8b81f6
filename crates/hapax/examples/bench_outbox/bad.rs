//! Receivers that are bad: one answers a byte a second, one never, one without end.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// What a bad receiver does with a request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Manner {
    /// Answers a byte a second.
    Drips,
    /// Never answers.
    Hangs,
    /// Answers, and does not stop.
    Endless,
}

impl Manner {
    pub(crate) const ALL: [Manner; 3] = [Manner::Drips, Manner::Hangs, Manner::Endless];
}

const DRIP_EVERY: Duration = Duration::from_secs(1);
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 1000000000000\r\n\r\n";
/// What the endless one writes at a time.
const BLOCK: [u8; 16 * 1024] = [b'x'; 16 * 1024];

/// Connections that wait to be accepted.
const WAITING_MAX: u32 = 1_024;
/// What the kernel takes from a receiver before it is read. It stands for one on another machine, whose megabytes would not be copied by this
/// machine's processors.
const UNREAD_BYTES: u32 = 4 * 1024;

/// Listens on a port of its own until the process ends, on a thread of its own.
pub(crate) fn start(manner: Manner) -> anyhow::Result<SocketAddr> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let listener = {
        let _entered = runtime.enter();
        listen()?
    };
    let address = listener.local_addr()?;
    std::thread::Builder::new()
        .name("bad".into())
        .spawn(move || runtime.block_on(serve(listener, manner)))?;
    Ok(address)
}

fn listen() -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_send_buffer_size(UNREAD_BYTES)?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    socket.listen(WAITING_MAX)
}

async fn serve(listener: TcpListener, manner: Manner) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        // A connection that breaks is what a bad receiver expects.
        tokio::spawn(async move { answer(stream, manner).await });
    }
}

/// One request is enough: no answer of these ever ends.
async fn answer(mut stream: TcpStream, manner: Manner) -> io::Result<()> {
    let mut request = [0; 4096];
    if stream.read(&mut request).await? == 0 {
        return Ok(());
    }
    match manner {
        Manner::Drips => {
            for byte in ANSWER.iter().chain(std::iter::repeat(&b'x')) {
                stream.write_all(&[*byte]).await?;
                tokio::time::sleep(DRIP_EVERY).await;
            }
            Ok(())
        }
        Manner::Hangs => {
            // Until the other side has had enough.
            while stream.read(&mut request).await? > 0 {}
            Ok(())
        }
        Manner::Endless => {
            stream.write_all(ANSWER).await?;
            loop {
                stream.write_all(&BLOCK).await?;
            }
        }
    }
}
