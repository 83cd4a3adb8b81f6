//! Which nodes are there, and which of them looks after the lanes of which shard.
//!
//! Every beat locks all rows of `hapax.shard` in their order, so that nodes share them out one after the other: of two that
//! race for a free shard, the second sees what the first was given. There are few rows, and nodes beat every second.

use hapax_ledger::time::{Span, Time};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::SHARDS;
use super::moment::{LeaseClock, Moment, moment};
use super::pool::{Param, Pool, Statement, Taken};
use super::wire::{received, sendable};
use crate::error::StoreError;
use crate::nouns::{Beat, Beaten, Stay, fair_share};

/// One shard and who looks after it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Keeper {
    shard: u16,
    node: Option<String>,
    until: Time,
}

/// What a beat changes.
#[derive(Debug, Default, PartialEq, Eq)]
struct Share {
    held: Vec<u16>,
    let_go: Vec<u16>,
}

/// Says that a node is there, and shares out what is free.
pub(super) async fn beat(
    pool: &Pool,
    beat: &Beat,
    clock: &LeaseClock,
) -> Result<Beaten, StoreError> {
    let taken = pool.take().await?;
    let (keepers, moment) = tokio::try_join!(biased; lock_shards(&taken), moment(&taken, clock))?;
    let others = enter(&taken, beat, moment).await?;
    let nodes = others + 1;
    let share = share_out(&keepers, beat, moment.now, nodes);
    let node = sendable(&beat.node);
    let until = (moment.now + beat.lease).micros();
    let held: Vec<i16> = share.held.iter().map(|shard| *shard as i16).collect();
    let let_go: Vec<i16> = share.let_go.iter().map(|shard| *shard as i16).collect();
    let params: Vec<Param<'_>> = vec![
        (&node, Type::TEXT),
        (&until, Type::INT8),
        (&held, Type::INT2_ARRAY),
        (&let_go, Type::INT2_ARRAY),
    ];
    let sql = "UPDATE hapax.shard SET node = CASE WHEN shard = ANY ($3) THEN $1 END,
             until = CASE WHEN shard = ANY ($3) THEN $2 ELSE 0 END
         WHERE shard = ANY ($3) OR shard = ANY ($4)";
    let last: Statement<'_> = (sql, params);
    taken.commit_behind(&[last]).await?;
    Ok(Beaten {
        now: moment.now,
        nodes,
        held: share.held,
    })
}

/// Begins the transaction and locks who looks after what.
async fn lock_shards(taken: &Taken) -> Result<Vec<Keeper>, StoreError> {
    let rows = taken
        .begin(
            "SELECT shard, node, until FROM hapax.shard ORDER BY shard FOR UPDATE",
            &[],
        )
        .await?;
    let keeper = |row: &Row| Keeper {
        shard: row.get::<_, i16>(0) as u16,
        node: row.get::<_, Option<String>>(1).map(received),
        until: Time::from_micros(row.get(2)),
    };
    Ok(rows.iter().map(keeper).collect())
}

/// Writes the node down and strikes out those that are not heard of any more; says how many others there are.
async fn enter(taken: &Taken, beat: &Beat, moment: Moment) -> Result<u32, StoreError> {
    let node = sendable(&beat.node);
    // One that leaves is struck out by whoever comes next, and not counted until then.
    let stays_for = match beat.stay {
        Stay::Stays => beat.lease,
        Stay::Leaves => Span::ZERO,
    };
    let rows = taken
        .query(
            "WITH gone AS (
                 DELETE FROM hapax.node WHERE until <= $2 AND name <> $1
             ), entered AS (
                 INSERT INTO hapax.node (name, until) VALUES ($1, $3)
                 ON CONFLICT (name) DO UPDATE SET until = excluded.until
             )
             SELECT count(*) FROM hapax.node WHERE until > $2 AND name <> $1",
            &[
                (&node, Type::TEXT),
                (&moment.now.micros(), Type::INT8),
                (&(moment.now + stays_for).micros(), Type::INT8),
            ],
        )
        .await?;
    Ok(rows.first().map_or(0, |row| row.get::<_, i64>(0) as u32))
}

