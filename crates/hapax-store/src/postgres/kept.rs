//! Statements that a session keeps, so that the server need not parse them for every group.
//!
//! Only in a session that is ours alone (see [`super::direct`]), and only in pools that run the same few statements over and over. The
//! first time a text is run unnamed, as everywhere, and noted; it is prepared when the session is taken the next time. So
//! preparing never comes between the statements of a transaction, and its failure is nobody's failure: there was nothing yet to be
//! written, and another session takes over.
//!
//! Inside our transactions they are still planned for every use (see `BEGIN` in [`super::begin`]). Only what is a transaction of its
//! own may settle on one plan: in a pool that keeps statements that is the statement that accepts new keys, which reads no
//! stored row, so that its plan cannot go out of date. In the pool of guarded keys the whole session is told once how to plan (see
//! `SESSION_PLANNED` in [`super::begin`]), and its statements look rows up by whole keys.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use tokio_postgres::error::SqlState;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Row, Statement};

use super::pool::Param;
use super::wire::Quiet;

/// Statements that one session keeps at most. There are about thirty texts; each costs the server some hundred kilobytes.
const KEPT_MAX: usize = 64;

/// How the statements of a pool are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statements {
    /// Kept, as far as nobody is in between: the same few texts, over and over.
    Kept,
    /// The same, and planned once: all of them only insert, or look up rows by whole keys.
    Planned,
    /// Sent anew with every use, and so planned for its values: filters of which only some are there.
    Anew,
}

/// The statements of one session.
#[derive(Default)]
pub(super) struct Kept {
    ready: HashMap<&'static str, Statement>,
    /// Run once, and worth preparing.
    noted: Mutex<HashMap<&'static str, Vec<Type>>>,
}

impl Kept {
    /// Prepares what was noted. Not while a transaction is open.
    pub(super) async fn prepare_noted(&mut self, client: &Client) -> Result<(), Error> {
        let noted = self
            .noted
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .drain();
        for (sql, types) in noted {
            let statement = client.prepare_typed(sql, &types).await?;
            self.ready.insert(sql, statement);
        }
        Ok(())
    }

    /// Is the statement of this text prepared?
    pub(super) fn has(&self, sql: &'static str) -> bool {
        self.ready.contains_key(sql)
    }

    /// The prepared statement of this text. If there is none yet, notes that it is wanted.
    fn get(&self, sql: &'static str, params: &[Param<'_>]) -> Option<&Statement> {
        let ready = self.ready.get(sql);
        if ready.is_none() {
            let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
            if self.ready.len() + noted.len() < KEPT_MAX {
                let types = || params.iter().map(|(_, of)| of.clone()).collect();
                noted.entry(sql).or_insert_with(types);
            }
        }
        ready
    }
}

