//! The way of a request through the inbox, as one verdict.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use hapax_ledger::time::Time;
use hapax_store::nouns::{Arrival, NewEvent, Proof, Receipt, Receipted};
use hapax_store::{Store, StoreError, StoreErrorKind};
use hapax_verify::provider::HandshakeAnswer;
use hapax_verify::{Refusal, Request, Secret, Verified, Verifier};
use tokio::sync::Semaphore;

use super::accepts::Accepts;
use super::headers::RequestHeaders;
use super::identify::identify;
use super::refused::{BODY_BYTES_MAX, RefusedRequest};
use super::source::Source;
use crate::config::{EffectConfig, SourceConfig};
use crate::dispatch::{Dispatcher, Promises};
use crate::metrics::Metrics;
use crate::secrets::Unusable;
use crate::secrets::offered::Offered;

/// Verifications of public-key signatures at a time; each takes tens of microseconds, on threads apart from intake.
const SLOW_VERIFICATIONS_MAX: usize = 2;

/// How long a sender is kept waiting so that the log can say what became of an unknown commit. A store that failed may well not
/// answer, and the sender's own patience is running out.
const LOOK_BACK_WAIT: Duration = Duration::from_secs(1);

/// A request with its body read.
pub struct Received {
    /// The method, in upper case.
    pub method: String,
    /// The source it names.
    pub source: String,
    /// Path and query as they came.
    pub target: String,
    /// Its headers.
    pub headers: RequestHeaders,
    /// Its body as it came.
    pub body: Bytes,
    /// The peer's address.
    pub remote: Option<Arc<str>>,
    /// When it came.
    pub at: Time,
}

/// What became of a request.
pub enum Verdict {
    /// Stored and durable.
    Accepted(Receipt),
    /// A batch, stored and durable; one receipt per element.
    AcceptedBatch(Vec<Receipt>),
    /// A provider's handshake, answered.
    Handshake(HandshakeAnswer),
    /// Not believed, or nobody is called that: the same to the outside.
    Refused,
    /// Webhooks are sent with POST.
    WrongMethod,
    /// Not stored, or not known to be: the sender has to try again.
    Failed(StoreErrorKind),
}

/// The inbound door.
pub struct Inbox {
    sources: ArcSwap<Sources>,
    store: Arc<dyn Store>,
    dispatcher: Dispatcher,
    offered: Arc<Offered>,
    decoy: Verifier,
    slow: Arc<Semaphore>,
    metrics: Arc<Metrics>,
    /// Tells of what is accepted here.
    pub accepts: Accepts,
}

/// The sources in force, and how the outside reaches them.
pub struct Sources {
    by_name: HashMap<Arc<str>, Arc<Source>>,
    public_url: Option<String>,
}

impl Sources {
    /// Compiles the sources of a config, each with its effects.
    pub fn new(
        sources: Vec<SourceConfig>,
        effects: &[Arc<EffectConfig>],
        public_url: Option<String>,
    ) -> Sources {
        let compiled = sources.into_iter().map(|source| {
            let own = effects.iter().filter(|effect| effect.source == source.name);
            let own = own.cloned().collect();
            Arc::new(Source::new(source, own))
        });
        Sources {
            by_name: compiled
                .map(|source| (source.name().clone(), source))
                .collect(),
            public_url,
        }
    }

    /// The source called `name`.
    pub fn get(&self, name: &str) -> Option<&Arc<Source>> {
        self.by_name.get(name)
    }

    /// All sources, by name.
    pub fn all(&self) -> Vec<&Arc<Source>> {
        let mut all: Vec<_> = self.by_name.values().collect();
        all.sort_by(|a, b| a.name().cmp(b.name()));
        all
    }

    /// The URL that the provider called, as it knows it.
    pub fn public_url(&self, target: &str) -> Option<String> {
        self.public_url
            .as_ref()
            .map(|base| format!("{}{target}", base.trim_end_matches('/')))
    }
}

impl Inbox {
    /// An inbox over a store.
    pub fn new(
        sources: Sources,
        store: Arc<dyn Store>,
        dispatcher: Dispatcher,
        offered: Arc<Offered>,
        metrics: Arc<Metrics>,
    ) -> Inbox {
        Inbox {
            sources: ArcSwap::from_pointee(sources),
            store,
            dispatcher,
            offered,
            decoy: Verifier::decoy(),
            slow: Arc::new(Semaphore::new(SLOW_VERIFICATIONS_MAX)),
            metrics,
            accepts: Accepts::default(),
        }
    }

    /// The sources in force.
    pub fn sources(&self) -> Arc<Sources> {
        self.sources.load_full()
    }

    /// Puts other sources in force; requests under way finish with the old ones.
    pub fn reload(&self, sources: Sources) {
        self.teach(&sources);
        self.sources.store(Arc::new(sources));
    }

