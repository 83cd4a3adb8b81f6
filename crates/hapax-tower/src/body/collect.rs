//! Reading an answer's body, as far as it is kept.

use std::collections::VecDeque;
use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use http_body::Body;
use http_body_util::BodyExt;

/// What there is of a body.
pub(crate) enum Collected<B> {
    /// All of it.
    Whole(Bytes, Option<HeaderMap>),
    /// More than is kept: what was read, and the rest.
    TooLarge(VecDeque<Bytes>, Pin<Box<B>>),
}

/// Reads a body, and stops when it is longer than `bytes_max`.
pub(crate) async fn collect<B: Body<Data = Bytes>>(
    body: B,
    bytes_max: u64,
) -> Result<Collected<B>, B::Error> {
    let mut body = Box::pin(body);
    let (mut parts, mut bytes, mut trailers) = (VecDeque::new(), 0u64, None);
    if body.size_hint().lower() > bytes_max {
        return Ok(Collected::TooLarge(parts, body));
    }
    while let Some(frame) = body.frame().await.transpose()? {
        match frame.into_data() {
            Ok(part) => {
                bytes += part.len() as u64;
                parts.push_back(part);
            }
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
        if bytes > bytes_max {
            return Ok(Collected::TooLarge(parts, body));
        }
    }
    Ok(Collected::Whole(joined(parts, bytes), trailers))
}

/// One piece of all parts; a single part is not copied.
fn joined(mut parts: VecDeque<Bytes>, bytes: u64) -> Bytes {
    if parts.len() <= 1 {
        return parts.pop_front().unwrap_or_default();
    }
    let mut whole = BytesMut::with_capacity(usize::try_from(bytes).unwrap_or(0));
    parts.iter().for_each(|part| whole.extend_from_slice(part));
    whole.freeze()
}
