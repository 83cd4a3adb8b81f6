//! Answers, and problems with a code, what happened, and what to do next.

use bytes::Bytes;
use hapax_store::StoreErrorKind;
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use http_body_util::Full;
use serde::Serialize;
use serde_json::Value;

/// A whole answer.
pub type Answer = Response<Full<Bytes>>;

/// A sender that hears 503 is asked to wait this long. Short: what makes us refuse is mostly over in a second, and
/// providers have schedules of their own.
const RETRY_AFTER_SECONDS: &str = "2";

/// A problem with a stable code.
#[derive(Clone, Copy, Debug)]
pub struct Problem {
    /// The status.
    pub status: StatusCode,
    /// The code (`hapax explain CODE`).
    pub code: &'static str,
    /// What happened and what to do next.
    pub detail: &'static str,
}

macro_rules! problems {
    ($($(#[$doc:meta])* $name:ident = $status:ident, $code:literal, $detail:literal;)+) => {
        $($(#[$doc])* pub const $name: Problem = Problem { status: StatusCode::$status, code: $code, detail: $detail };)+
    };
}

problems! {
    /// Unknown source, missing or wrong signature, stale timestamp: the same for all.
    REFUSED = UNAUTHORIZED, "H0201", "the request is not signed as this source expects";
    /// Too large.
    TOO_LARGE = PAYLOAD_TOO_LARGE, "H0202", "the body is larger than this server takes";
    /// Too slow.
    TOO_SLOW = REQUEST_TIMEOUT, "H0203", "the body did not arrive in time";
    /// Broken.
    MALFORMED = BAD_REQUEST, "H0204", "the request broke off or is not HTTP as it should be";
    /// The store is down.
    UNAVAILABLE = SERVICE_UNAVAILABLE, "H0205", "nothing was stored; send it again";
    /// Too much is waiting.
    OVERLOADED = SERVICE_UNAVAILABLE, "H0206", "too much is waiting to be stored; send it again";
    /// No space.
    FULL = SERVICE_UNAVAILABLE, "H0207", "there is no space to store it; send it again";
    /// Nobody knows.
    COMMIT_UNKNOWN = SERVICE_UNAVAILABLE, "H0208", "it is not known whether it was stored; send it again";
    /// Who is asking?
    NO_TOKEN = UNAUTHORIZED, "H0301", "a valid bearer token is needed";
    /// Nothing there.
    NOT_FOUND = NOT_FOUND, "H0302", "there is nothing here by that name";
    /// The bytes are gone.
    REAPED = GONE, "H0304", "the bytes of this event have been deleted; its identity is kept";
    /// Wrong verb.
    METHOD = METHOD_NOT_ALLOWED, "H0305", "this path does not answer that method";
    /// The token may not.
    FORBIDDEN = FORBIDDEN, "H0306", "this token's role does not allow that";
    /// A token of one app asks about something else.
    OTHER_APP = FORBIDDEN, "H0306", "this token is for one app, and this is not about it";
    /// The `Idempotency-Key` cannot be read.
    BAD_KEY = BAD_REQUEST, "H0307", "the Idempotency-Key cannot be used";
    /// The `Idempotency-Key` came with another request.
    KEY_REUSED = CONFLICT, "H0308", "this Idempotency-Key came with another request before; nothing was done";
    /// A person has to decide first.
    NEEDS_DECISION = CONFLICT, "H0310", "a person has to decide something first; the verdict says what";
    /// The ledger is not what `ifRevision` says.
    MOVED = CONFLICT, "H0311", "the ledger has moved since that revision; the verdict is the new one";
    /// The effect's state does not allow it.
    NOT_NOW = CONFLICT, "H0312", "where the effect stands does not allow that";
    /// The event waits for nobody.
    NOT_HELD = CONFLICT, "H0313", "the event does not wait for a person";
    /// No conflict, or a decided one.
    NO_CONFLICT = CONFLICT, "H0314", "that delivery brought no other body, or somebody has decided about it";
    /// The source of truth does not answer.
    NO_TRUTH = BAD_GATEWAY, "H0315", "the source of truth could not be asked; nothing was changed";
    /// There is nobody to ask.
    NO_RECONCILE = CONFLICT, "H0316", "the event's source has no `reconcile` in the config";
    /// The plan cannot be made.
    NO_PLAN = CONFLICT, "H0317", "the event cannot be planned with the current config";
    /// Another token has this name.
    NAME_TAKEN = CONFLICT, "H0318", "another token has this name";
    /// The claim is somebody else's by now. The code is a word: programs choose by it.
    STALE_FENCE = CONFLICT, "stale_fence", "the claim is not yours any more (hapax explain H0319)";
    /// Hapax carries it out, or nobody may.
    NOT_YOURS = CONFLICT, "H0320", "an effect of this name is not for your own code";
    /// Nothing to cancel.
    NOT_RUNNING = CONFLICT, "H0321", "the replay is not running any more";
    /// Where the key stands is known.
    KEY_NOT_UNKNOWN = CONFLICT, "H0340", "the request with this key is running, or what became of it is known; there is nothing to resolve";
    /// Another run than the one that somebody knows about.
    KEY_RAN_AGAIN = CONFLICT, "H0347", "the request with this key has run again, or was decided about, since you looked; nothing was done";
    /// A request with this key is under way.
    KEY_IN_PROGRESS = CONFLICT, "H0343", "a request with this Idempotency-Key is under way; ask again in a moment";
    /// The answer is not given again.
    KEY_EXPIRED = CONFLICT, "H0344", "this Idempotency-Key has expired; nothing was done";
    /// No turn for one more.
    TOO_MANY_TASKS = CONFLICT, "H0345", "eight background tasks of this application are running; wait for one to end, or cancel it";
    /// Two consumers share a name.
    CONSUMER_BEHIND = CONFLICT, "H0333", "a consumer of this name has read further than the iterator; ask without one to go on where it stands";
    /// No place for one more.
    TOO_MANY_CONSUMERS = CONFLICT, "H0334", "the endpoint has 100 consumers whose place is kept; use one of their names";
    /// Nothing to seal with.
    NO_VAULT_KEY = CONFLICT, "H0323", "no vault key is configured, and secrets are not stored without one";
    /// The provider does not choose its secret.
    NO_OFFER = CONFLICT, "H0324", "this source's provider offers no secret: write it into the config";
    /// A database server has better tools.
    NO_BACKUP = CONFLICT, "H0414", "this store is in PostgreSQL: back it up with pg_dump or continuous archiving";
    /// Something of this name is there.
    UID_TAKEN = CONFLICT, "H0325", "something else has this uid or name already";
    /// Another message has this id.
    EVENT_ID_TAKEN = CONFLICT, "H0326", "another message has this eventId; nothing was sent";
    /// Not in Hapax.
    UNSUPPORTED = NOT_IMPLEMENTED, "H0327", "Hapax does not offer this operation; nothing was done";
    /// No room for one more.
    NO_ROOM = CONFLICT, "H0328", "there are too many endpoints already";
    /// The catalogue changed again and again.
    BUSY = SERVICE_UNAVAILABLE, "H0329", "others changed it at the same time, again and again; try again";
    /// Nothing to show as an example.
    NO_EXAMPLE = CONFLICT, "H0330", "the type has no example in its schema; send one as `payload`";
    /// Not a token of a portal.
    NOT_PORTAL = CONFLICT, "H0331", "only a token of the consumer portal can log itself out";
    /// The endpoint or the message does not allow it.
    NOT_SENT_AGAIN = CONFLICT, "H0332", "it cannot be sent again";
    /// An application sends examples without end.
    TOO_MANY_EXAMPLES = TOO_MANY_REQUESTS, "H0346", "this application has sent 30 examples within a minute; wait for the next one";
    /// Another site's form, or one of an older session.
    OTHER_FORM = FORBIDDEN, "H0341", "the form was not sent by a page of this session; nothing was done";
    /// Somebody tries tokens.
    TOO_MANY_LOGINS = TOO_MANY_REQUESTS, "H0342", "too many logins failed from here; wait a minute";
    /// No such token.
    WRONG_TOKEN = UNAUTHORIZED, "H0301", "this token is not known, or does not count any more";
    /// No place for another stream.
    TOO_MANY_LISTENERS = SERVICE_UNAVAILABLE, "H0322", "too many listen to live events; end a stream, or try again later";
}

#[derive(Serialize)]
struct ProblemBody<'a> {
    code: &'a str,
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<Value>,
}

/// Says what went wrong.
pub fn problem(problem: Problem) -> Answer {
    explained(problem, problem.detail, None)
}

/// Says what went wrong in words of its own, and where things stand.
pub fn explained(problem: Problem, detail: &str, verdict: Option<Value>) -> Answer {
    let body = ProblemBody {
        code: problem.code,
        detail,
        verdict,
    };
    let mut answer = json(problem.status, &body);
    if problem.status == StatusCode::SERVICE_UNAVAILABLE {
        answer
            .headers_mut()
            .insert(RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_SECONDS));
    }
    answer
}

/// A JSON answer.
pub fn json(status: StatusCode, body: &impl Serialize) -> Answer {
    match serde_json::to_vec(body) {
        Ok(bytes) => with_type(status, "application/json", bytes),
        // Only a map with keys that are not text cannot be written, and we have none.
        Err(_) => with_type(
            StatusCode::INTERNAL_SERVER_ERROR,
            "application/json",
            Bytes::from_static(b"{}"),
        ),
    }
}

/// An answer of any content type.
pub fn with_type(status: StatusCode, content_type: &str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    if let Ok(value) = HeaderValue::from_str(content_type) {
        answer.headers_mut().insert(CONTENT_TYPE, value);
    }
    answer
}

/// What whoever asked may conclude when the store fails.
pub fn failed(kind: StoreErrorKind) -> Problem {
    match kind {
        StoreErrorKind::Unavailable | StoreErrorKind::Corrupt | StoreErrorKind::Incompatible => {
            UNAVAILABLE
        }
        StoreErrorKind::Full => FULL,
        StoreErrorKind::Overloaded => OVERLOADED,
        StoreErrorKind::CommitUnknown => COMMIT_UNKNOWN,
    }
}
