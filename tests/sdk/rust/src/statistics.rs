//! Figures about applications.

use std::collections::BTreeSet;

use chrono::TimeDelta;
use svix::models::{AppUsageStatsIn, BackgroundTaskType};

use crate::ask::{finished, refused, said};
use crate::clock;
use crate::scene::Scene;

pub async fn check(scene: &Scene) {
    let (svix, app) = (&scene.svix, &scene.app);
    let asked = |names: &[&str]| {
        let (now, day) = (clock::now(), TimeDelta::days(1));
        let mut asked = AppUsageStatsIn::new(now - day, now + day);
        asked.app_ids = Some(names.iter().map(|name| (*name).to_owned()).collect());
        asked
    };
    let api = svix.statistics();
    let task = api
        .aggregate_app_stats(asked(&[app.as_str(), "nobody"]), None)
        .await;
    let task = task.expect("a task");
    let nobody = BTreeSet::from(["nobody".to_owned()]);
    assert_eq!(task.unresolved_app_ids, nobody);
    assert_eq!(task.task, BackgroundTaskType::ApplicationStats);
    let told = finished(svix, &task.id).await.data;
    let stats = told["appStats"].as_array().expect("a list");
    assert_eq!(stats.len(), 1);
    assert_eq!(stats[0]["appUid"], app.as_str());
    assert!(
        stats[0]["messageDestinations"].as_u64() > Some(3),
        "{stats:?}"
    );
    refused(422, api.aggregate_app_stats(asked(&["nobody"]), None).await);
    let task = api.aggregate_event_types().await.expect("a task");
    assert_eq!(task.task, BackgroundTaskType::EventTypeAggregate);
    let told = finished(svix, &task.id).await.data;
    let id = svix.application().get(app.clone()).await.expect("there").id;
    let all = told["event_types"].as_array().expect("a list");
    let own = all.iter().find(|one| one["appId"] == id.as_str());
    assert_eq!(own.expect("it is among them")["hasCatchAllEndpoint"], true);
    said("statistics: attempts and subscriptions by application, unresolved ids");
}
