//! The recogniser: a recursive descent over the part of the expression language that is plain.

use super::{NotPlain, Operand, Relation, Test};
use crate::field::{Field, Place};
use crate::number::Decimal;

/// The deepest nesting of parentheses and negations. Deeper ones are not plain, and cost no stack here.
const NESTING_MAX: usize = 32;
/// The longest chain of `&&` and `||`, for the same reason: evaluation follows the tree.
const TERMS_MAX: usize = 64;

/// Long signs first: `<=` is not `<` and something.
const RELATIONS: [(&str, Relation); 6] = [
    ("==", Relation::Equal),
    ("!=", Relation::NotEqual),
    ("<=", Relation::LessOrEqual),
    (">=", Relation::GreaterOrEqual),
    ("<", Relation::Less),
    (">", Relation::Greater),
];

/// Parses a whole condition into its fields and its test.
pub(super) fn parse(text: &str) -> Result<(Vec<Field>, Test), NotPlain> {
    let mut parser = Parser {
        rest: text,
        fields: Vec::new(),
        nesting: 0,
        terms: 0,
    };
    let test = parser.or()?;
    if parser.peek().is_some() {
        return Err(parser.fail("something follows"));
    }
    Ok((parser.fields, test))
}

struct Parser<'t> {
    rest: &'t str,
    fields: Vec<Field>,
    nesting: usize,
    terms: usize,
}

impl<'t> Parser<'t> {
    fn fail(&self, why: &'static str) -> NotPlain {
        let rest = self.rest.chars().take(20).collect();
        NotPlain { why, rest }
    }

    fn peek(&mut self) -> Option<char> {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        self.rest.chars().next()
    }

    fn take(&mut self, sign: &str) -> bool {
        self.peek();
        match self.rest.strip_prefix(sign) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn or(&mut self) -> Result<Test, NotPlain> {
        let mut test = self.and()?;
        while self.take("||") {
            test = Test::Or(Box::new(test), Box::new(self.and()?));
        }
        Ok(test)
    }

    fn and(&mut self) -> Result<Test, NotPlain> {
        let mut test = self.term()?;
        while self.take("&&") {
            test = Test::And(Box::new(test), Box::new(self.term()?));
        }
        Ok(test)
    }

    fn term(&mut self) -> Result<Test, NotPlain> {
        self.terms += 1;
        if self.terms > TERMS_MAX {
            return Err(self.fail("too many terms"));
        }
        if self.peek() == Some('!') || self.peek() == Some('(') {
            let test = self.unary()?;
            // `!a == b` negates `a` only, and `(a) == b` compares what is in parentheses: neither is plain.
            return if self.relation().is_some() || self.keyword("in") {
                Err(self.fail("a comparison of a comparison"))
            } else {
                Ok(test)
            };
        }
        let left = self.operand()?;
        if let Some(relation) = self.relation() {
            let right = self.operand()?;
            return self.comparison(left, relation, right);
        }
        if self.keyword("in") {
            return Ok(Test::In(left, self.list()?));
        }
        match left {
            Operand::Field(place) => Ok(Test::Flag(place)),
            Operand::Bool(value) => Ok(Test::Literal(value)),
            Operand::Text(_) | Operand::Number(_) => Err(self.fail("no comparison")),
        }
    }

    fn unary(&mut self) -> Result<Test, NotPlain> {
        self.nesting += 1;
        if self.nesting > NESTING_MAX {
            return Err(self.fail("nested too deeply"));
        }
        let test = if self.take("!") {
            Test::Not(Box::new(self.unary()?))
        } else if self.take("(") {
            let inner = self.or()?;
            if !self.take(")") {
                return Err(self.fail("no closing parenthesis"));
            }
            inner
        } else {
            match self.operand()? {
                Operand::Field(place) => Test::Flag(place),
                Operand::Bool(value) => Test::Literal(value),
                Operand::Text(_) | Operand::Number(_) => return Err(self.fail("no condition")),
            }
        };
        self.nesting -= 1;
        Ok(test)
    }

    fn relation(&mut self) -> Option<Relation> {
        let found = RELATIONS.iter().find(|(sign, _)| self.take(sign));
        found.map(|(_, relation)| *relation)
    }

    /// Order is plain for numbers only.
    fn comparison(
        &self,
        left: Operand,
        relation: Relation,
        right: Operand,
    ) -> Result<Test, NotPlain> {
        let has_order =
            |operand: &Operand| matches!(operand, Operand::Field(_) | Operand::Number(_));
        match relation {
            Relation::Equal | Relation::NotEqual => Ok(Test::Compare(left, relation, right)),
            _ if has_order(&left) && has_order(&right) => Ok(Test::Compare(left, relation, right)),
            _ => Err(self.fail("an order of what is no number")),
        }
    }

    fn list(&mut self) -> Result<Vec<Operand>, NotPlain> {
        if !self.take("[") {
            return Err(self.fail("no list"));
        }
        let mut items = Vec::new();
        while !self.take("]") {
            if !items.is_empty() && !self.take(",") {
                return Err(self.fail("no comma"));
            }
            match self.operand()? {
                Operand::Field(_) => return Err(self.fail("a field in a list")),
                literal => items.push(literal),
            }
        }
        Ok(items)
    }

    fn operand(&mut self) -> Result<Operand, NotPlain> {
        match self.peek() {
            Some('"' | '\'') => self.string().map(Operand::Text),
            Some('-' | '0'..='9') => self.number(),
            Some(letter) if letter == '_' || letter.is_ascii_alphabetic() => self.name(),
            _ => Err(self.fail("no value")),
        }
    }

    fn number(&mut self) -> Result<Operand, NotPlain> {
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || "+-._".contains(letter);
        let end = self
            .rest
            .find(|letter| !is_part(letter))
            .unwrap_or(self.rest.len());
        let number = Decimal::parse(&self.rest[..end]).ok_or_else(|| self.fail("not a number"))?;
        self.rest = &self.rest[end..];
        Ok(Operand::Number(number))
    }

    fn string(&mut self) -> Result<String, NotPlain> {
        let mut letters = self.rest.chars();
        let quote = letters.next();
        let mut text = String::new();
        loop {
            let letter = letters.next();
            if letter == quote {
                break;
            }
            match (
                letter,
                letter
                    .filter(|letter| *letter == '\\')
                    .and_then(|_| letters.next()),
            ) {
                (Some('\\'), Some(plain @ ('\\' | '"' | '\''))) => text.push(plain),
                (Some('\\'), Some('n')) => text.push('\n'),
                (Some('\\'), Some('t')) => text.push('\t'),
                (Some('\\'), Some('r')) => text.push('\r'),
                (None | Some('\\' | '\n' | '\r'), _) => return Err(self.fail("no plain string")),
                (Some(plain), _) => text.push(plain),
            }
        }
        self.rest = letters.as_str();
        Ok(text)
    }

    /// A word that is not the beginning of a longer one.
    fn keyword(&mut self, word: &str) -> bool {
        self.peek();
        let is_whole = self.word() == word;
        is_whole && self.take(word)
    }

    fn word(&self) -> &'t str {
        let is_part = |letter: char| letter == '_' || letter.is_ascii_alphanumeric();
        let end = self
            .rest
            .find(|letter| !is_part(letter))
            .unwrap_or(self.rest.len());
        &self.rest[..end]
    }

