//! Reading the rest of a request that is refused.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::EXPECT;
use http_body::Body;
use http_body_util::BodyExt;
use tokio::time::timeout;

/// More is not read: whoever sends so much of what nobody wants is cut off.
const BYTES_MAX: usize = 64 * 1024 * 1024;
/// Nor for longer.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// Reads what is left of a body, within limits. A client that writes everything before it listens would otherwise never hear why it was
/// refused: a connection that is closed while bytes of it are unread is reset, and the answer with it. One that waits to be told to go on
/// listens already, and is not told.
pub async fn drain<B: Body<Data = Bytes>>(mut body: Pin<&mut B>, headers: &HeaderMap) {
    if headers.contains_key(EXPECT) {
        return;
    }
    let reading = async {
        let mut read = 0;
        while read < BYTES_MAX
            && let Some(Ok(frame)) = body.frame().await
        {
            read += frame.data_ref().map_or(0, Bytes::len);
        }
    };
    // What is not here by then is not waited for.
    let _ = timeout(WAIT_MAX, reading).await;
}
