//! `hapax listen`: forwards live events from a running Hapax to a local URL.

use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, USER_AGENT};
use http::{HeaderName, HeaderValue, Method, Request, Uri};
use http_body_util::Full;
use serde_json::Value;

use super::answer::{expect_json, text};
use super::client::{self, Client, Legacy, block_on};
use super::exit::{Exit, Failure};
use super::list::Noun;
use super::live::Stream;
use super::output;
use crate::clock;

/// The first pause before listening again.
const PAUSE_MIN: Duration = Duration::from_millis(250);
/// The longest.
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// How long the local server may take.
const FORWARD_TIMEOUT: Duration = Duration::from_secs(30);
/// What stands before the names of sources that nothing was received from.
const OWN: char = '~';

const EVENT: Noun = Noun {
    one: "event",
    many: "events",
};

/// Forward live events to a local URL
///
/// Follows what the server accepts from now on, and posts each body to the URL: with its content type, Hapax-Event-Id,
/// Hapax-Event-Type and Hapax-Source. For looking at events while you work; what has to arrive is an effect's business.
/// Ctrl-C ends it.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Where to post each event
    #[arg(long, value_name = "URL")]
    forward: String,
    /// Only events of this source
    #[arg(long)]
    source: Option<String>,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let client = Client::from_env()?;
    let url = target(&args.forward)?;
    let http = client::connect()?;
    let mut listening = Listening {
        path: path(args.source.as_deref()),
        client,
        http,
        url,
        last: None,
    };
    block_on(async {
        tokio::select! {
            ended = listening.run() => ended,
            // An error would mean that nobody can stop it that way.
            Ok(()) = tokio::signal::ctrl_c() => Ok(Exit::Ok),
        }
    })
}

fn target(url: &str) -> Result<Uri, Failure> {
    let uri: Option<Uri> = url.parse().ok();
    let fits =
        |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some();
    uri.filter(fits).ok_or_else(|| {
        let text = format!("--forward `{url}` is not the URL of a server");
        let help = "write scheme, host and port, such as http://127.0.0.1:3000/webhooks";
        Failure::new(Exit::Usage, "H0402", text, help)
    })
}

fn path(source: Option<&str>) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(source.map(|source| ("source", source)));
    format!("/api/v1/event/stream?{}", query.finish())
}

/// What a command that listens knows.
struct Listening {
    client: Client,
    http: Legacy,
    path: String,
    url: Uri,
    /// The last event that was forwarded.
    last: Option<String>,
}

impl Listening {
    /// Listens, and listens again whenever the stream ends. Whoever never got through hears why.
    async fn run(&mut self) -> Result<Exit, Failure> {
        let mut pause = PAUSE_MIN;
        let mut stream = self.connect().await?;
        output::talk(&format!("listening; forwarding to {}", self.url));
        loop {
            while let Some(event) = stream.next().await {
                pause = PAUSE_MIN;
                self.forward(&event).await?;
            }
            output::talk("the stream has ended; listening again");
            stream = loop {
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(PAUSE_MAX);
                match self.connect().await {
                    Ok(stream) => break stream,
                    // A server that restarts is away for a moment, and says so.
                    Err(failure) if is_passing(&failure) => {
                        output::talk(&format!("{failure}"));
                    }
                    Err(failure) => return Err(failure),
                }
            };
        }
    }

    async fn connect(&self) -> Result<Stream, Failure> {
        match self.client.follow(&self.path, self.last.as_deref()).await? {
            Ok(body) => Ok(Stream::new(body)),
            Err(answer) => {
                let refused = expect_json(&self.client, &answer, EVENT, "live events");
                refused.and_then(|_| Err(no_stream(self.client.base())))
            }
        }
    }

    /// Forwards one event, and says how that went.
    async fn forward(&mut self, event: &Value) -> Result<(), Failure> {
        let (id, source, kind) = (
            text(&event["id"]),
            text(&event["source"]),
            text(&event["type"]),
        );
        self.last = Some(id.clone());
        if source.starts_with(OWN) {
            return Ok(());
        }
        let payload = self.client.get(&format!("/api/v1/event/{id}/body")).await;
        let (said, spent) = match payload {
            Ok(payload) if payload.is_good() => {
                let headers = [
                    ("hapax-event-id", &id),
                    ("hapax-event-type", &kind),
                    ("hapax-source", &source),
                ];
                let request = self.request(payload.content_type, &headers, payload.body);
                let start = clock::tick();
                (self.post(request).await, clock::since(start))
            }
            Ok(_) => ("no body".to_owned(), Duration::ZERO),
            Err(failure) => {
                output::talk(&format!("{failure}"));
                ("no body".to_owned(), Duration::ZERO)
            }
        };
        let spent = spent.as_millis();
        output::data(&format!("{said}  {spent} ms  {id}  {source}  {kind}"))
    }

    fn request(
        &self,
        content_type: Option<HeaderValue>,
        named: &[(&'static str, &String)],
        body: Bytes,
    ) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.url.clone();
        let headers = request.headers_mut();
        let agent = concat!("hapax/", env!("CARGO_PKG_VERSION"));
        headers.insert(USER_AGENT, HeaderValue::from_static(agent));
        headers.extend(content_type.map(|kind| (CONTENT_TYPE, kind)));
        for (name, value) in named {
            // A type that no header carries is in the body, too.
            if let Ok(value) = HeaderValue::try_from(value.as_str()) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        request
    }

    /// The status, or why there is none. A redirect is an answer like any other.
    async fn post(&self, request: Request<Full<Bytes>>) -> String {
        let host = self.url.host().unwrap_or_default();
        match tokio::time::timeout(FORWARD_TIMEOUT, self.http.request(request)).await {
            Ok(Ok(answer)) => answer.status().as_u16().to_string(),
            Ok(Err(error)) => client::why(&error, host),
            Err(_) => "no answer".to_owned(),
        }
    }
}

/// Will it be over by itself?
fn is_passing(failure: &Failure) -> bool {
    failure.exit() == Exit::Unreachable || failure.code() == Some("H0205")
}

fn no_stream(base: &str) -> Failure {
    let text = format!("{base} did not answer with a stream");
    let help = "HAPAX_URL may point at something else than Hapax, or at another version";
    Failure::new(Exit::Failed, "H0410", text, help)
}
