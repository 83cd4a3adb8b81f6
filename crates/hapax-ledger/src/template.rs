//! Key templates: `{data.object.customer}:{data.object.id}`.
//!
//! A small language instead of a template engine, because a key must be total (a missing field is an error that names
//! it, never an empty text), injective (two different lists of values never give one key) and known beforehand (its
//! fields are extracted in the one pass over the body).

use crate::extract::{Extracted, Fields, Slot};
use crate::field::{BadField, Field};

/// A template, compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
    /// The letters of all literals: they are escaped inside values, and so always mean themselves outside.
    separators: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Value { slot: Slot, name: String },
}

/// The text is no template.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadTemplate {
    /// It would give every event the same key.
    #[error("a key template needs at least one {{field}}")]
    NoField,
    /// Two values touch, so that nobody could tell where one ends.
    #[error("put a separator between the fields before `{{{0}}}`")]
    Touching(String),
    /// A brace without its partner; a literal brace is doubled.
    #[error("a brace is not closed or not opened; write {{{{ or }}}} for a brace itself")]
    Brace,
    /// Backslashes mark what was escaped inside values.
    #[error("a key template cannot contain a backslash outside of a field")]
    Backslash,
    /// What stands between braces is no field.
    #[error(transparent)]
    Field(#[from] BadField),
}

/// A field of the template is not in the event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the field `{field}` is missing")]
pub struct MissingField {
    /// Which.
    pub field: String,
}

impl Template {
    /// Compiles a template; its fields join the set that is extracted.
    pub fn parse(text: &str, fields: &mut Fields) -> Result<Template, BadTemplate> {
        let tokens = tokens(text)?;
        if tokens
            .iter()
            .any(|token| matches!(token, Token::Letter('\\')))
        {
            return Err(BadTemplate::Backslash);
        }
        let mut pieces = Vec::new();
        let mut separators = String::new();
        for token in tokens {
            match (token, pieces.last_mut()) {
                (Token::Letter(letter), Some(Piece::Literal(text))) => text.push(letter),
                (Token::Letter(letter), _) => pieces.push(Piece::Literal(letter.into())),
                (Token::Field(field), Some(Piece::Value { .. })) => {
                    return Err(BadTemplate::Touching(field.to_string()));
                }
                (Token::Field(field), _) => {
                    let name = field.to_string();
                    pieces.push(Piece::Value {
                        slot: fields.add(&field),
                        name,
                    });
                }
            }
            if let Some(Piece::Literal(text)) = pieces.last() {
                separators.extend(text.chars().last());
            }
        }
        if !pieces
            .iter()
            .any(|piece| matches!(piece, Piece::Value { .. }))
        {
            return Err(BadTemplate::NoField);
        }
        Ok(Template { pieces, separators })
    }

    /// The fields it reads.
    pub fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Value { slot, .. } => Some(*slot),
            Piece::Literal(_) => None,
        })
    }

    /// The key of an event. An empty value counts as missing.
    pub fn render(&self, fields: &Extracted<'_>) -> Result<String, MissingField> {
        let mut text = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(literal) => text.push_str(literal),
                Piece::Value { slot, name } => match fields.filled(*slot) {
                    Some(value) => self.escape(value, &mut text),
                    None => {
                        return Err(MissingField {
                            field: name.clone(),
                        });
                    }
                },
            }
        }
        Ok(text)
    }

    /// After this, the first separator that is not escaped ends the value: that is why keys are injective.
    fn escape(&self, value: &str, text: &mut String) {
        for letter in value.chars() {
            if letter == '\\' || self.separators.contains(letter) {
                text.push('\\');
            }
            text.push(letter);
        }
    }
}

enum Token {
    Letter(char),
    Field(Field),
}

fn tokens(text: &str) -> Result<Vec<Token>, BadTemplate> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let after = &rest[letter.len_utf8()..];
        rest = match letter {
            '{' | '}' if after.starts_with(letter) => {
                tokens.push(Token::Letter(letter));
                &after[1..]
            }
            '}' => return Err(BadTemplate::Brace),
            '{' => {
                let (name, after) = after.split_once('}').ok_or(BadTemplate::Brace)?;
                tokens.push(Token::Field(name.parse()?));
                after
            }
            plain => {
                tokens.push(Token::Letter(plain));
                after
            }
        };
    }
    Ok(tokens)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::{BodyFormat, NoHeaders};
    use proptest::prelude::*;

    fn render(template: &str, body: &str) -> Result<String, MissingField> {
        let mut fields = Fields::new();
        let template = Template::parse(template, &mut fields).expect(template);
        assert_eq!(template.slots().count(), fields.len());
        let found = fields
            .extract(BodyFormat::Json, body.as_bytes(), &NoHeaders)
            .expect(body);
        template.render(&found)
    }

    #[test]
    fn values_are_filled_in_and_separators_inside_them_escaped() {
        let table = [
            ("{a}:{b}", r#"{"a":"cus_1","b":"in_1"}"#, "cus_1:in_1"),
            ("{a}:{b}", r#"{"a":"x:y","b":"z\\"}"#, r"x\:y:z\\"),
            ("inv-{a}", r#"{"a":1.50}"#, "inv-1.5"),
            ("{{{a}}}", r#"{"a":"{x}"}"#, r"{\{x\}}"),
            ("{a.b.0}", r#"{"a":{"b":[true]}}"#, "true"),
        ];
        for (template, body, key) in table {
            assert_eq!(render(template, body).as_deref(), Ok(key), "{template}");
        }
    }

    #[test]
    fn a_missing_or_empty_field_is_an_error_that_names_it() {
        for body in [
            "{}",
            r#"{"a":1,"b":""}"#,
            r#"{"a":1,"b":null}"#,
            r#"{"a":1,"b":{}}"#,
        ] {
            let missing = render("{a}:{b}", body).expect_err(body);
            assert_eq!(missing.field, if body == "{}" { "a" } else { "b" });
        }
    }

    #[test]
    fn what_could_not_be_told_apart_is_no_template() {
        let table = [
            ("", BadTemplate::NoField),
            ("constant", BadTemplate::NoField),
            ("{a}{b}", BadTemplate::Touching("b".into())),
            ("{a", BadTemplate::Brace),
            ("a}", BadTemplate::Brace),
            (r"{a}\{b}", BadTemplate::Backslash),
            ("{}", BadTemplate::Field(BadField::Empty(String::new()))),
        ];
        for (text, error) in table {
            assert_eq!(
                Template::parse(text, &mut Fields::new()),
                Err(error),
                "{text}"
            );
        }
    }

    proptest! {
        /// D6: two lists of values never give one key, whatever the separator.
        #[test]
        fn a_template_is_injective(
            separator in prop::sample::select(vec![":", "::", ":a", "#{{", "ab"]),
            one in ("[ab:\\\\#{]{1,5}", "[ab:\\\\#{]{1,5}"),
            two in ("[ab:\\\\#{]{1,5}", "[ab:\\\\#{]{1,5}"),
        ) {
            let template = format!("{{x}}{separator}{{y}}");
            let key = |values: &(String, String)| {
                let body = serde_json::json!({"x": values.0, "y": values.1}).to_string();
                render(&template, &body).expect("both are there")
            };
            prop_assert_eq!(key(&one) == key(&two), one == two);
        }
    }
}
