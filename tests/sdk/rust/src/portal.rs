//! Access for consumers.

use svix::models::{AppPortalAccessIn, ApplicationTokenExpireIn};

use crate::ask::{refused, said};
use crate::endpoint::UID;
use crate::scene::{Scene, client};

pub async fn check(scene: &Scene) {
    let (api, app) = (scene.svix.authentication(), &scene.app);
    let mut asked = AppPortalAccessIn::new();
    asked.session_id = Some("s1".to_owned());
    let access = api.app_portal_access(app.clone(), asked, None).await;
    let access = access.expect("a token");
    assert!(access.url.contains(&access.token));
    let consumer = client(access.token);
    let own = consumer.endpoint().list(app.clone(), None).await;
    assert!(!own.expect("a page").data.is_empty());
    refused(403, consumer.application().list(None).await);
    let other = format!("rust-inline-{}", scene.lot);
    refused(403, consumer.endpoint().list(other, None).await);
    let message = scene.message(11);
    refused(
        403,
        consumer.message().create(app.clone(), message, None).await,
    );
    viewer(scene).await;
    let mut expire = ApplicationTokenExpireIn::new();
    expire.session_ids = Some(vec!["s1".to_owned()]);
    let expired = api.expire_all(app.clone(), expire, None).await;
    expired.expect("they count no more");
    refused(401, consumer.endpoint().list(app.clone(), None).await);
    said("portal: a token sees its own application, as its role allows, until it ends");
}

/// One that may only look.
#[expect(deprecated, reason = "users of the SDK still ask for it so")]
async fn viewer(scene: &Scene) {
    let (api, app) = (scene.svix.authentication(), &scene.app);
    let mut asked = AppPortalAccessIn::new();
    asked.read_only = Some(true);
    let access = api.app_portal_access(app.clone(), asked, None).await;
    let viewer = client(access.expect("a token").token);
    let (endpoints, authentication) = (viewer.endpoint(), viewer.authentication());
    let secret = endpoints.get_secret(app.clone(), UID.to_owned()).await;
    refused(403, secret);
    let who = authentication.whoami().await.expect("it is known");
    let id = scene.svix.application().get(app.clone()).await;
    assert_eq!(who.app_id, Some(id.expect("there").id));
    authentication
        .logout(None)
        .await
        .expect("it counts no more");
    refused(401, endpoints.list(app.clone(), None).await);
}
