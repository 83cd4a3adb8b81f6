//! What is not offered, and strangers.

use std::collections::BTreeSet;

use svix::api::Svix;
use svix::models::{AppPortalAccessIn, BulkExpungeContentsIn};

use crate::ask::{refused, said};
use crate::scene::{Scene, client};

const NOT_OFFERED: &str = "H0327";

pub async fn check(scene: &Scene, message: &str) {
    let (svix, app) = (&scene.svix, &scene.app);
    svix.health().get().await.expect("well");
    let who = svix.authentication().whoami().await.expect("it is known");
    assert_eq!((who.app_id, who.session_id), (None, None));
    let integrations = svix.integration().list(app.clone(), None).await;
    assert_eq!(refused(501, integrations), NOT_OFFERED);
    let streams = svix.streaming().stream().list(None).await;
    assert_eq!(refused(501, streams), NOT_OFFERED);
    let sources = svix.ingest().source().list(None).await;
    assert_eq!(refused(501, sources), NOT_OFFERED);
    content(svix, app, message).await;
    let mut flags = AppPortalAccessIn::new();
    flags.feature_flags = Some(BTreeSet::from(["beta".to_owned()]));
    let access = svix.authentication();
    let access = access.app_portal_access(app.clone(), flags, None).await;
    assert_eq!(refused(501, access), NOT_OFFERED);
    let stranger = client("hpx_nobody".to_owned());
    let asked = stranger.application().list(None).await;
    assert_eq!(refused(401, asked), "H0301");
    said("health; what is not offered answers 501 with a code, a stranger 401");
}

/// Payloads end one by one or all at once, and answers of consumers are not ended apart.
async fn content(svix: &Svix, app: &str, message: &str) {
    let mut some = BulkExpungeContentsIn::new();
    some.ids = Some(BTreeSet::from([message.to_owned()]));
    let messages = svix.message();
    let expunged = messages.bulk_expunge_content(app.to_owned(), some, None);
    assert_eq!(refused(501, expunged.await), NOT_OFFERED);
    let api = svix.message_attempt();
    let tried = api
        .list_by_msg(app.to_owned(), message.to_owned(), None)
        .await;
    let tried = tried.expect("a page").data.swap_remove(0);
    let expunged = api.expunge_content(app.to_owned(), message.to_owned(), tried.id);
    assert_eq!(refused(501, expunged.await), NOT_OFFERED);
}
