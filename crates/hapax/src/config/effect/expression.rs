//! Conditions in the full expression language (CEL), compiled once.
//!
//! Evaluation has no budget of its own, so everything that could make it long is bounded before: the text, its nesting,
//! its loops here, and what it loops over in [`Payload`].

use std::fmt;

use cel::common::ast::{EntryExpr, Expr};
use cel::{IdedExpr, Program, Value};

use super::payload::{ITEMS_MAX, LANGUAGE, Payload, Unreadable};

/// The longest expression; a plain comparison with a list of names may be longer.
pub const EXPRESSION_BYTES_MAX: usize = 2_048;
/// The deepest nesting of an expression: evaluation follows it on the stack.
pub const NESTING_MAX: usize = 48;
/// How many loops (`exists`, `all`, `map`, `filter`) may stand within each other.
pub const LOOPS_NESTED_MAX: usize = 2;

/// Functions that this build of the language has. Another name would fail at every event, and so never hold.
const FUNCTIONS: [&str; 11] = [
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "string",
    "int",
    "uint",
    "double",
    "bytes",
    "type",
    "dyn",
];

/// A condition, compiled.
pub struct Expression {
    text: String,
    program: Program,
    shape: Shape,
    mentions_snapshot: bool,
}

/// Why a text is no condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadExpression {
    /// Longer than [`EXPRESSION_BYTES_MAX`].
    #[error("it is longer than {EXPRESSION_BYTES_MAX} bytes")]
    Long,
    /// Not an expression.
    #[error("{message}, at character {column}")]
    Syntax {
        /// What the parser says.
        message: String,
        /// Where, from 1.
        column: usize,
    },
    /// Nested deeper than [`NESTING_MAX`].
    #[error("it is nested deeper than {NESTING_MAX} levels")]
    Deep,
    /// More loops within each other than [`LOOPS_NESTED_MAX`].
    #[error("more than {LOOPS_NESTED_MAX} loops stand within each other")]
    Loops,
    /// Not a function.
    #[error("there is no function `{0}`")]
    Function(String),
    /// Headers can be read by plain comparisons only.
    #[error("a condition that reads a header has to be a plain comparison")]
    Header,
}

impl Expression {
    /// Compiles a condition.
    ///
    /// # Errors
    /// If it is none, or could take too long.
    pub fn compile(text: &str) -> Result<Expression, BadExpression> {
        if text.len() > EXPRESSION_BYTES_MAX {
            return Err(BadExpression::Long);
        }
        let program = LANGUAGE.compile(text).map_err(|errors| {
            let first = errors.errors.first();
            BadExpression::Syntax {
                message: first.map_or("not an expression", |error| &error.msg).into(),
                column: first.map_or(1, |error| error.pos.1.max(1).unsigned_abs()),
            }
        })?;
        let shape = Shape::of(program.expression());
        if shape.nesting > NESTING_MAX {
            return Err(BadExpression::Deep);
        }
        if shape.loops > LOOPS_NESTED_MAX {
            return Err(BadExpression::Loops);
        }
        let references = program.references();
        let mut functions = references.functions();
        // Operators are functions too, under names that nobody can write.
        functions.retain(|name| name.starts_with(|letter: char| letter.is_ascii_alphabetic()));
        functions.sort_unstable();
        if let Some(name) = functions.iter().find(|name| !FUNCTIONS.contains(name)) {
            return Err(BadExpression::Function((*name).to_owned()));
        }
        if references.has_variable("header") {
            return Err(BadExpression::Header);
        }
        Ok(Expression {
            text: text.to_owned(),
            mentions_snapshot: references.has_variable("snapshot"),
            shape,
            program,
        })
    }

    /// Is it about the snapshot, too?
    pub fn mentions_snapshot(&self) -> bool {
        self.mentions_snapshot
    }

    /// Does it hold? False if it has no value, as where a field is missing.
    ///
    /// # Errors
    /// If it would loop over too many items.
    pub fn holds(&self, payload: &Payload) -> Result<bool, Unreadable> {
        if self.shape.loops > 0 && payload.items_most > ITEMS_MAX {
            return Err(Unreadable::Long(payload.items_most));
        }
        let value = self.program.execute(&payload.context);
        Ok(value == Ok(Value::Bool(true)))
    }
}

impl fmt::Debug for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Expression").field(&self.text).finish()
    }
}

/// How deep an expression goes.
#[derive(Clone, Copy, Debug, Default)]
struct Shape {
    nesting: usize,
    loops: usize,
}

impl Shape {
    fn of(expression: &IdedExpr) -> Shape {
        let inner = match &expression.expr {
            Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Shape::default(),
            Expr::Select(select) => Shape::of(&select.operand),
            Expr::Call(call) => Shape::most(call.target.as_deref().into_iter().chain(&call.args)),
            Expr::List(list) => Shape::most(&list.elements),
            Expr::Map(map) => Shape::entries(map.entries.iter().map(|entry| &entry.expr)),
            Expr::Struct(object) => Shape::entries(object.entries.iter().map(|entry| &entry.expr)),
            Expr::Comprehension(each) => {
                let mut body = Shape::most([
                    &each.accu_init,
                    &each.loop_cond,
                    &each.loop_step,
                    &each.result,
                ]);
                body.loops += 1;
                body.deeper(Shape::of(&each.iter_range))
            }
        };
        Shape {
            nesting: inner.nesting + 1,
            loops: inner.loops,
        }
    }

    fn most<'e>(expressions: impl IntoIterator<Item = &'e IdedExpr>) -> Shape {
        let shapes = expressions.into_iter().map(Shape::of);
        shapes.fold(Shape::default(), Shape::deeper)
    }

    fn entries<'e>(entries: impl Iterator<Item = &'e EntryExpr>) -> Shape {
        let shapes = entries.map(|entry| match entry {
            EntryExpr::StructField(field) => Shape::of(&field.value),
            EntryExpr::MapEntry(entry) => Shape::of(&entry.key).deeper(Shape::of(&entry.value)),
        });
        shapes.fold(Shape::default(), Shape::deeper)
    }

    fn deeper(self, other: Shape) -> Shape {
        Shape {
            nesting: self.nesting.max(other.nesting),
            loops: self.loops.max(other.loops),
        }
    }
}

#[cfg(test)]
mod tests;
