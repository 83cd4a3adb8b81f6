//! Conditions: plain comparisons over fields, recognised and run on the extractor.
//!
//! A condition decides the plan, so it runs on every request before the commit. Nearly all are comparisons of a field with
//! a literal; those are compiled here. Whatever else the expression language allows is [`NotPlain`], and the
//! caller may hand it to a full interpreter.

use std::cmp::Ordering;

use crate::extract::{Extracted, Fields, Scalar, ScalarKind, Slot};
use crate::number::Decimal;

mod parse;

/// A condition, compiled. Every field it names is needed: if one is missing the whole condition is false, also under
/// `!` and `||`, so that nothing happens because something was absent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    slots: Vec<Slot>,
    test: Test,
}

/// The text is not a plain comparison.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a plain comparison: {why} at `{rest}`")]
pub struct NotPlain {
    why: &'static str,
    rest: String,
}

/// A test over the operands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Literal(bool),
    Flag(usize),
    Compare(Operand, Relation, Operand),
    In(Operand, Vec<Operand>),
    Not(Box<Test>),
    And(Box<Test>, Box<Test>),
    Or(Box<Test>, Box<Test>),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operand {
    /// A field, by its place in the condition's own list.
    Field(usize),
    Text(String),
    Number(Decimal),
    Bool(bool),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Relation {
    const fn sign(self) -> &'static str {
        match self {
            Relation::Equal => "==",
            Relation::NotEqual => "!=",
            Relation::Less => "<",
            Relation::LessOrEqual => "<=",
            Relation::Greater => ">",
            Relation::GreaterOrEqual => ">=",
        }
    }
}

/// An operand's value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Value<'a> {
    Text(&'a str),
    Number(Decimal),
    Bool(bool),
}

/// The condition has no value: a field is missing, or two kinds were compared that have no order.
struct NoValue;

impl Condition {
    /// Compiles a condition; its fields join the set that is extracted.
    pub fn parse(text: &str, fields: &mut Fields) -> Result<Condition, NotPlain> {
        let (names, test) = parse::parse(text)?;
        let slots = names.iter().map(|name| fields.add(name)).collect();
        Ok(Condition { slots, test })
    }

    /// The fields it reads.
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// Does it hold? False if a field is missing, or if numbers are asked of what is no number.
    pub fn holds(&self, fields: &Extracted<'_>) -> bool {
        let values: Option<Vec<&Scalar<'_>>> =
            self.slots.iter().map(|slot| fields.scalar(*slot)).collect();
        values.is_some_and(|values| self.test.eval(&values).unwrap_or(false))
    }

    /// The condition in one canonical text, which parses to the same condition.
    pub fn text(&self, fields: &Fields) -> String {
        let names: Vec<String> = self
            .slots
            .iter()
            .map(|slot| parse::path_text(fields.field(*slot)))
            .collect();
        self.test.text(&names)
    }
}

impl Test {
    fn eval(&self, values: &[&Scalar<'_>]) -> Result<bool, NoValue> {
        match self {
            Test::Literal(value) => Ok(*value),
            Test::Flag(place) => match Operand::Field(*place).value(values)? {
                Value::Bool(flag) => Ok(flag),
                Value::Text(_) | Value::Number(_) => Err(NoValue),
            },
            Test::Compare(left, relation, right) => {
                compare(&left.value(values)?, *relation, &right.value(values)?)
            }
            Test::In(needle, list) => {
                let needle = needle.value(values)?;
                let mut found = false;
                for item in list {
                    found |= item.value(values)? == needle;
                }
                Ok(found)
            }
            Test::Not(inner) => Ok(!inner.eval(values)?),
            // Both sides are always looked at: a side without a value makes the whole false, wherever it stands.
            Test::And(left, right) => Ok(left.eval(values)? & right.eval(values)?),
            Test::Or(left, right) => Ok(left.eval(values)? | right.eval(values)?),
        }
    }

    fn text(&self, names: &[String]) -> String {
        match self {
            Test::Literal(value) => value.to_string(),
            Test::Flag(place) => names[*place].clone(),
            Test::Compare(left, relation, right) => {
                format!(
                    "{} {} {}",
                    left.text(names),
                    relation.sign(),
                    right.text(names)
                )
            }
            Test::In(needle, list) => {
                let items: Vec<String> = list.iter().map(|item| item.text(names)).collect();
                format!("{} in [{}]", needle.text(names), items.join(", "))
            }
            Test::Not(inner) => format!("!({})", inner.text(names)),
            Test::And(left, right) => format!("({}) && ({})", left.text(names), right.text(names)),
            Test::Or(left, right) => format!("({}) || ({})", left.text(names), right.text(names)),
        }
    }
}

impl Operand {
    fn value<'v>(&'v self, values: &[&'v Scalar<'_>]) -> Result<Value<'v>, NoValue> {
        match self {
            Operand::Text(text) => Ok(Value::Text(text)),
            Operand::Number(number) => Ok(Value::Number(number.clone())),
            Operand::Bool(flag) => Ok(Value::Bool(*flag)),
            Operand::Field(place) => {
                let scalar = values.get(*place).ok_or(NoValue)?;
                match scalar.kind() {
                    ScalarKind::Text => Ok(Value::Text(scalar.as_str())),
                    ScalarKind::Bool => Ok(Value::Bool(scalar.as_str() == "true")),
                    ScalarKind::Number => Decimal::parse(scalar.as_str())
                        .map(Value::Number)
                        .ok_or(NoValue),
                }
            }
        }
    }

    fn text(&self, names: &[String]) -> String {
        match self {
            Operand::Field(place) => names[*place].clone(),
            Operand::Text(text) => parse::quoted(text),
            Operand::Number(number) => number.to_string(),
            Operand::Bool(flag) => flag.to_string(),
        }
    }
}

/// Values of different kinds are unequal, and have no order.
fn compare(left: &Value<'_>, relation: Relation, right: &Value<'_>) -> Result<bool, NoValue> {
    let order = || match (left, right) {
        (Value::Number(left), Value::Number(right)) => Ok(left.cmp(right)),
        _ => Err(NoValue),
    };
    match relation {
        Relation::Equal => Ok(left == right),
        Relation::NotEqual => Ok(left != right),
        Relation::Less => order().map(Ordering::is_lt),
        Relation::LessOrEqual => order().map(Ordering::is_le),
        Relation::Greater => order().map(Ordering::is_gt),
        Relation::GreaterOrEqual => order().map(Ordering::is_ge),
    }
}

#[cfg(test)]
mod tests;
