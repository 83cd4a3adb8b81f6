//! Upkeep that nobody asks for: what is deleted by itself.

use hapax::clock;
use hapax::http::serve::open;
use hapax::operate::ids;
use hapax::operate::tokens::PORTAL;
use hapax::operate::upkeep::{PORTAL_TOKENS_KEPT, Upkeep};
use hapax_ledger::id::TokenId;
use hapax_ledger::time::Span;
use hapax_store::nouns::{AuditFilter, Authority, Page, PageFrom, Role, Token};

/// Tokens of the portal go some time after their end; what was decided about them stays in the audit log.
#[tokio::test(flavor = "multi_thread")]
async fn tokens_of_the_portal_go_after_a_while() {
    let folder = tempfile::tempdir().expect("a folder");
    let target = hapax::config::StoreTarget::Sqlite(folder.path().join("hapax.db"));
    let store = open(&target).await.expect("a store");
    let now = clock::now();
    let hour = Span::from_hours(1);
    let ends = [
        ("old", now - PORTAL_TOKENS_KEPT - hour),
        ("lately", now - PORTAL_TOKENS_KEPT + hour),
        ("live", now + hour),
    ];
    for (name, end) in ends {
        let token = Token {
            id: TokenId(ids::fresh(now)),
            name: format!("{PORTAL}app_1 - {name}").into(),
            role: Role::Viewer,
            app: Some("app_1".to_owned()),
            hash: [7; 32],
            created_at: now,
            expires_at: Some(end),
            last_used_at: None,
            revoked_at: None,
        };
        let by = Authority {
            actor: "ada".into(),
            reason: "access".to_owned(),
            at: now,
            request: None,
        };
        let created = store.create_token(token, by, "{}".to_owned()).await;
        created.expect("the store is well");
    }
    let upkeep = Upkeep::new(store.clone());
    assert_eq!(upkeep.forget_tokens().await.expect("well"), 1);
    assert_eq!(upkeep.forget_tokens().await.expect("well"), 0);
    let left = store.tokens().await.expect("the store lists");
    let mut names: Vec<&str> = left.iter().map(|token| &*token.name).collect();
    names.sort_unstable();
    assert_eq!(names, ["portal app_1 - lately", "portal app_1 - live"]);
    let page = Page {
        limit: 10,
        from: PageFrom::Newest,
    };
    let audit = store.audit(AuditFilter::default(), page).await;
    assert_eq!(audit.expect("the store lists").rows.len(), 3);
    store.close().await;
}
