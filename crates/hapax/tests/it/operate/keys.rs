//! Duplicate forensics: what the ledger tells about a source's keys.

use serde_json::{Value, json};

use super::cli::ask;
use crate::effects::scene::{Scene, fact, on_each_store};

#[test]
fn a_body_that_varies_is_named_with_the_field_that_does() {
    on_each_store(|store| {
        let scene = Scene::new(store, &[]);
        let object = |amount: u32| json!({"id": "in_1", "amount": amount});
        let id = scene.send("evt_1", "invoice.paid", &object(1));
        scene.send("evt_2", "invoice.paid", &json!({"id": "in_2"}));
        let path = "/api/v1/source/billing/audit";
        let healthy = scene.server.get(path).json();
        assert_eq!(healthy["lookedAt"], 2);
        assert_eq!(healthy["findings"], json!([]), "{healthy:#}");
        let shown = ask(&scene, &["keys", "audit"]).expect_exit(0);
        assert_eq!(
            shown.stdout.trim_end(),
            "billing: 2 events looked at; nothing to report"
        );

        let other = fact("evt_1", "invoice.paid", &object(2));
        assert_eq!(scene.send_bytes(&other), id);
        let report = scene.server.get(path).json();
        let findings = report["findings"].as_array().expect("findings");
        let [finding] = &findings[..] else {
            panic!("{report:#}");
        };
        assert_eq!(
            (&finding["kind"], &finding["count"]),
            (&json!("varying_body"), &json!(1))
        );
        let advice = finding["advice"].as_str().expect("advice");
        assert!(
            advice.contains("volatile = [\"data.object.amount\"]"),
            "{advice}"
        );
        assert_eq!(finding["examples"][0]["eventIds"], json!([id]));

        let audit = ["keys", "audit", "--source", "billing", "--since", "1h"];
        let shown = ask(&scene, &audit).expect_exit(0);
        let text = &shown.stdout;
        assert!(
            text.contains("billing: 2 events looked at; look at this"),
            "{text}"
        );
        assert!(text.contains("1 x varying_body"), "{text}");
        let line = format!("- {id}: key evt_1: data.object.amount differ");
        assert!(text.contains(&line), "{text}");
        let written = ask(&scene, &[&audit[..], &["--json"]].concat()).expect_exit(0);
        assert_eq!(written.json(), Value::from(vec![report]));
        ask(&scene, &["keys", "audit", "--source", "nobody"]).expect_exit(4);
    });
}
