//! Keys that are changed while messages go out.

use svix::models::EndpointSecretRotateIn;

use crate::ask::{not_verified, said, verified};
use crate::scene::Scene;

pub async fn check(scene: &Scene, endpoint: &str) {
    let api = scene.svix.endpoint();
    let names = || (scene.app.clone(), endpoint.to_owned());
    let secret = async || {
        let (app, endpoint) = names();
        api.get_secret(app, endpoint).await.expect("a key").key
    };
    let rotate = async |seconds: u32| {
        let mut asked = EndpointSecretRotateIn::new();
        asked.grace_period_seconds = Some(seconds);
        let (app, endpoint) = names();
        let rotated = api.rotate_secret(app, endpoint, asked, None).await;
        rotated.expect("a new key").key
    };
    let old = secret().await;
    let new = rotate(3_600).await;
    assert_ne!(new, old);
    assert_eq!(secret().await, new);
    let before = scene.sink.at("/a").len();
    scene.publish(scene.message(6)).await;
    let seen = scene.sink.wait("/a", before + 1).await;
    verified(&seen[before], &old);
    verified(&seen[before], &new);
    let last = rotate(0).await;
    scene.publish(scene.message(7)).await;
    let seen = scene.sink.wait("/a", before + 2).await;
    let seen = &seen[before + 1];
    verified(seen, &last);
    verified(seen, &old);
    not_verified(seen, &new);
    said("rotation: old and new verify during the overlap, and not beyond it");
}
