//! An answer that ends a request early.

use axum::response::{IntoResponse, Response};
use hapax_store::StoreError;

use crate::http::answer::{Answer, Problem, problem};
use crate::http::api::body::Refused;
use crate::http::api::event::unavailable;
use crate::http::api::list::{self, Invalid};

/// What is said instead of what was asked for.
#[derive(Debug)]
pub(super) struct Halt(Box<Answer>);

/// What a request comes to.
pub(super) type Outcome = Result<Answer, Halt>;

impl IntoResponse for Halt {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

impl Halt {
    /// What is said.
    pub(super) fn answer(self) -> Answer {
        *self.0
    }
}

impl From<Box<Answer>> for Halt {
    fn from(answer: Box<Answer>) -> Halt {
        Halt(answer)
    }
}

impl From<Answer> for Halt {
    fn from(answer: Answer) -> Halt {
        Halt(Box::new(answer))
    }
}

impl From<Problem> for Halt {
    fn from(what: Problem) -> Halt {
        problem(what).into()
    }
}

impl From<StoreError> for Halt {
    fn from(error: StoreError) -> Halt {
        unavailable(&error).into()
    }
}

impl From<Refused> for Halt {
    fn from(refused: Refused) -> Halt {
        refused.answer().into()
    }
}

impl From<Invalid> for Halt {
    fn from(invalid: Invalid) -> Halt {
        list::refuse(invalid).into()
    }
}