/// What the node holds from now on: what it has, and of what is free as much as is its share.
fn share_out(keepers: &[Keeper], beat: &Beat, now: Time, nodes: u32) -> Share {
    let is_ours = |keeper: &Keeper| keeper.node.as_deref() == Some(&*beat.node);
    let lets_go = |keeper: &Keeper| beat.let_go.contains(&keeper.shard);
    let is_free = |keeper: &Keeper| keeper.node.is_none() || keeper.until <= now;
    let ours = keepers.iter().filter(|keeper| is_ours(keeper));
    let (let_go, mut held): (Vec<&Keeper>, Vec<&Keeper>) = ours.partition(|keeper| lets_go(keeper));
    let share = match beat.stay {
        Stay::Stays => usize::from(fair_share(SHARDS, nodes)),
        Stay::Leaves => 0,
    };
    let room = share.saturating_sub(held.len());
    let free = keepers.iter().filter(|keeper| {
        // What it has just let go is for others.
        is_free(keeper) && !is_ours(keeper) && !lets_go(keeper)
    });
    held.extend(free.take(room));
    let shards = |keepers: Vec<&Keeper>| {
        let mut shards: Vec<u16> = keepers.iter().map(|keeper| keeper.shard).collect();
        shards.sort_unstable();
        shards
    };
    Share {
        held: shards(held),
        let_go: shards(let_go),
    }
}

/// The node is about to stop: what it holds is free at once.
pub(super) async fn leave(pool: &Pool, node: &str) -> Result<(), StoreError> {
    let taken = pool.take().await?;
    lock_shards(&taken).await?;
    let node = sendable(node);
    let named = || -> Vec<Param<'_>> { vec![(&node, Type::TEXT)] };
    let free = "UPDATE hapax.shard SET node = NULL, until = 0 WHERE node = $1";
    let gone = "DELETE FROM hapax.node WHERE name = $1";
    taken
        .commit_behind(&[(free, named()), (gone, named())])
        .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keepers(of: impl Fn(u16) -> Option<(&'static str, i64)>) -> Vec<Keeper> {
        let keeper = |shard| {
            let (node, until) = of(shard).map_or((None, 0), |(node, until)| (Some(node), until));
            Keeper {
                shard,
                node: node.map(str::to_owned),
                until: Time::from_secs(until),
            }
        };
        (0..SHARDS).map(keeper).collect()
    }

    fn share(of: &[Keeper], let_go: Vec<u16>, nodes: u32) -> Share {
        let beat = Beat {
            node: "us".into(),
            lease: Span::from_secs(10),
            let_go,
            stay: Stay::Stays,
        };
        share_out(of, &beat, Time::from_secs(100), nodes)
    }

    #[test]
    fn a_node_is_given_what_is_free_up_to_its_share() {
        let all_free = keepers(|_| None);
        assert_eq!(share(&all_free, vec![], 1).held.len(), 64);
        assert_eq!(share(&all_free, vec![], 3).held.len(), 22);
        let theirs = keepers(|shard| Some(("them", 101 + i64::from(shard))));
        assert!(share(&theirs, vec![], 2).held.is_empty());
        let expired = keepers(|shard| Some(("them", 98 + i64::from(shard))));
        assert_eq!(
            share(&expired, vec![], 2).held,
            [0, 1, 2],
            "until then and no longer"
        );
    }

    #[test]
    fn a_node_over_its_share_keeps_what_it_has_until_it_lets_go() {
        let ours = keepers(|_| Some(("us", 101)));
        assert_eq!(share(&ours, vec![], 2).held.len(), 64);
        let after = share(&ours, vec![63, 7], 2);
        assert_eq!((after.held.len(), after.let_go), (62, vec![7, 63]));
        let late = keepers(|shard| (shard < 5).then_some(("us", 1)));
        let after = share(&late, vec![4, 9], 64);
        assert_eq!((after.held, after.let_go), (vec![0, 1, 2, 3], vec![4]));
    }

    #[test]
    fn what_a_node_lets_go_is_not_given_back_to_it() {
        let ours = keepers(|shard| (shard < 2).then_some(("us", 101)));
        let after = share(&ours, vec![1], 1);
        assert!(!after.held.contains(&1));
        assert_eq!(after.held.len(), 63);
    }

    #[test]
    fn a_node_that_leaves_keeps_what_it_has_and_is_given_nothing() {
        let ours = keepers(|shard| (shard < 3).then_some(("us", 101)));
        let beat = Beat {
            node: "us".into(),
            lease: Span::from_secs(10),
            let_go: vec![2],
            stay: Stay::Leaves,
        };
        let after = share_out(&ours, &beat, Time::from_secs(100), 2);
        assert_eq!((after.held, after.let_go), (vec![0, 1], vec![2]));
    }
}