    /// Reads the secrets that were taken from providers again.
    ///
    /// # Errors
    /// If they cannot be read; those read before count on.
    pub async fn learn(&self) -> Result<(), Unusable> {
        let learnt = self.offered.refresh().await;
        self.teach(&self.sources());
        learnt
    }

    fn teach(&self, sources: &Sources) {
        for source in sources.by_name.values() {
            source.know(&self.offered.of(source.name()));
        }
    }

    /// Verifies, identifies and stores a request.
    pub async fn receive(self: &Arc<Self>, request: Received) -> Verdict {
        let sources = self.sources.load_full();
        let Some(source) = sources.get(&request.source) else {
            // The same work as for a wrong signature, so that names cannot be found out by timing.
            let _ = self.decoy.verify(&view(&request, None));
            self.metrics.refused_unknown_source();
            return refused_or_wrong_method(&request.method);
        };
        let url = sources.public_url(&request.target);
        if let Some(answer) = self.handshake(source, &request, url.as_deref()) {
            return self.shake(source, answer, request.at).await;
        }
        if request.method != "POST" {
            return Verdict::WrongMethod;
        }
        match self.verify(source, request, url).await {
            Ok((request, verified)) => self.accept(source, request, verified).await,
            Err(verdict) => verdict,
        }
    }

    /// A secret that the provider offers is kept before it hears that we have it, if somebody expects one.
    async fn shake(&self, source: &Source, answer: HandshakeAnswer, now: Time) -> Verdict {
        let usable = |secret: &&Secret| {
            let more = std::slice::from_ref(*secret);
            source.config.verifier.with_more(more).is_ok()
        };
        let Some(secret) = answer.offered_secret.as_ref().filter(usable) else {
            return Verdict::Handshake(answer);
        };
        match self.offered.take(source.name(), secret, now).await {
            Ok(true) => {
                tracing::info!(source = %source.name(), "took the secret that the provider offered");
                self.teach(&self.sources());
            }
            // Whoever knows the URL can offer one, as often as they like.
            Ok(false) => {
                tracing::debug!(source = %source.name(), "a secret was offered that nobody expects");
            }
            Err(kind) => return Verdict::Failed(kind),
        }
        Verdict::Handshake(answer)
    }

    fn handshake(
        &self,
        source: &Source,
        request: &Received,
        url: Option<&str>,
    ) -> Option<HandshakeAnswer> {
        let query = request
            .target
            .split_once('?')
            .map_or("", |(_, query)| query);
        source
            .config
            .preset?
            .handshake_answer(query, &view(request, url), &source.verifier.load())
    }

    async fn verify(
        &self,
        source: &Arc<Source>,
        request: Received,
        url: Option<String>,
    ) -> Result<(Received, Verified), Verdict> {
        let (request, outcome) = if source.config.verifier.scheme().is_asymmetric() {
            let apart = self.verify_apart(source, request, url).await;
            apart.ok_or(Verdict::Failed(StoreErrorKind::Unavailable))?
        } else {
            let outcome = source
                .verifier
                .load()
                .verify(&view(&request, url.as_deref()));
            (request, outcome)
        };
        let preset = source.config.preset;
        let outcome = match outcome {
            Ok(_) if preset.is_some_and(|preset| preset.may_be_a_challenge(&request.body)) => {
                Err(Refusal::Mismatch)
            }
            other => other,
        };
        match outcome {
            Ok(verified) => Ok((request, verified)),
            Err(refusal) => {
                self.refuse(source, request, refusal);
                Err(Verdict::Refused)
            }
        }
    }

    async fn verify_apart(
        &self,
        source: &Arc<Source>,
        request: Received,
        url: Option<String>,
    ) -> Option<(Received, Result<Verified, Refusal>)> {
        let permit = self.slow.clone().acquire_owned().await.ok()?;
        let source = source.clone();
        let work = tokio::task::spawn_blocking(move || {
            let outcome = source
                .verifier
                .load()
                .verify(&view(&request, url.as_deref()));
            drop(permit);
            (request, outcome)
        });
        work.await.ok()
    }

    fn refuse(&self, source: &Source, request: Received, refusal: Refusal) {
        self.metrics.refused(source.name(), refusal.code());
        source.refused.remember(|| RefusedRequest {
            at: request.at,
            remote: request.remote,
            refusal,
            method: request.method,
            headers: request.headers,
            // A copy: the body is a part of the connection's buffer, and would keep all of it.
            body: (request.body.len() <= BODY_BYTES_MAX)
                .then(|| Bytes::copy_from_slice(&request.body)),
            target: request.target,
        });
    }

    async fn accept(
        self: &Arc<Self>,
        source: &Arc<Source>,
        request: Received,
        verified: Verified,
    ) -> Verdict {
        let identified = identify(source, &request.headers, &request.body);
        self.metrics.fell(source.name(), identified.fell);
        let mut arrival = Arrival {
            source: source.name().clone(),
            at: request.at,
            proof: Proof {
                scheme: source.scheme_label.clone(),
                secret_index: verified.secret_index,
                signed_at: verified.signed_at.map(Time::from_micros),
                remote: request.remote,
            },
            events: identified.events,
        };
        let promises = self.dispatcher.promise(&mut arrival);
        let storing = self.clone().store(source.clone(), arrival, promises);
        self.dispatcher.outliving(storing).await
    }

