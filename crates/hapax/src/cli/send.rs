//! `hapax send`: signs and sends a sample event as the source's provider would, as often as asked.

use std::path::PathBuf;

use hapax_ledger::time::Span;
use hapax_verify::provider::SampleRequest;
use hapax_verify::{Request, Scheme, Secret, SignInput, Signed, Verifier, sign};
use serde_json::{Value, json};

use super::client::{Answer, Client, block_on};
use super::exit::{Exit, Failure};
use super::sample::{self, Wanted};
use super::verify::{find, read};
use super::{answer, output, table};
use crate::config::{self, SourceConfig};
use crate::{clock, entropy};

/// How late a late event is: more than any provider's tolerance.
const LATE: Span = Span::from_days(1);

/// Sign and send a sample event as the source's provider would
///
/// The config says how the source signs and with which secret; HAPAX_URL says where the server is. All attempts carry
/// the same event; each is signed by itself, as a provider that tries again does.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The source's name in the config
    source: String,
    /// The event's type [default: the sample's own]
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// A file with the body to send instead of the provider's sample
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// How many times to send it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    times: u32,
    /// Sign with another secret, as somebody would who does not know it
    #[arg(long)]
    forge: bool,
    /// Sign with the time of yesterday, as somebody would who replays a captured request
    #[arg(long, conflicts_with = "forge")]
    late: bool,
    /// The config file [default: $HAPAX_CONFIG, then hapax.toml]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Write JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args) -> Result<Exit, Failure> {
    let loaded = config::load_source(args.config.as_deref(), &args.source)?;
    let source = find(&loaded, &args.source)?;
    let client = Client::from_env()?;
    let body = args.data.as_deref().map(read).transpose()?;
    let id = format!("evt_sample_{}", hex::encode(entropy::bytes::<8>()));
    let object = format!("obj_{}", hex::encode(entropy::bytes::<6>()));
    let request = sample::build(
        source,
        &Wanted {
            id: &id,
            object: &object,
            event_type: args.event_type.as_deref(),
            body: body.as_deref(),
            at: time(args.late),
        },
    )?;
    let forged = args.forge.then(|| other_secret(source)).transpose()?;
    let event = Event {
        source,
        signer: forged.as_ref().unwrap_or(&source.verifier),
        // The signature is over the URL that the provider was told, wherever the request is sent.
        url: loaded.config.public_url.as_ref().map_or_else(
            || format!("{}/in/{}", client.base(), source.name),
            |base| format!("{base}/in/{}", source.name),
        ),
        id: &id,
        request,
    };
    if args.late {
        event.refuse_if_never_late()?;
    }
    let mut shown = Shown::new(args);
    let sent = block_on(event.send(&client, args, &mut shown));
    shown.finish()?;
    sent?;
    Ok(if shown.all_good {
        Exit::Ok
    } else {
        Exit::Failed
    })
}

/// When the provider says that it signed, in unix microseconds.
fn time(late: bool) -> i64 {
    let now = clock::now();
    match late {
        true => (now - LATE).micros(),
        false => now.micros(),
    }
}

/// One event, ready to be signed and sent.
struct Event<'a> {
    source: &'a SourceConfig,
    signer: &'a Verifier,
    url: String,
    id: &'a str,
    request: SampleRequest,
}

