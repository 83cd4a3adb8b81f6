//! One connection: a request, its answer, the next request.

use std::cell::RefCell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::requests::Requests;
use super::response::{self, Answer};
use super::tally::Tally;
use crate::clock::Stopwatch;

/// The longest response that is read; longer ones are counted as broken.
const RESPONSE_BYTES_MAX: usize = 64 * 1024;

/// Pause after a failed connect, so that a server that is down is not asked in a tight loop.
const RECONNECT_PAUSE: Duration = Duration::from_millis(20);

/// Sends requests until the thread's runtime ends; a broken connection is counted and opened again.
pub(super) async fn run(
    address: SocketAddr,
    mut requests: Box<dyn Requests>,
    tally: Rc<RefCell<Tally>>,
) {
    let mut buffer = vec![0; RESPONSE_BYTES_MAX];
    loop {
        if let Err(reason) = until_closed(address, requests.as_mut(), &tally, &mut buffer).await {
            tally.borrow_mut().broken(reason);
            tokio::time::sleep(RECONNECT_PAUSE).await;
        }
    }
}

/// Requests on one connection, until the server says that it closes it.
async fn until_closed(
    address: SocketAddr,
    requests: &mut dyn Requests,
    tally: &RefCell<Tally>,
    buffer: &mut [u8],
) -> Result<(), String> {
    let mut stream = connect(address).await.map_err(|error| words(&error))?;
    loop {
        let request = requests.next();
        let watch = Stopwatch::start();
        let answer = exchange(&mut stream, request, buffer).await?;
        tally.borrow_mut().answer(answer.status, watch.elapsed());
        if answer.close {
            return Ok(());
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the load generator talks to loopback servers only; the order is checked"
)]
async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn exchange(
    stream: &mut TcpStream,
    request: &[u8],
    buffer: &mut [u8],
) -> Result<Answer, String> {
    let sent = stream.write_all(request).await;
    sent.map_err(|error| words(&error))?;
    let mut filled = 0;
    loop {
        if filled == buffer.len() {
            return Err(format!("response longer than {RESPONSE_BYTES_MAX} bytes"));
        }
        let read = stream.read(&mut buffer[filled..]).await;
        match read.map_err(|error| words(&error))? {
            0 => return Err("connection closed before the answer".to_owned()),
            read => filled += read,
        }
        match response::parse(&buffer[..filled]) {
            Ok(Some(answer)) => return Ok(answer),
            Ok(None) => {}
            Err(malformed) => return Err(malformed.to_string()),
        }
    }
}

/// The kind only: messages with numbers in them would each be a kind of their own.
fn words(error: &io::Error) -> String {
    error.kind().to_string()
}