/// Runs a statement: the kept one if there is one. Like the driver's own functions it has sent all before it waits for
/// anything, so that calls made one behind the other are run in this order.
pub(super) async fn run(
    client: &Client,
    kept: Option<&Kept>,
    sql: &'static str,
    params: &[Param<'_>],
) -> Result<Vec<Row>, Error> {
    let Some(statement) = kept.and_then(|kept| kept.get(sql, params)) else {
        return client.query_typed(sql, params).await;
    };
    let values: Vec<Quiet<'_>> = params.iter().map(|(value, _)| Quiet(*value)).collect();
    let values: Vec<_> = values.iter().map(|value| value as _).collect();
    client.query(statement, &values).await
}

/// Does this error say that somebody is in between after all? A kept statement is not there, or the name of a new one is taken.
/// Either way the server did not begin to run it.
pub(super) fn is_not_ours(error: Option<&SqlState>) -> bool {
    matches!(
        error,
        Some(&SqlState::INVALID_SQL_STATEMENT_NAME | &SqlState::DUPLICATE_PSTATEMENT)
    )
}

#[cfg(test)]
mod tests {
    use super::super::pool::{Pool, Taken};
    use super::super::{COMMIT_WAIT, tls};
    use super::*;
    use crate::StoreErrorKind;
    use crate::conformance::database::{Database, with_database};
    use tokio_postgres::Config;

    const SQL: &str = "SELECT $1::int8 + 1";

    /// A pool of one, so that whoever takes gets what was given back.
    fn pool(database: &Database, statements: Statements) -> Pool {
        let mut config: Config = database.url().parse().expect("a valid URL");
        let tls = tls::connector(&mut config, None).expect("TLS is not asked for");
        Pool::new(&config, tls, COMMIT_WAIT, 1, statements)
    }

    async fn run_once(taken: &Taken) -> i64 {
        let rows = taken.query(SQL, &[(&1_i64, Type::INT8)]).await;
        rows.expect("the server answers")[0].get(0)
    }

    /// What the server has kept for this session.
    async fn n_kept(taken: &Taken) -> i64 {
        let sql =
            "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%$1::int8 + 1'";
        taken.query(sql, &[]).await.expect("the server answers")[0].get(0)
    }

    /// A pool whose only session has the statement ready.
    async fn with_kept(database: &Database) -> (Pool, Taken) {
        let pool = pool(database, Statements::Kept);
        let taken = pool.take().await.expect("the server answers");
        run_once(&taken).await;
        assert_eq!(n_kept(&taken).await, 0, "noted");
        taken.give_back();
        let taken = pool.take().await.expect("the server answers");
        assert_eq!(n_kept(&taken).await, 1, "prepared");
        (pool, taken)
    }

    /// Without anybody in between statements are kept, and used.
    #[test]
    fn a_direct_session_keeps_its_statements() {
        with_database(|database| async move {
            let (pool, taken) = with_kept(&database).await;
            assert_eq!(run_once(&taken).await, 2);
            let used = "SELECT generic_plans + custom_plans FROM pg_prepared_statements
                WHERE statement LIKE '%$1::int8 + 1'";
            let rows = taken.query(used, &[]).await.expect("the server answers");
            assert_eq!(rows[0].get::<_, i64>(0), 1);
            taken.give_back();
            let again = pool.take().await.expect("the server answers");
            assert_eq!(n_kept(&again).await, 1, "once is enough");
        });
    }

    /// Values decide over the plan where filters are optional.
    #[test]
    fn a_pool_that_sends_anew_keeps_nothing() {
        with_database(|database| async move {
            let pool = pool(&database, Statements::Anew);
            for _ in 0..3 {
                let taken = pool.take().await.expect("the server answers");
                run_once(&taken).await;
                assert_eq!(n_kept(&taken).await, 0);
                taken.give_back();
            }
        });
    }

    /// A3: a kept statement that is gone proves that nothing was written, and from then on nothing is kept.
    #[test]
    fn statements_that_vanish_are_not_kept_any_more() {
        with_database(|database| async move {
            let (pool, taken) = with_kept(&database).await;
            // As a pooler does that hands the session to the next one.
            let vanish = taken.run_file("DISCARD ALL").await;
            vanish.expect("the server obeys");
            let failed = taken.query_and_commit(SQL, &[(&1_i64, Type::INT8)]).await;
            let kind = failed.expect_err("it is gone").kind();
            assert_eq!(kind, StoreErrorKind::Unavailable);
            for _ in 0..3 {
                let taken = pool.take().await.expect("the server answers");
                assert_eq!(run_once(&taken).await, 2);
                assert_eq!(n_kept(&taken).await, 0);
                taken.give_back();
            }
        });
    }

    /// A name that somebody else has taken is nobody's failure: the next caller gets a session, and nothing is kept.
    #[test]
    fn names_that_are_taken_fail_nobody() {
        with_database(|database| async move {
            let pool = pool(&database, Statements::Kept);
            let taken = pool.take().await.expect("the server answers");
            // The driver counts its names; other tests of this process count on.
            let names: String = (0..100)
                .map(|n| format!("PREPARE s{n} AS SELECT 1;"))
                .collect();
            taken.run_file(&names).await.expect("the server obeys");
            run_once(&taken).await;
            taken.give_back();
            for _ in 0..3 {
                let taken = pool.take().await.expect("the server answers");
                assert_eq!(run_once(&taken).await, 2);
                assert_eq!(n_kept(&taken).await, 0);
                taken.give_back();
            }
        });
    }

    #[test]
    fn only_lost_and_taken_names_say_that_somebody_is_in_between() {
        let table = [
            ("26000", true),
            ("42P05", true),
            ("0A000", false),
            ("40001", false),
            ("57P01", false),
        ];
        for (code, expected) in table {
            assert_eq!(
                is_not_ours(Some(&SqlState::from_code(code))),
                expected,
                "{code}"
            );
        }
        assert!(!is_not_ours(None));
    }
}