impl Event<'_> {
    fn sign(&self, at: i64) -> Result<Signed, Failure> {
        let input = SignInput {
            method: "POST",
            url: Some(&self.url),
            headers: &self.request.headers,
            body: &self.request.body,
            id: self.id,
            now: at,
        };
        sign(self.signer, &input).map_err(|error| {
            let text = format!(
                "an event of `{}` cannot be signed here: {error}",
                self.source.name
            );
            let help =
                "only the provider can send a real one; another body may do, with --data FILE";
            Failure::new(Exit::Usage, "H0404", text, help)
        })
    }

    async fn send(&self, client: &Client, args: &Args, shown: &mut Shown) -> Result<(), Failure> {
        for answered in 0..args.times {
            let signed = self.sign(time(args.late))?;
            let headers = self.headers(&signed);
            let query = signed.url.as_deref().and_then(|url| url.split_once('?'));
            let query = query.map_or(String::new(), |(_, query)| format!("?{query}"));
            let body = signed.body.as_deref().unwrap_or(&self.request.body);
            let path = format!("/in/{}{query}", self.source.name);
            let answer = client.deliver(&path, &headers, body).await;
            // Whoever sends many wants to know how many arrived for sure.
            let answer = answer.map_err(|failure| match args.times {
                1 => failure,
                times => failure.after(&format!("{answered} of {times} were answered; ")),
            })?;
            shown.row(answered + 1, &answer)?;
        }
        Ok(())
    }

    /// The request's headers; the signature's win.
    fn headers(&self, signed: &Signed) -> Vec<(String, String)> {
        let replaced = |name: &str| {
            signed
                .headers
                .iter()
                .any(|(new, _)| new.eq_ignore_ascii_case(name))
        };
        let kept = self
            .request
            .headers
            .iter()
            .filter(|(name, _)| !replaced(name));
        kept.chain(&signed.headers).cloned().collect()
    }

    /// A scheme that signs no time takes yesterday's request as it takes today's.
    fn refuse_if_never_late(&self) -> Result<(), Failure> {
        let signed = self.sign(time(true))?;
        let headers = self.headers(&signed);
        let request = Request {
            method: "POST",
            url: Some(signed.url.as_deref().unwrap_or(&self.url)),
            headers: &headers,
            body: signed.body.as_deref().unwrap_or(&self.request.body),
            now: time(false),
        };
        if self.source.verifier.verify(&request).is_err() {
            return Ok(());
        }
        let text = format!(
            "nothing can be late at `{}`: its scheme checks no time",
            self.source.name
        );
        let help = "a captured request stays good for ever there, so that it is the event's key that keeps it out";
        Err(Failure::new(Exit::Usage, "H0404", text, help))
    }
}

/// The source's scheme with a secret that it does not know.
fn other_secret(source: &SourceConfig) -> Result<Verifier, Failure> {
    let scheme = source.verifier.scheme();
    if *scheme == Scheme::Unverified {
        let text = format!(
            "nothing can be forged at `{}`: it is unverified",
            source.name
        );
        let help = "every request is believed there; give the source a provider or a scheme";
        return Err(Failure::new(Exit::Usage, "H0404", text, help));
    }
    // Hexadecimal is at once text, hex and base64, so that it fits every form of key but `user:password`.
    let other = hex::encode(entropy::bytes::<32>());
    let basic = format!("somebody:{other}");
    let make = |secret: &str| Verifier::new(scheme.clone(), vec![Secret::from(secret)]);
    make(&other).or_else(|_| make(&basic)).map_err(|error| {
        let text = format!(
            "an event of `{}` cannot be forged here: {error}",
            source.name
        );
        Failure::new(
            Exit::Usage,
            "H0404",
            text,
            "the provider signs with a private key, which nobody has here",
        )
    })
}

/// The answers as they come: a row each, or JSON at the end.
struct Shown {
    /// The rows so far, if JSON is asked for.
    json: Option<Vec<Value>>,
    all_good: bool,
}

impl Shown {
    fn new(args: &Args) -> Shown {
        Shown {
            json: args.json.then(Vec::new),
            all_good: true,
        }
    }

    fn row(&mut self, attempt: u32, answer: &Answer) -> Result<(), Failure> {
        self.all_good &= answer.is_good();
        let lossy = || String::from_utf8_lossy(&answer.body).into_owned().into();
        let body = serde_json::from_slice::<Value>(&answer.body).unwrap_or_else(|_| lossy());
        match &mut self.json {
            Some(rows) => {
                rows.push(json!({"attempt": attempt, "status": answer.status, "answer": body}));
                Ok(())
            }
            None => {
                if attempt == 1 {
                    write_row("ATTEMPT", "STATUS", "ANSWER")?;
                }
                let (attempt, status) = (attempt.to_string(), answer.status.to_string());
                write_row(&attempt, &status, &answer::text(&body))
            }
        }
    }

    fn finish(&mut self) -> Result<(), Failure> {
        match self.json.take() {
            Some(rows) => output::json(&rows.into()),
            None => Ok(()),
        }
    }
}

/// Rows come one by one, so that their columns have fixed widths.
fn write_row(attempt: &str, status: &str, answer: &str) -> Result<(), Failure> {
    let line = format!("{attempt:7}  {status:6}  {}", table::one_line(answer));
    match output::width() {
        Some(width) => output::data(&table::cut(&line, width)),
        None => output::data(&line),
    }
}
