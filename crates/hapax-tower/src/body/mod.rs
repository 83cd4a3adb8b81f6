//! Bodies: of requests, held until their key is looked up; of answers, kept or passed on.

mod answer;
mod collect;
mod drain;
mod hold;
mod request;

pub use answer::AnswerBody;
pub(crate) use collect::{Collected, collect};
pub use drain::drain;
pub(crate) use hold::{Held, HoldProblem, Limits, hold};
pub use request::GuardBody;

use bytes::Bytes;
use http_body::Body;

/// Any body that a server or a service may have.
pub(crate) trait ByteBody:
    Body<Data = Bytes, Error: Into<BoxError> + Send> + Send + 'static
{
}

impl<B> ByteBody for B
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError> + Send,
{
}

/// Whatever went wrong with a body or in a service.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;
