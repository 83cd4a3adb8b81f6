//! The store opened here, while no server has it open.

use std::path::Path;
use std::sync::Arc;

use hapax_store::nouns::Migrated;
use hapax_store::sqlite::SqliteStore;
use hapax_store::{Store, StoreError};
use serde_json::{Value, json};

use super::exit::{Exit, Failure};
use super::progress::Bar;
use super::store::unwritable;
use crate::config::{self, Overrides, StoreTarget};
use crate::http::serve;
use crate::operate::upkeep::Upkeep;

/// How often a copy that is being written is looked at.
const LOOK_EVERY: std::time::Duration = std::time::Duration::from_millis(200);

/// The store that is named, or the config's.
fn named(config: Option<&Path>, store: Option<&str>) -> Result<StoreTarget, Failure> {
    match store {
        Some(store) => target(store),
        None => Ok(config::load(config, &Overrides::default())?.config.store),
    }
}

/// Takes note that a database was brought back; says how many effects are ambiguous because of it.
pub(super) fn restored(config: Option<&Path>, store: Option<&str>) -> Result<u64, Failure> {
    match named(config, store)? {
        StoreTarget::Postgres(url) => with_runtime(serve::restored(&url)),
        StoreTarget::Sqlite(_) => {
            let text = "a restored SQLite store is noticed by itself";
            let help = "put the copy where the store was, and start";
            Err(Failure::new(Exit::Failed, "H0414", text, help))
        }
    }
}

pub(super) fn migrate(config: Option<&Path>, store: Option<&str>) -> Result<Value, Failure> {
    let target = named(config, store)?;
    let migrated = match &target {
        StoreTarget::Sqlite(path) => SqliteStore::migrate(path).map_err(|error| failed(&error)),
        StoreTarget::Postgres(url) => with_runtime(serve::migrate(url)),
    };
    let Migrated { from, to } = migrated?;
    Ok(json!({ "from": from, "to": to }))
}

/// `migrated from version 1 to 2`
pub(super) fn sentence(migrated: &Value) -> String {
    let (from, to) = (&migrated["from"], &migrated["to"]);
    match from == to {
        true => format!("nothing to do: the store is at version {to}"),
        false => format!("migrated from version {from} to {to}"),
    }
}

pub(super) fn backup(store: &str, into: &Path) -> Result<(), Failure> {
    let StoreTarget::Sqlite(path) = target(store)? else {
        let text = "backups of PostgreSQL are made with its own tools";
        let help = "use pg_dump, or continuous archiving to get back to any moment";
        return Err(Failure::new(Exit::Failed, "H0414", text, help));
    };
    is_there(&path)?;
    if into.exists() {
        let exists = std::io::Error::from(std::io::ErrorKind::AlreadyExists);
        return Err(unwritable(into, &exists));
    }
    let total = std::fs::metadata(&path).ok().map(|file| file.len());
    let bar = Bar::new("copying");
    let copied = std::thread::scope(|scope| {
        let copying = scope.spawn(|| SqliteStore::copy(&path, into));
        while !copying.is_finished() {
            let written = std::fs::metadata(into).map_or(0, |file| file.len());
            bar.at(written, total);
            std::thread::park_timeout(LOOK_EVERY);
        }
        copying.join()
    });
    bar.end();
    match copied {
        Ok(copied) => copied.map_err(|error| failed(&error)),
        Err(_) => Err(Failure::new(
            Exit::Failed,
            "H0406",
            "the copy was given up",
            "try again",
        )),
    }
}

pub(super) fn prune(store: &str, dry_run: bool) -> Result<Value, Failure> {
    with_store(store, async move |store| {
        let upkeep = Upkeep::new(store);
        let due = upkeep.due().await?;
        let mut sum = due;
        if !dry_run {
            let bar = Bar::new("deleting");
            let total = |of: hapax_store::nouns::Reaped| {
                u64::from(of.payloads) + u64::from(of.ledgers) + u64::from(of.identities)
            };
            sum = hapax_store::nouns::Reaped::default();
            loop {
                let step = upkeep.prune().await.inspect_err(|_| bar.end())?;
                sum.payloads += step.payloads;
                sum.ledgers += step.ledgers;
                sum.identities += step.identities;
                bar.at(total(sum), Some(total(due)));
                if !step.more {
                    break;
                }
            }
            bar.end();
        }
        Ok(json!({
            "payloads": sum.payloads, "ledgers": sum.ledgers, "identities": sum.identities, "more": false,
        }))
    })
}

pub(super) fn stats(store: &str) -> Result<Value, Failure> {
    with_store(store, async |store| {
        let (stats, effects) = (store.stats().await?, store.effect_counts().await?);
        Ok(json!({
            "events": stats.events,
            "payloads": stats.payloads,
            "bytes": stats.bytes,
            "freeBytes": store.disk().map(|disk| disk.free_bytes),
            "keysTwice": stats.keys_twice,
            "effectsPending": effects.pending,
            "effectsUncertain": effects.uncertain,
            "effectsDead": effects.dead,
        }))
    })
}

fn target(store: &str) -> Result<StoreTarget, Failure> {
    config::store_target(store).ok_or_else(|| {
        // Not quoted: a database URL may hold a password, however it is misspelt.
        let text = "--store does not name a store";
        let help = "write sqlite:FILE, such as sqlite:hapax.db, or postgres://USER@HOST/DATABASE";
        Failure::new(Exit::Usage, "H0408", text, help)
    })
}

/// Looking must not make a store.
fn is_there(path: &Path) -> Result<(), Failure> {
    match path.exists() {
        true => Ok(()),
        false => {
            let text = format!("there is no store at {}", path.display());
            let help = "name the file that the server's `store` names";
            Err(Failure::new(Exit::NotFound, "H0406", text, help))
        }
    }
}

fn with_store(
    store: &str,
    work: impl AsyncFnOnce(Arc<dyn Store>) -> anyhow::Result<Value>,
) -> Result<Value, Failure> {
    let target = target(store)?;
    if let StoreTarget::Sqlite(path) = &target {
        is_there(path)?;
    }
    with_runtime(async {
        let store = serve::open(&target).await?;
        let done = work(store.clone()).await;
        store.close().await;
        done
    })
}

fn with_runtime<T>(work: impl Future<Output = anyhow::Result<T>>) -> Result<T, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| said(&error.to_string()))?;
    runtime
        .block_on(work)
        .map_err(|error| said(&format!("{error:#}")))
}

fn failed(error: &StoreError) -> Failure {
    use std::error::Error;
    let cause = error
        .source()
        .map_or_else(String::new, |cause| format!(": {cause}"));
    said(&format!("{error}{cause}"))
}

fn said(text: &str) -> Failure {
    let help = match text.contains("in use by another process") {
        true => "leave out --store to ask the running server, or stop it first",
        false => "look at the store that is named, and at its rights",
    };
    Failure::new(
        Exit::Failed,
        "H0415",
        format!("the store cannot be opened: {text}"),
        help,
    )
}
