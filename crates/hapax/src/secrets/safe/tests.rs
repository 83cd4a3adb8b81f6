use hapax_store::Catalog;
use hapax_store::model::ModelStore;

use super::*;

fn store() -> ModelStore {
    ModelStore::new(clock::steady())
}

fn keys(bytes: &[u8]) -> VaultKeys {
    use base64::Engine;
    let line = |byte: &u8| base64::engine::general_purpose::STANDARD.encode([*byte; 32]);
    let lines: Vec<String> = bytes.iter().map(line).collect();
    VaultKeys::parse(&lines.join("\n")).expect("keys")
}

async fn safe(store: &ModelStore, bytes: &[u8]) -> Result<Safe, Unusable> {
    let safe = Safe::default();
    safe.set(&keys(bytes), store).await?;
    Ok(safe)
}

async fn keep(safe: &Safe, store: &dyn Store, place: &str, plain: &[u8]) {
    let secret = SealedSecret {
        place: place.to_owned(),
        sealed: safe.seal(place, plain).expect("a key"),
        at: clock::now(),
    };
    store.hold_secret(secret).await.expect("kept");
}

#[tokio::test]
async fn a_store_is_opened_with_its_own_keys_only() {
    let store = store();
    let first = safe(&store, &[1]).await.expect("a new store takes any");
    keep(&first, &store, "a", b"hush").await;
    for other in [&[2][..], &[2, 3]] {
        assert!(matches!(safe(&store, other).await, Err(Unusable::Wrong)));
    }
    let again = safe(&store, &[2, 1])
        .await
        .expect("one of its keys is enough");
    let kept = store.secrets("a", None).await.expect("read");
    assert_eq!(again.unseal(&kept[0]).expect("it opens"), b"hush");
    let moved = SealedSecret {
        place: "b".to_owned(),
        ..kept[0].clone()
    };
    assert!(again.unseal(&moved).is_err());
}

#[tokio::test]
async fn what_an_older_key_sealed_is_sealed_anew_until_the_old_key_can_go() {
    let store = store();
    let first = safe(&store, &[1]).await.expect("keys");
    for n in 0..500 {
        keep(&first, &store, &format!("p/{n:03}"), b"hush").await;
    }
    let both = safe(&store, &[2, 1]).await.expect("keys");
    let census = |total, older| Census { total, older };
    assert_eq!(both.census(&store).await.ok(), Some(census(501, 501)));
    assert_eq!(both.rekey(&store).await.expect("sealed anew"), 501);
    assert_eq!(both.census(&store).await.ok(), Some(census(501, 0)));
    assert_eq!(both.rekey(&store).await.expect("nothing to do"), 0);
    let new = safe(&store, &[2]).await.expect("the old key can go");
    let kept = store.secrets("p/", None).await.expect("read");
    assert_eq!(new.unseal(&kept[7]).expect("it opens"), b"hush");
    assert!(matches!(safe(&store, &[1]).await, Err(Unusable::Wrong)));
}

#[tokio::test]
async fn without_a_key_nothing_is_sealed() {
    let none = Safe::default();
    assert!(matches!(none.seal("a", b"x"), Err(Unusable::None)));
}
