//! Access for consumers, and what is refused.

use svix::api::Svix;
use svix::models::{AppPortalAccessIn, AppPortalCapability, ApplicationTokenExpireIn, MessageIn};

use crate::{client, problem, refused, said};

/// Tokens of one application, until they end.
pub async fn portal(svix: &Svix, app: &str) {
    let api = svix.authentication();
    let access = AppPortalAccessIn {
        session_id: Some("s1".into()),
        ..AppPortalAccessIn::new()
    };
    let access = api.app_portal_access(app.into(), access, None).await;
    let access = access.expect("a token");
    assert!(access.url.contains(&access.token));
    let consumer = client(access.token);
    let listed = consumer.endpoint().list(app.into(), None).await;
    assert_eq!(listed.expect("a list").data.len(), 1);
    assert_eq!(refused(consumer.application().list(None).await), 403);
    let rival = format!("{app}-inline");
    assert_eq!(refused(consumer.endpoint().list(rival, None).await), 403);
    let message = MessageIn::new("x".into(), serde_json::json!({}));
    let published = consumer.message().create(app.into(), message, None).await;
    assert_eq!(refused(published), 403);
    let looks = AppPortalAccessIn {
        capabilities: Some([AppPortalCapability::ViewBase].into()),
        ..AppPortalAccessIn::new()
    };
    let looks = api.app_portal_access(app.into(), looks, None).await;
    let viewer = client(looks.expect("a token").token);
    let endpoints = viewer.endpoint();
    let secret = endpoints.get_secret(app.into(), "ep-a".into()).await;
    assert_eq!(refused(secret), 403);
    let out = viewer.authentication().logout(None).await;
    out.expect("logged out");
    assert_eq!(refused(viewer.endpoint().list(app.into(), None).await), 401);
    let expire = ApplicationTokenExpireIn {
        session_ids: Some(vec!["s1".into()]),
        ..ApplicationTokenExpireIn::new()
    };
    let expired = api.expire_all(app.into(), expire, None).await;
    expired.expect("they end");
    let listed = consumer.endpoint().list(app.into(), None).await;
    assert_eq!(refused(listed), 401);
    said("portal: a token sees its own application, as its role allows, until it ends");
}

pub async fn rest(svix: &Svix, app: &str) {
    svix.health().get().await.expect("well");
    let not_offered = (501, "H0327".to_owned());
    let integrations = svix.integration().list(app.into(), None).await;
    assert_eq!(problem(integrations), not_offered);
    let streams = svix.streaming().stream().list(None).await;
    assert_eq!(problem(streams), not_offered);
    let flags = AppPortalAccessIn {
        feature_flags: Some(["beta".to_owned()].into()),
        ..AppPortalAccessIn::new()
    };
    let access = svix.authentication();
    let access = access.app_portal_access(app.into(), flags, None).await;
    assert_eq!(problem(access), not_offered);
    let stranger = client("hpx_nobody".into());
    let listed = problem(stranger.application().list(None).await);
    assert_eq!(listed, (401, "H0301".to_owned()));
    svix.application().delete(app.into()).await.expect("gone");
    assert_eq!(refused(svix.application().get(app.into()).await), 404);
    said("health, 501, 401, delete");
}
