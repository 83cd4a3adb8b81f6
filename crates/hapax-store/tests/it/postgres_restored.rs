//! A database that was brought back to an earlier time.

use hapax_ledger::effect::{EffectState, Repeat};
use hapax_ledger::id::EventId;
use hapax_store::conformance::sample::{Dial, Subject, detail};
use hapax_store::conformance::worker::{SETTLED, START, accept_effects, claim, done, planned};
use hapax_store::nouns::{Effect, NewEffect};
use hapax_store::postgres::{Options, PostgresStore};

use crate::database::with_database;
use crate::postgres::open_with;

/// A store in which three effects are unfinished, one of them under way; gives what was claimed.
async fn interrupted(store: &Subject) -> (EventId, Effect) {
    let apart = |name: &str, repeat| NewEffect {
        lane: name.into(),
        ..planned(name, "1", repeat)
    };
    let effects = vec![
        planned("pay", "1", Repeat::Once),
        apart("crm", Repeat::Keyed),
        apart("mail", Repeat::Converges),
    ];
    let receipt = accept_effects(store, "k", effects).await;
    let claimed = claim(store).await;
    let under_way = claimed.first().expect("something is due").clone();
    done(store, &under_way, START).await;
    (receipt.event, under_way)
}

/// C1: fences outrun those that were given since, and what was unfinished may have been sent.
async fn trusts_nothing_unfinished(store: &Subject, event: EventId, held: &Effect) {
    let effects = detail(store, event).await.effects;
    let state = |name: &str| {
        let effect = effects.iter().find(|effect| &*effect.name == name);
        let record = effect.expect("it is planned").record;
        (record.state, record.ambiguous)
    };
    assert_eq!(state("pay").0, EffectState::Uncertain);
    assert_eq!(state("crm"), (EffectState::Pending, true));
    assert_eq!(state("mail"), (EffectState::Pending, true));
    let claimed = claim(store).await;
    let claimed = claimed.first().expect("two are due");
    assert!(claimed.record.fence > held.record.fence);
    assert!(claimed.record.fence.as_u64() >> 20 > 1 << 15, "far ahead");
    done(store, claimed, START).await;
    done(store, claimed, SETTLED).await;
}

#[test]
fn a_dump_is_noticed_when_it_is_opened() {
    with_database(|database| async move {
        let dial = Dial::default();
        let store = open_with(&database, &dial).await;
        let (event, held) = interrupted(&store).await;
        store.close().await;
        // In another database the table has another number.
        let client = database.client().await;
        let elsewhere = "UPDATE hapax.store SET place = 1";
        client.batch_execute(elsewhere).await.expect("moved");
        let store = open_with(&database, &dial).await;
        trusts_nothing_unfinished(&store, event, &held).await;
        store.close().await;
        // Once: what is done since stays done, whoever opens it next.
        let store = open_with(&database, &dial).await;
        let effects = detail(&store, event).await.effects;
        let done = effects
            .iter()
            .filter(|effect| effect.record.state == EffectState::Done);
        assert_eq!(done.count(), 1);
        store.close().await;
    });
}

#[test]
fn what_cannot_be_noticed_can_be_said() {
    with_database(|database| async move {
        let dial = Dial::default();
        let store = open_with(&database, &dial).await;
        let (event, held) = interrupted(&store).await;
        store.close().await;
        let options = Options {
            clock: Some(dial.clock()),
            ..database.options()
        };
        let restored = PostgresStore::restored(options).await.expect("it is said");
        assert_eq!(restored, 3);
        let store = open_with(&database, &dial).await;
        trusts_nothing_unfinished(&store, event, &held).await;
        store.close().await;
    });
}
