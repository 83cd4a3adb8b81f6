//! `hapax conform` against APIs that are broken in one way each: what it finds is that, and nothing else.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use http::{HeaderMap, StatusCode};
use tokio::net::TcpListener;
use tokio::sync::Barrier;

use super::conform::{CALLERS, conform, outcomes};

/// What is wrong with an API, or peculiar.
#[derive(Clone, Copy, PartialEq)]
enum Trait {
    /// Carries everything out that it does not refuse.
    CarriesOutAgain,
    /// Takes another body under the same key.
    TakesOtherBodies,
    /// Refuses the other body, under whatever key.
    KnowsOneBody,
    /// One caller's keys are all callers'.
    SharesKeys,
    /// Looks for the key first and takes it later: two that race are both carried out.
    LooksBeforeItTakes,
    /// Says this to everybody but ada.
    TellsOthers(u16),
    /// Says nothing in the body that is new.
    SaysTheSame,
    /// Says the key in the body, and nothing that is new.
    SaysTheKey,
    /// Has a new id in a header.
    NamesInAHeader,
    /// Marks what it says again.
    MarksReplays,
    /// Marks whatever it says.
    MarksAll,
}
use Trait::*;

/// An API with idempotency keys.
struct Api {
    traits: Vec<Trait>,
    /// By caller and key: the body, and which execution it was.
    known: Mutex<HashMap<(String, String), (Bytes, usize)>>,
    executions: AtomicUsize,
    other_bodies: AtomicUsize,
    racers: AtomicUsize,
    both: Barrier,
}

impl Api {
    fn is(&self, what: Trait) -> bool {
        self.traits.contains(&what)
    }

    /// Carried out, said again or refused.
    fn answer(&self, name: (String, String), body: Bytes) -> Response {
        let mut known = self.known.lock().expect("whole");
        let before = known.get(&name).cloned();
        let fresh = || self.executions.fetch_add(1, Ordering::SeqCst) + 1;
        let execution = match before {
            Some((first, _)) if first != body && !self.is(TakesOtherBodies) => {
                return StatusCode::CONFLICT.into_response();
            }
            Some((_, execution)) if !self.is(CarriesOutAgain) => {
                return self.say(&name.1, execution, true);
            }
            Some(_) | None => fresh(),
        };
        known.insert(name.clone(), (body, execution));
        self.say(&name.1, execution, false)
    }

    fn say(&self, key: &str, execution: usize, again: bool) -> Response {
        let body = match () {
            () if self.is(SaysTheSame) => "{\"ok\":true}".to_owned(),
            () if self.is(SaysTheKey) => format!("{{\"ok\":true,\"key\":\"{key}\"}}"),
            () => format!("{{\"id\":{execution}}}"),
        };
        let mut response = (StatusCode::CREATED, body).into_response();
        let mut put = |name: &'static str, value: String| {
            let value = value.parse().expect("a value");
            response.headers_mut().insert(name, value);
        };
        if self.is(NamesInAHeader) {
            put("x-charge-id", execution.to_string());
        }
        if self.is(MarksAll) || (again && self.is(MarksReplays)) {
            put("idempotent-replayed", "true".to_owned());
        }
        response
    }

    /// Is this request one of those that race? They come after both that have another body.
    fn races(&self, is_other_body: bool) -> bool {
        let others = self
            .other_bodies
            .fetch_add(usize::from(is_other_body), Ordering::SeqCst);
        self.is(LooksBeforeItTakes) && others == 2
    }
}

async fn charge(State(api): State<Arc<Api>>, headers: HeaderMap, body: Bytes) -> Response {
    let text = |name: &str| -> Vec<String> {
        let values = headers.get_all(name).iter();
        let texts = values.map(|value| value.to_str().expect("text").to_owned());
        texts.collect()
    };
    let (caller, keys) = (text("x-user").concat(), text("idempotency-key"));
    let [key] = &*keys else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let quotes = key.matches('"').count();
    if key.len() > 255 || quotes == 1 {
        return StatusCode::BAD_REQUEST.into_response();
    }
    for what in &api.traits {
        if let TellsOthers(status) = what
            && caller != "ada"
        {
            return StatusCode::from_u16(*status)
                .expect("a status")
                .into_response();
        }
    }
    let is_other_body = body.windows(12).any(|part| part == b"conformOther");
    if is_other_body && api.is(KnowsOneBody) {
        return StatusCode::BAD_REQUEST.into_response();
    }
    let owner = match api.is(SharesKeys) {
        true => String::new(),
        false => caller,
    };
    let name = (owner, key.trim_matches('"').to_owned());
    let is_known = api.known.lock().expect("whole").contains_key(&name);
    if api.races(is_other_body) && !is_known {
        // The first two have both looked before either takes the key; the others hear that somebody is at it.
        if api.racers.fetch_add(1, Ordering::SeqCst) >= 2 {
            return StatusCode::CONFLICT.into_response();
        }
        api.both.wait().await;
        api.known.lock().expect("whole").remove(&name);
    }
    api.answer(name, body)
}

