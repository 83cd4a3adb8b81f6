//! Webhooks: the handler runs for those that verify, and for none else.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::extract::{FromRef, FromRequest, State};
use axum::routing::post;
use hapax_tower::atomic::{Once, blocking, install, once};
use hapax_tower::webhook::{Secret, VerifiedWebhook, Verifier, WebhookProblem, WebhookSource};
use hapax_verify::{SchemeSpec, SignInput, provider, sign};
use tokio::net::TcpListener;

use crate::client::{Answer, request, send};

pub(super) const SECRET: &str = "whsec_a_secret_of_this_test";
const BODY: &str = r#"{"id":"evt_1","type":"invoice.paid","data":{"n":1}}"#;

#[derive(Clone)]
struct App {
    source: Arc<WebhookSource>,
    calls: Arc<AtomicUsize>,
}

impl FromRef<App> for Arc<WebhookSource> {
    fn from_ref(app: &App) -> Arc<WebhookSource> {
        app.source.clone()
    }
}

async fn handle(State(app): State<App>, webhook: VerifiedWebhook) -> String {
    app.calls.fetch_add(1, Ordering::SeqCst);
    let (id, kind) = (webhook.event_id, webhook.event_type);
    let (id, kind) = (id.unwrap_or_default(), kind.unwrap_or_default());
    format!("{} {id} {kind} {}", webhook.event.id, webhook.body.len())
}

async fn serve(source: WebhookSource) -> (SocketAddr, App) {
    let app = App {
        source: Arc::new(source),
        calls: Arc::default(),
    };
    let router = Router::new()
        .route("/hook", post(handle))
        .with_state(app.clone());
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    // Ends with the runtime.
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, app)
}

pub(super) fn stripe() -> WebhookSource {
    WebhookSource::provider("stripe", vec![Secret::from(SECRET)]).expect("a provider")
}

/// The headers with which this would be sent now.
#[expect(
    clippy::disallowed_methods,
    reason = "the extractor asks the wall clock"
)]
pub(super) fn signed(verifier: &Verifier, body: &str) -> Vec<(String, String)> {
    let now = std::time::SystemTime::now();
    let now = now
        .duration_since(std::time::UNIX_EPOCH)
        .expect("after 1970");
    let input = SignInput {
        method: "POST",
        url: None,
        headers: &[],
        body: body.as_bytes(),
        id: "msg_1",
        now: i64::try_from(now.as_micros()).expect("before 292277"),
    };
    sign(verifier, &input).expect("signed").headers
}

pub(super) fn verifier(preset: &str, secret: &str) -> Verifier {
    let preset = provider::find(preset).expect("a provider");
    Verifier::new(preset.scheme(), vec![Secret::from(secret)]).expect("a secret")
}

pub(super) async fn deliver(
    address: SocketAddr,
    headers: &[(String, String)],
    body: &str,
) -> Answer {
    let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (&**n, &**v)).collect();
    send(address, request("POST", "/hook", &headers, body.to_owned())).await
}

#[tokio::test]
async fn a_signed_webhook_reaches_its_handler() {
    let (address, app) = serve(stripe()).await;
    let answer = deliver(address, &signed(&verifier("stripe", SECRET), BODY), BODY).await;
    assert_eq!(answer.status, 200);
    let said = String::from_utf8_lossy(&answer.body);
    assert!(said.contains("evt_1 invoice.paid 51"), "{said}");
    assert_eq!(app.calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_forged_webhook_does_not() {
    let (address, app) = serve(stripe()).await;
    let good = signed(&verifier("stripe", SECRET), BODY);
    let forged = signed(&verifier("stripe", "whsec_some_other_secret"), BODY);
    let doubled = [good.clone(), good.clone()].concat();
    let changed = BODY.replace("\"n\":1", "\"n\":2");
    let refused = [
        deliver(address, &forged, BODY).await,
        deliver(address, &good, &changed).await,
        deliver(address, &doubled, BODY).await,
        deliver(address, &[], BODY).await,
    ];
    for answer in &refused {
        assert_eq!(answer.refusal(), (401, "not-verified".to_owned()));
        assert_eq!(answer.body, refused[0].body, "a stranger learns nothing");
    }
    assert_eq!(app.calls.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_long_body_is_refused_before_it_is_read() {
    let (address, app) = serve(stripe().bytes_max(50)).await;
    let answer = deliver(address, &signed(&verifier("stripe", SECRET), BODY), BODY).await;
    assert_eq!(answer.refusal(), (413, "request-too-large".to_owned()));
    let short = "{}";
    let answer = deliver(address, &signed(&verifier("stripe", SECRET), short), short).await;
    assert_eq!(answer.status, 200, "no id: it is known by its hash");
    assert!(answer.body.starts_with(b"sha256:"), "{answer:?}");
    assert_eq!(app.calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_scheme_of_your_own_is_known_by_the_fields_you_name() {
    let spec = serde_json::json!({ "scheme": "hmac", "header": "x-signature", "signed": "{body}" });
    let spec: SchemeSpec = serde_json::from_value(spec).expect("a scheme");
    let scheme = spec.resolve().expect("a scheme");
    let verifier = Verifier::new(scheme, vec![Secret::from(SECRET)]).expect("a secret");
    let source = WebhookSource::custom("own", verifier.clone()).expect("it verifies");
    let source = source.known_by(&["data.n"]).expect("a field");
    let source = source.event_type("type").expect("a field");
    let (address, _app) = serve(source).await;
    let answer = deliver(address, &signed(&verifier, BODY), BODY).await;
    assert_eq!(answer.body, r#"["1"]  invoice.paid 51"#);
}

#[test]
fn sources_that_prove_nothing_are_refused() {
    let secret = || vec![Secret::from(SECRET)];
    let unknown = WebhookSource::provider("nobody", secret());
    assert!(matches!(unknown, Err(WebhookProblem::Provider(_))));
    let short = WebhookSource::provider("stripe", vec![Secret::from("x")]);
    assert!(matches!(short, Err(WebhookProblem::Secret(_))));
    let batches = provider::all().iter().find(|one| one.batch.is_some());
    let batches = batches.expect("some provider sends batches");
    let batches = WebhookSource::provider(&batches.name, secret());
    assert!(matches!(batches, Err(WebhookProblem::Batches(_))));
}

/// The same event again, however its sender writes it: the extractor's name for it is good for `once`.
#[tokio::test]
async fn an_event_that_is_sent_again_is_seen() {
    let source = Arc::new(stripe());
    let mut connection = rusqlite::Connection::open_in_memory().expect("a database");
    let mut tx = connection.transaction().expect("a transaction");
    blocking(install(&mut tx)).expect("the table is made");
    for (body, expected) in [
        (BODY.to_owned(), Once::Fresh),
        (BODY.replace("\"n\":1", "\"n\":2"), Once::Seen),
        (BODY.replace("evt_1", "evt_2"), Once::Fresh),
    ] {
        let mut delivery = axum::extract::Request::new(axum::body::Body::from(body.clone()));
        *delivery.method_mut() = http::Method::POST;
        for (name, value) in signed(&verifier("stripe", SECRET), &body) {
            let name = http::HeaderName::try_from(name).expect("a name");
            delivery
                .headers_mut()
                .insert(name, value.parse().expect("a value"));
        }
        let webhook = VerifiedWebhook::from_request(delivery, &source).await;
        let webhook = webhook.expect("it verifies");
        let seen = blocking(once(&mut tx, &webhook.event)).expect("the database answers");
        assert_eq!(seen, expected, "{body}");
    }
}
