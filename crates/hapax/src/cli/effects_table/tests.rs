//! Effects as somebody sees them in terminals of several widths.

use super::*;

fn effects() -> Vec<Value> {
    vec![
        json!({"id": "eff_01m7gsnv4be008000000000001", "eventId": "evt_01m7gsnv4be008000000000001", "name": "activate-subscription",
            "key": "cus_Q2bV9xkLm3:in_1PqXyZ2eZvKYlo2C", "repeat": "keyed", "state": "pending", "gate": "open", "attemptCount": 2,
            "nextAttemptAt": "2026-11-15T23:51:29.25Z", "lastOutcome": "answered 503", "lane": "activate-subscription", "generation": 1}),
        json!({"id": "eff_01m7gsnv4be008000000000002", "eventId": "evt_01m7gsnv4be008000000000001", "name": "send-receipt",
            "key": "in_1PqXyZ2eZvKYlo2C", "repeat": "once", "state": "pending", "gate": "waiting", "attemptCount": 0,
            "nextAttemptAt": "2026-11-15T23:46:29.25Z", "lastOutcome": null, "lane": "send-receipt", "generation": 1}),
        json!({"id": "eff_01m7gsnv4be008000000000003", "eventId": "evt_01m7gsnv4be008000000000001", "name": "count",
            "key": "in_1PqXyZ2eZvKYlo2C", "repeat": "converges", "state": "skipped", "skipReason": "stale", "attemptCount": 0,
            "lastOutcome": null, "lane": "count", "generation": 1}),
    ]
}

#[test]
fn a_list_fits_the_terminal() {
    let rows: Vec<Value> = effects().iter().map(row).collect();
    for (width, want) in [
        (
            120,
            "\
ID                              NAME                   KEY             CLASS      STATE    ATTEMPTS  NEXT OR LAST
eff_01m7gsnv4be008000000000001  activate-subscription  cus_Q2bV9xkLm…  keyed      pending  2         2026-11-15 23:51:29
eff_01m7gsnv4be008000000000002  send-receipt           in_1PqXyZ2eZv…  once       pending  0         waits for others
eff_01m7gsnv4be008000000000003  count                  in_1PqXyZ2eZv…  converges  skipped  0         stale",
        ),
        (
            80,
            "\
ID                              NAME                STATE    NEXT OR LAST
eff_01m7gsnv4be008000000000001  activate-subscrip…  pending  2026-11-15 23:51:29
eff_01m7gsnv4be008000000000002  send-receipt        pending  waits for others
eff_01m7gsnv4be008000000000003  count               skipped  stale",
        ),
    ] {
        let shown = table_of(&LIST, &rows).render(Some(width), &STEPS);
        assert_eq!(shown, want, "{width}:\n{shown}");
    }
}

#[test]
fn attempts_say_how_they_went() {
    let table = [
        (
            "error",
            json!({"error": "no answer within 10 s", "response": "x"}),
            "no answer within 10 s",
        ),
        (
            "answer",
            json!({"response": "\n  database is down \nsecond"}),
            "database is down",
        ),
        ("nothing", json!({}), ""),
    ];
    for (what, attempt, want) in table {
        assert_eq!(said(&attempt), want, "{what}");
    }
    let length = |to: &str| took(&json!("2026-11-15T23:46:29.25Z"), &json!(to));
    assert_eq!(length("2026-11-15T23:46:29.288Z"), "38 ms");
    assert_eq!(length("2026-11-15T23:46:31.65Z"), "2.4 s");
    assert_eq!(length("2026-11-15T23:48:39.3Z"), "130 s");
    assert_eq!(length("2026-11-15T23:46:29Z"), "0 ms");
    let late = attempt(
        &json!({"generation": 2, "lateOutcome": "answered 200", "lateAt": "2026-11-15T23:46:40Z"}),
    );
    assert_eq!(late["late"], "answered 200 at 2026-11-15 23:46:40");
    assert_eq!(late["forced"], 2);
}

#[test]
fn an_effect_s_facts_in_the_order_of_the_questions() {
    let mut effect = effects().remove(0);
    effect["attempts"] = json!([{"error": "first"}, {"response": "overloaded"}]);
    let facts = facts_of(&effect).into_iter();
    let facts = facts.filter(|(_, fact)| !fact.is_empty());
    let lines: Vec<String> = facts.map(|(name, fact)| format!("{name}={fact}")).collect();
    assert_eq!(
        lines.join("\n"),
        "\
id=eff_01m7gsnv4be008000000000001
name=activate-subscription
key=cus_Q2bV9xkLm3:in_1PqXyZ2eZvKYlo2C
idempotency key=activate-subscription:cus_Q2bV9xkLm3:in_1PqXyZ2eZvKYlo2C
class=keyed
state=pending
event=evt_01m7gsnv4be008000000000001
attempts=2
next attempt=2026-11-15 23:51:29
last outcome=answered 503
last error=overloaded"
    );
}