/// What is found about an API with these traits; all checks that are not named pass, or are left out.
#[track_caller]
fn found(traits: &[Trait], more: &[&str], want: &[(&str, &str)]) {
    let api = Arc::new(Api {
        traits: traits.to_vec(),
        known: Mutex::default(),
        executions: AtomicUsize::new(0),
        other_bodies: AtomicUsize::new(0),
        racers: AtomicUsize::new(0),
        both: Barrier::new(2),
    });
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let address = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let app = Router::new().route("/charges", post(charge));
        let app = app.with_state(api);
        // Ends with the runtime.
        tokio::spawn(async move { axum::serve(listener, app).await });
        address
    });
    let mut args = vec!["--json"];
    args.extend(more);
    let ran = conform(&format!("http://{address}/charges"), &args);
    let outcomes = outcomes(&ran);
    let bad = outcomes
        .iter()
        .map(|(check, outcome)| (&**check, &**outcome));
    let bad: Vec<_> = bad
        .filter(|(_, outcome)| !matches!(*outcome, "pass" | "skipped"))
        .collect();
    assert_eq!(bad, want, "{}", ran.stdout);
    assert_eq!(ran.json()["conforms"], want.is_empty(), "{}", ran.stdout);
    assert_eq!(ran.exit, i32::from(!want.is_empty()), "{ran:?}");
}

#[test]
fn an_api_without_a_flaw_conforms() {
    found(&[], &CALLERS, &[]);
    found(&[MarksReplays], &CALLERS, &[]);
}

#[test]
fn answers_that_show_nothing_do_not_conform() {
    let unproven = [
        ("replay", "UNPROVEN"),
        ("race", "UNPROVEN"),
        ("after the race", "UNPROVEN"),
        ("scope", "UNPROVEN"),
    ];
    for says in [SaysTheSame, SaysTheKey] {
        // Whether or not it is carried out again: nobody can tell.
        found(&[says, CarriesOutAgain], &CALLERS, &unproven);
    }
    // Without a dedupe that waits: all racers are answered, and one looks like the other.
    found(&[SaysTheSame, CarriesOutAgain], &[], &unproven[..3]);
}

#[test]
fn a_mark_or_a_header_shows_what_the_body_does_not() {
    found(&[SaysTheSame, MarksReplays], &CALLERS, &[]);
    let by_header = [&CALLERS[..], &["--id-header", "X-Charge-Id"]].concat();
    found(&[SaysTheSame, NamesInAHeader], &by_header, &[]);
    let carried_out_again = [
        ("replay", "FAIL"),
        ("race", "FAIL"),
        ("after the race", "FAIL"),
    ];
    let traits = [SaysTheSame, NamesInAHeader, CarriesOutAgain];
    found(&traits, &by_header, &carried_out_again);
    // A mark on everything shows nothing.
    let traits = [SaysTheSame, MarksAll, CarriesOutAgain];
    let want = [
        ("replay", "FAIL"),
        ("race", "UNPROVEN"),
        ("after the race", "UNPROVEN"),
    ];
    found(&traits, &[], &want);
}

#[test]
fn keys_that_are_ignored_are_found() {
    let want = [
        ("replay", "FAIL"),
        ("mismatch", "FAIL"),
        ("race", "FAIL"),
        ("after the race", "FAIL"),
    ];
    found(&[CarriesOutAgain, TakesOtherBodies], &CALLERS, &want);
}

#[test]
fn a_race_with_two_executions_is_found() {
    found(&[LooksBeforeItTakes], &[], &[("race", "FAIL")]);
}

#[test]
fn another_body_that_is_answered_is_found() {
    found(&[TakesOtherBodies], &CALLERS, &[("mismatch", "FAIL")]);
    // Refused for itself, it shows nothing.
    let traits = [KnowsOneBody, TakesOtherBodies];
    found(&traits, &CALLERS, &[("mismatch", "UNPROVEN")]);
}

#[test]
fn callers_that_meet_are_found() {
    found(&[SharesKeys], &CALLERS, &[("scope", "FAIL")]);
    found(&[SharesKeys, MarksReplays], &CALLERS, &[("scope", "FAIL")]);
    found(&[TellsOthers(500)], &CALLERS, &[("scope", "FAIL")]);
    found(&[TellsOthers(409)], &CALLERS, &[("scope", "FAIL")]);
    found(&[TellsOthers(403)], &CALLERS, &[("scope", "UNPROVEN")]);
}
