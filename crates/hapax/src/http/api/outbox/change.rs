//! A change of the catalogue: decided on what is known, made if that is still so, and decided again if it is not.

use std::sync::Arc;

use hapax_store::nouns::{App, Endpoint, Entry, Put};
use http::{Response, StatusCode};
use http_body_util::Full;
use serde::Serialize;

use super::halt::{Halt, Outcome};
use crate::http::answer::{self, Answer};
use crate::http::api::Api;
use crate::http::api::posted::{self, Posted};
use crate::outbox::Catalog;

/// A change is decided anew so often while others change the same.
const DECIDED_MAX: u32 = 16;

/// A change that is decided on.
pub(super) struct Change<B> {
    /// What it is from now on.
    pub(super) entry: Entry,
    /// The revision that it was decided on; 0: it is not there yet.
    pub(super) was: u64,
    /// What is said about it, and kept in the audit log: nothing secret.
    pub(super) body: B,
}

/// What a change was decided on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Base {
    Nothing,
    Known,
}

/// What became of it.
pub(super) enum Changed<B> {
    /// It is made.
    Made(B),
    /// An earlier request with the same key made it, or was another.
    Before(hapax_store::nouns::Before),
}

/// Makes a change.
pub(super) async fn make<B: Serialize>(
    api: &Api,
    posted: &Posted,
    action: &'static str,
    decide: impl Fn(&Catalog) -> Result<Change<B>, Halt>,
) -> Result<Changed<B>, Halt> {
    let decided = decided(api, posted, |_| action, decide);
    decided.await.map(|(_, changed)| changed)
}

/// The same for a change that has another name where nothing was there before. Says as well whether it is one of those.
async fn decided<B: Serialize>(
    api: &Api,
    posted: &Posted,
    action: impl Fn(Base) -> &'static str,
    decide: impl Fn(&Catalog) -> Result<Change<B>, Halt>,
) -> Result<(Base, Changed<B>), Halt> {
    let registry = &api.publisher.registry;
    let mut was_taken = false;
    for _ in 0..DECIDED_MAX {
        let change = decide(&*registry.fresh().await?)?;
        let base = match change.was {
            0 => Base::Nothing,
            _ => Base::Known,
        };
        let said = serde_json::to_string(&change.body).unwrap_or_default();
        let by = posted.authority(String::new());
        let put = registry.put(change.entry, change.was, action(base), by, said);
        match put.await? {
            Put::Done { .. } => return Ok((base, Changed::Made(change.body))),
            Put::Repeated(before) => return Ok((base, Changed::Before(before))),
            // What is known is the latest again.
            Put::Moved => {}
            // Perhaps somebody else has just made the very thing, and it is to be changed, or only to be said.
            Put::Taken if base == Base::Nothing && !was_taken => was_taken = true,
            Put::Taken => return Err(answer::UID_TAKEN.into()),
        }
    }
    Err(answer::BUSY.into())
}

/// Makes something or changes what is there, under these two names of what is done, and says what came of it.
pub(super) async fn upsert<B: Serialize>(
    api: &Api,
    posted: &Posted,
    [create, update]: [&'static str; 2],
    decide: impl Fn(&Catalog) -> Result<Change<B>, Halt>,
) -> Outcome {
    let action = |base| match base {
        Base::Nothing => create,
        Base::Known => update,
    };
    let (base, changed) = decided(api, posted, action, decide).await?;
    let status = match base {
        Base::Nothing => StatusCode::CREATED,
        Base::Known => StatusCode::OK,
    };
    Ok(said(changed, status))
}

/// Makes a change, and says what came of it.
pub(super) async fn put<B: Serialize>(
    api: &Api,
    posted: &Posted,
    action: &'static str,
    status: StatusCode,
    decide: impl Fn(&Catalog) -> Result<Change<B>, Halt>,
) -> Outcome {
    let changed = make(api, posted, action, decide).await?;
    Ok(said(changed, status))
}

fn said<B: Serialize>(changed: Changed<B>, status: StatusCode) -> Answer {
    match changed {
        Changed::Made(body) => answer::json(status, &body),
        Changed::Before(before) => posted::before(before, status),
    }
}

/// The same for a change about which there is nothing to say.
pub(super) async fn put_quietly<B: Serialize>(
    api: &Api,
    posted: &Posted,
    action: &'static str,
    decide: impl Fn(&Catalog) -> Result<Change<B>, Halt>,
) -> Outcome {
    Ok(match make(api, posted, action, decide).await? {
        Changed::Made(_) | Changed::Before(hapax_store::nouns::Before::Same(_)) => no_content(),
        Changed::Before(other) => posted::before(other, StatusCode::NO_CONTENT),
    })
}

/// 204.
pub(super) fn no_content() -> Answer {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    answer
}

/// An application by its id or uid, as the catalogue knows it.
pub(super) fn app_of<'a>(catalog: &'a Catalog, name: &str) -> Result<&'a Arc<App>, Halt> {
    catalog.app(name).ok_or_else(|| answer::NOT_FOUND.into())
}

/// An endpoint by the ids or uids of itself and its application.
pub(super) fn endpoint_of<'a>(
    catalog: &'a Catalog,
    app: &str,
    name: &str,
) -> Result<&'a Arc<Endpoint>, Halt> {
    let app = app_of(catalog, app)?;
    let found = catalog.endpoint(app.id, name);
    found.ok_or_else(|| answer::NOT_FOUND.into())
}

/// The same, from what is known now.
pub(super) async fn find_app(api: &Api, name: &str) -> Result<Arc<App>, Halt> {
    let catalog = api.publisher.registry.fresh().await?;
    app_of(&catalog, name).cloned()
}

/// The same, from what is known now.
pub(super) async fn find_endpoint(api: &Api, app: &str, name: &str) -> Result<Arc<Endpoint>, Halt> {
    let catalog = api.publisher.registry.fresh().await?;
    endpoint_of(&catalog, app, name).cloned()
}
