//! The signed content as a template: what exactly the provider hashed.

use crate::json::Path;
use crate::refusal::Coverage;

/// One piece of the signed content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    Literal(Vec<u8>),
    Body,
    Timestamp,
    Id,
    Url,
    /// Path and query of the URL.
    Path,
    Method,
    MethodLower,
    Header(String),
    /// A scalar of the JSON body; an optional one that is missing is empty text.
    BodyField {
        path: Path,
        optional: bool,
    },
    FormField(String),
    Query(String),
    /// All form fields, `name` directly followed by `value`, sorted.
    SortedForm {
        unique: bool,
    },
    /// The headers that the named header lists, as `name:value` joined by `;`.
    SignedHeaders(String),
    Secret,
}

/// The signed content, piece by piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Template {
    pub(crate) parts: Vec<Part>,
}

impl Template {
    /// Parses `{timestamp}.{body}` and the like; the error says what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Template, String> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            literal.push_str(&rest[..at]);
            rest = &rest[at..];
            if let Some(after) = rest.strip_prefix("{{") {
                literal.push('{');
                rest = after;
            } else if let Some(after) = rest.strip_prefix("}}") {
                literal.push('}');
                rest = after;
            } else {
                let inner = rest
                    .strip_prefix('{')
                    .ok_or("a `}` closes nothing; write `}}` for the character")?;
                let end = inner.find('}').ok_or("a `{` is not closed")?;
                if !literal.is_empty() {
                    parts.push(Part::Literal(std::mem::take(&mut literal).into_bytes()));
                }
                parts.push(part(&inner[..end])?);
                rest = &inner[end + 1..];
            }
        }
        literal.push_str(rest);
        if !literal.is_empty() {
            parts.push(Part::Literal(literal.into_bytes()));
        }
        if !parts.iter().any(|p| !matches!(p, Part::Literal(_))) {
            return Err("nothing of the request is in it".to_owned());
        }
        Ok(Template { parts })
    }

    pub(crate) fn has(&self, wanted: impl Fn(&Part) -> bool) -> bool {
        self.parts.iter().any(wanted)
    }

    pub(crate) fn needs_json(&self) -> bool {
        self.has(|part| matches!(part, Part::BodyField { .. }))
    }

    pub(crate) fn needs_form(&self) -> bool {
        self.has(|part| matches!(part, Part::FormField(_) | Part::SortedForm { .. }))
    }

    /// How much of the body the content holds.
    pub(crate) fn coverage(&self) -> Coverage {
        if self.has(|part| matches!(part, Part::Body | Part::SortedForm { .. })) {
            Coverage::Body
        } else if self.needs_json() || self.needs_form() {
            Coverage::Partial
        } else {
            Coverage::Nothing
        }
    }
}

fn part(name: &str) -> Result<Part, String> {
    let simple = match name {
        "body" => Part::Body,
        "timestamp" => Part::Timestamp,
        "id" => Part::Id,
        "url" => Part::Url,
        "path" => Part::Path,
        "method" => Part::Method,
        "method-lower" => Part::MethodLower,
        "sorted-form" => Part::SortedForm { unique: false },
        "sorted-unique-form" => Part::SortedForm { unique: true },
        "secret" => Part::Secret,
        _ => return dotted(name),
    };
    Ok(simple)
}

fn dotted(name: &str) -> Result<Part, String> {
    let unknown = || format!("`{{{name}}}` is no part of a request");
    let (kind, rest) = name.split_once('.').ok_or_else(unknown)?;
    if rest.is_empty() {
        return Err(unknown());
    }
    match kind {
        "header" => Ok(Part::Header(rest.to_ascii_lowercase())),
        "signed-headers" => Ok(Part::SignedHeaders(rest.to_ascii_lowercase())),
        "form" => Ok(Part::FormField(rest.to_owned())),
        "query" => Ok(Part::Query(rest.to_owned())),
        "body" => {
            let path = rest.strip_suffix('?');
            Ok(Part::BodyField {
                path: Path::new(path.unwrap_or(rest)),
                optional: path.is_some(),
            })
        }
        _ => Err(unknown()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_parts_and_literals() {
        let template = Template::parse("v0:{timestamp}:{body}").expect("valid");
        assert_eq!(
            template.parts,
            [
                Part::Literal(b"v0:".to_vec()),
                Part::Timestamp,
                Part::Literal(b":".to_vec()),
                Part::Body
            ]
        );
        let template = Template::parse("{{{header.X-Id}}}").expect("valid");
        assert_eq!(
            template.parts,
            [
                Part::Literal(b"{".to_vec()),
                Part::Header("x-id".to_owned()),
                Part::Literal(b"}".to_vec())
            ]
        );
    }

    #[test]
    fn says_what_is_wrong() {
        for text in [
            "",
            "abc",
            "{body",
            "body}",
            "{nope}",
            "{header.}",
            "{cookie.a}",
        ] {
            assert!(Template::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn knows_what_it_covers() {
        for (text, want) in [
            ("{timestamp}.{body}", Coverage::Body),
            ("{url}{sorted-form}", Coverage::Body),
            ("{body.a}:{body.b?}", Coverage::Partial),
            ("{timestamp}", Coverage::Nothing),
        ] {
            assert_eq!(Template::parse(text).expect("valid").coverage(), want);
        }
    }
}