    /// Stores an arrival, and lets its effects go.
    async fn store(
        self: Arc<Self>,
        source: Arc<Source>,
        arrival: Arrival,
        promises: Promises,
    ) -> Verdict {
        let source = &*source;
        let at = arrival.at;
        let names: Vec<Name> = arrival.events.iter().map(Name::of).collect();
        match self.store.accept(arrival).await {
            Ok(receipts) => {
                promises.keep(&receipts);
                self.accepts.tell();
                self.metrics.accepted(source.name(), &receipts);
                count_repeats(source, &names, &receipts);
                log(source, &names, &receipts);
                match <[Receipt; 1]>::try_from(receipts) {
                    Ok([receipt]) if source.batch.is_none() => Verdict::Accepted(receipt),
                    Ok(one) => Verdict::AcceptedBatch(one.into()),
                    Err(several) => Verdict::AcceptedBatch(several),
                }
            }
            Err(error) => {
                drop(promises);
                self.dispatcher.doubt(&error);
                self.failed(source, &error, names, at).await
            }
        }
    }

    async fn failed(
        &self,
        source: &Source,
        error: &StoreError,
        names: Vec<Name>,
        now: Time,
    ) -> Verdict {
        self.metrics.store_failed(error.kind());
        if error.kind() == StoreErrorKind::CommitUnknown
            && tokio::time::timeout(LOOK_BACK_WAIT, self.look_back(source, names, now))
                .await
                .is_err()
        {
            tracing::warn!(source = %source.name(), "the commit is unknown, and the store does not say in time what became of it");
        }
        Verdict::Failed(error.kind())
    }

    /// Says in the log what became of an unknown commit. The answer stays 5xx either way: that a row can be read does not
    /// prove that it is on disk, and the sender's retry is what settles it (A3).
    async fn look_back(&self, source: &Source, names: Vec<Name>, now: Time) {
        for Name {
            key,
            event_type,
            object_id,
        } in names
        {
            match self.store.sighted(source.name(), &key, now).await {
                Ok(Some(event)) => {
                    tracing::warn!(source = %source.name(), "type" = event_type, key, object = object_id, %event, "the commit is unknown, the event is there; the sender's retry will find it");
                }
                Ok(None) => {
                    tracing::warn!(source = %source.name(), "type" = event_type, key, object = object_id, "the commit is unknown, the event is not there; the sender's retry will bring it");
                }
                Err(error) => {
                    tracing::warn!(source = %source.name(), "type" = event_type, key, object = object_id, %error, "the commit is unknown, and the key cannot be looked up now");
                }
            }
        }
    }
}

/// What an event is known by once the store has it.
struct Name {
    key: String,
    event_type: Option<String>,
    object_id: Option<String>,
}

impl Name {
    fn of(event: &NewEvent) -> Name {
        Name {
            key: event.key.clone(),
            event_type: event.event_type.clone(),
            object_id: event.object_id.clone(),
        }
    }
}

/// A line for each event: what came again in another form is for everybody, the rest for whoever looks closer.
fn log(source: &Source, names: &[Name], receipts: &[Receipt]) {
    macro_rules! about {
        ($level:ident, $name:expr, $receipt:expr, $text:literal) => {
            tracing::$level!(
                source = &**source.name(),
                "type" = $name.event_type.as_deref(),
                key = $name.key.as_str(),
                object = $name.object_id.as_deref(),
                event = %$receipt.event,
                $text
            )
        };
    }
    for (name, receipt) in names.iter().zip(receipts) {
        match receipt.sighting {
            Receipted::New => about!(debug, name, receipt, "an event is accepted"),
            Receipted::Duplicate => about!(debug, name, receipt, "an event came again"),
            Receipted::Conflict => {
                about!(
                    info,
                    name,
                    receipt,
                    "an event came again with another body; both are kept"
                );
            }
        }
    }
}

fn count_repeats(source: &Source, names: &[Name], receipts: &[Receipt]) {
    for (name, receipt) in names.iter().zip(receipts) {
        match receipt.sighting {
            Receipted::New => {}
            Receipted::Duplicate | Receipted::Conflict => {
                let event_type = name.event_type.as_deref();
                source.repeats.saw(receipt.event, event_type, &name.key);
            }
        }
    }
}

/// To a stranger a source that is not there looks like one that is.
fn refused_or_wrong_method(method: &str) -> Verdict {
    match method {
        "POST" => Verdict::Refused,
        _ => Verdict::WrongMethod,
    }
}

fn view<'a>(request: &'a Received, url: Option<&'a str>) -> Request<'a> {
    Request {
        method: &request.method,
        url,
        headers: &request.headers,
        body: &request.body,
        now: request.at.micros(),
    }
}
