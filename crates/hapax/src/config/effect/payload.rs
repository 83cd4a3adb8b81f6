//! A body as conditions of the full language see it: every top-level field a variable.
//!
//! Building it costs more than the rest of an intake, so it is done once per event, and only where such a condition is
//! asked.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use cel::objects::Key;
use cel::{Context, Env, Value};
use hapax_ledger::extract::BodyFormat;
use serde_json::Value as Json;

/// The largest body that is built. A condition runs before the answer to the sender, and a larger body takes
/// milliseconds.
pub const PAYLOAD_BYTES_MAX: usize = 256 * 1024;
/// The longest list or object that a condition may loop over: two loops within each other make a million rounds of it.
pub const ITEMS_MAX: usize = 1_000;

/// The language: its standard library as this build has it, without regular expressions and clocks.
pub(super) static LANGUAGE: LazyLock<Arc<Env>> =
    LazyLock::new(|| Arc::new(Env::stdlib().with_optional_support(false)));

/// A body, ready to be asked.
pub struct Payload {
    pub(super) context: Context<'static, 'static>,
    /// The length of its longest list or object.
    pub(super) items_most: usize,
}

/// Why a body cannot be asked: a person has to look at the event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Larger than [`PAYLOAD_BYTES_MAX`].
    #[error("the body has {0} bytes, and conditions are asked of at most {PAYLOAD_BYTES_MAX}")]
    Large(usize),
    /// Not what it looks like, or nested too deeply.
    #[error("the body cannot be read: {0}")]
    Malformed(String),
    /// A loop would take too long.
    #[error(
        "the body has a list or object of {0} items, and a condition loops over at most {ITEMS_MAX}"
    )]
    Long(usize),
}

impl Payload {
    /// Builds a body.
    ///
    /// # Errors
    /// If it is too large, or nothing that has fields.
    pub fn new(body: &[u8]) -> Result<Payload, Unreadable> {
        let mut payload = Payload {
            context: Context::with_env(LANGUAGE.clone()),
            items_most: 0,
        };
        if let Json::Object(fields) = read(body)? {
            payload.items_most = fields.len();
            for (name, field) in fields {
                payload.add(name, field);
            }
        }
        Ok(payload)
    }

    /// Builds a body and, as the variable `snapshot`, what the source of truth said.
    ///
    /// # Errors
    /// As [`Payload::new`], for either of them.
    pub fn with_snapshot(body: &[u8], snapshot: &[u8]) -> Result<Payload, Unreadable> {
        let mut payload = Payload::new(body)?;
        payload.add("snapshot".to_owned(), read(snapshot)?);
        Ok(payload)
    }

    fn add(&mut self, name: String, value: Json) {
        let value = convert(value, &mut self.items_most);
        self.context.add_variable_from_value(name, value);
    }
}

fn read(body: &[u8]) -> Result<Json, Unreadable> {
    if body.len() > PAYLOAD_BYTES_MAX {
        return Err(Unreadable::Large(body.len()));
    }
    match format_of(body) {
        BodyFormat::Json => {
            serde_json::from_slice(body).map_err(|error| Unreadable::Malformed(error.to_string()))
        }
        // Of repeated names the last one counts, as in JSON.
        BodyFormat::Form => Ok(form_urlencoded::parse(body)
            .map(|(name, value)| (name.into_owned(), Json::String(value.into_owned())))
            .collect()),
        BodyFormat::Opaque => Ok(Json::Null),
    }
}

/// How to read a body, by its bytes alone. The content type is the sender's word and no signature covers it: whoever
/// replays a captured request with another one must not get another key (B4).
pub(crate) fn format_of(body: &[u8]) -> BodyFormat {
    match body.iter().find(|byte| !byte.is_ascii_whitespace()) {
        Some(b'{' | b'[') => BodyFormat::Json,
        // A form is one word of name=value pairs. Anything else is no body that fields can be read from, and reading
        // it as JSON says so.
        _ if body.contains(&b'=') && body.iter().all(u8::is_ascii_graphic) => BodyFormat::Form,
        _ => BodyFormat::Json,
    }
}

fn convert(json: Json, items_most: &mut usize) -> Value {
    match json {
        Json::Null => Value::Null,
        Json::Bool(flag) => Value::Bool(flag),
        // Whole numbers are `int`, as literals are: `amount % 100 == 0` has to work.
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(int), _) => Value::Int(int),
            (None, Some(uint)) => Value::UInt(uint),
            (None, None) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Json::String(text) => Value::String(Arc::new(text)),
        Json::Array(items) => {
            *items_most = items.len().max(*items_most);
            let items = items.into_iter().map(|item| convert(item, items_most));
            Value::List(Arc::new(items.collect()))
        }
        Json::Object(fields) => {
            *items_most = fields.len().max(*items_most);
            let fields = fields.into_iter().map(|(name, field)| {
                let key = Key::String(Arc::new(name));
                (key, convert(field, items_most))
            });
            Value::Map(fields.collect::<HashMap<Key, Value>>().into())
        }
    }
}
