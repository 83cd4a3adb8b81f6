//! What a transaction, or a session that is ours alone, tells the server first: its limits, and how to plan.

/// Every transaction says what it needs, since a pooler may hand it any session. The limits let locks go when a node stops in
/// the middle, for whatever reason. All that our transactions do is look up a few rows by their keys: read as a whole, a table
/// is at best as fast while it is small, and slow when the planner's idea of its size is an old one.
macro_rules! settings {
    ($set:literal, $plans:literal, $statement:literal) => {
        concat!(
            $set,
            " lock_timeout = '5s'; ",
            $set,
            " statement_timeout = ",
            $statement,
            "; ",
            $set,
            " idle_in_transaction_session_timeout = '10s'; ",
            $set,
            " enable_seqscan = off; ",
            $set,
            " enable_bitmapscan = off; ",
            $set,
            " enable_hashjoin = off; ",
            $set,
            " enable_mergejoin = off; ",
            $set,
            " max_parallel_workers_per_gather = 0; ",
            $set,
            " jit = off; ",
            $set,
            " plan_cache_mode = ",
            $plans
        )
    };
}
macro_rules! begin {
    ($plans:literal) => {
        concat!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; ",
            settings!("SET LOCAL", $plans, "'10s'")
        )
    };
}
/// A kept statement is planned for every use: a plan from when a table was empty might walk all of it once it is full.
pub(super) const BEGIN: &str = begin!("force_custom_plan");
/// A kept statement is planned once. For those that only insert, and those that look up rows by whole keys from a list of which the
/// planner knows nothing: there is but one way to do that.
pub(super) const BEGIN_PLANNED: &str = begin!("force_generic_plan");
/// The same for a whole session that is ours alone, so that a statement can be its own transaction. Should somebody be in between all the
/// same, it is only slower until that shows. Half as long as a commit is waited for: a group may wait behind another on its way.
pub(super) const SESSION_PLANNED: &str = settings!("SET", "force_generic_plan", "'5s'");
/// From here on statements of an open transaction are planned for every use.
pub(super) const PLAN_ANEW: &str = "SET LOCAL plan_cache_mode = force_custom_plan";
/// The same for reading: what was committed when its first statement began, and nothing that came later.
pub(super) const BEGIN_PICTURE: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;
    SET LOCAL statement_timeout = '10s';
    SET LOCAL idle_in_transaction_session_timeout = '10s'";
