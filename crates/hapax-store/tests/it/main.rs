//! Every store through the same suite, and each through what only it can get wrong.

mod atomic;
mod database;
mod history;
mod model;
mod postgres;
mod postgres_effects;
mod postgres_faults;
mod postgres_keys;
mod postgres_nodes;
mod postgres_operate;
mod postgres_order;
mod postgres_outbox;
mod postgres_pooler;
mod postgres_restored;
mod postgres_schema;
mod sqlite;
mod sqlite_keys;
mod sqlite_locks;
mod sqlite_outbox;
mod sqlite_reopen;

/// Random sequences per store; `PROPTEST_CASES` asks for more.
fn differential_cases(usual: u32) -> u32 {
    let asked = std::env::var("PROPTEST_CASES").ok();
    asked.and_then(|cases| cases.parse().ok()).unwrap_or(usual)
}

/// A runtime with real parallelism, since races are among what is tested.
fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime starts")
}