    /// A field: names joined by dots, `[0]` and `["any name"]`. `header["x-topic"]` reads a header.
    fn name(&mut self) -> Result<Operand, NotPlain> {
        let first = self.word();
        self.rest = &self.rest[first.len()..];
        match first {
            "true" => return Ok(Operand::Bool(true)),
            "false" => return Ok(Operand::Bool(false)),
            "null" | "in" => return Err(self.fail("a reserved word")),
            _ => {}
        }
        let mut segments = vec![first.to_owned()];
        loop {
            if self.take(".") {
                let word = self.word();
                if word.is_empty() || word.starts_with(|letter: char| letter.is_ascii_digit()) {
                    return Err(self.fail("no name"));
                }
                segments.push(word.to_owned());
                self.rest = &self.rest[word.len()..];
            } else if self.take("[") {
                segments.push(self.index()?);
            } else {
                break;
            }
        }
        if self.peek() == Some('(') {
            return Err(self.fail("a call"));
        }
        self.field(segments)
    }

    fn index(&mut self) -> Result<String, NotPlain> {
        let segment = match self.peek() {
            Some('"' | '\'') => self.string()?,
            Some('0'..='9') => {
                let word = self.word();
                self.rest = &self.rest[word.len()..];
                word.to_owned()
            }
            _ => return Err(self.fail("no index")),
        };
        if self.take("]") {
            Ok(segment)
        } else {
            Err(self.fail("no closing bracket"))
        }
    }

    fn field(&mut self, segments: Vec<String>) -> Result<Operand, NotPlain> {
        let field = match segments.as_slice() {
            [header, name] if header == "header" => Field::header(name),
            _ => Field::of_segments(segments),
        };
        let field = field.map_err(|_| self.fail("no field"))?;
        let known = self.fields.iter().position(|other| *other == field);
        let place = known.unwrap_or(self.fields.len());
        if known.is_none() {
            self.fields.push(field);
        }
        Ok(Operand::Field(place))
    }
}

/// A string literal.
pub(super) fn quoted(text: &str) -> String {
    let escapes = [
        ("\\", "\\\\"),
        ("\"", "\\\""),
        ("\n", "\\n"),
        ("\t", "\\t"),
        ("\r", "\\r"),
    ];
    let inner = escapes
        .iter()
        .fold(text.to_owned(), |text, (plain, escaped)| {
            text.replace(plain, escaped)
        });
    format!("\"{inner}\"")
}

/// A field as a condition writes it.
pub(super) fn path_text(field: Option<&Field>) -> String {
    match field.map(Field::place) {
        Some(Place::Header(name)) => format!("header[{}]", quoted(name)),
        Some(Place::Body { segments, .. }) => {
            let (first, rest) = segments
                .split_first()
                .map_or(("", [].as_slice()), |(first, rest)| (first, rest));
            let tail: String = rest
                .iter()
                .map(|segment| format!("[{}]", quoted(segment)))
                .collect();
            format!("{first}{tail}")
        }
        None => String::new(),
    }
}
