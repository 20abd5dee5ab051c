//! Scripts in the syntax of the min-plus playgrounds (MPPG).
//!
//! The syntax is that of the RTaW-Pegase min-plus playground as described in the `syntax.md` of
//! [nancy-playground](https://github.com/rzippo/nancy-playground), with some functions more.
//! `docs/curve-command.md` lists all of it.
//!
//! ```
//! use metes_curve::Algebra;
//! use metes_curve::script::{Interpreter, Outcome, Script};
//!
//! let script = "arrival := bucket(1, 4)\nhDev(arrival, ratency(2, 3))";
//! let script = Script::parse(script)?;
//! let mut interpreter = Interpreter::new(Algebra::default());
//! let mut last = None;
//! for statement in script.statements() {
//!     last = Some(interpreter.run(statement)?);
//! }
//! let Some(Outcome::Value(delay)) = last else { panic!() };
//! assert_eq!(delay.to_string(), "5");
//! # Ok::<(), metes_curve::script::ScriptError>(())
//! ```

mod evaluate;
mod parser;
mod pieces;
mod syntax;
mod token;

use std::collections::BTreeMap;
use std::fmt;

pub use evaluate::{Found, Outcome, Plot};
pub use pieces::written;

use crate::curve::Curve;
use crate::settings::Algebra;

/// Where in a script, line and column from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Place {
    line: usize,
    column: usize,
}

impl Place {
    fn error(self, what: String) -> ScriptError {
        ScriptError {
            line: self.line,
            column: self.column,
            what,
        }
    }
}

/// What is wrong with a script, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct ScriptError {
    /// From 1.
    pub line: usize,
    /// In characters, from 1.
    pub column: usize,
    /// What, and what was expected.
    pub what: String,
}

/// A script that was read.
#[derive(Clone, Debug)]
pub struct Script(Vec<Statement>);

/// One line of a script.
#[derive(Clone, Debug)]
pub struct Statement {
    line: syntax::Line,
    place: Place,
}

impl Statement {
    /// On which line of the script it stands, from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.place.line
    }
}

impl Script {
    /// Reads a script whole, before anything is computed.
    ///
    /// # Errors
    /// [`ScriptError`] at the first thing that is wrong.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let lines = parser::parse(text, &mut BTreeMap::new())?;
        Ok(Script(
            lines
                .into_iter()
                .map(|(line, place)| Statement { line, place })
                .collect(),
        ))
    }

    /// Its statements in turn, without empty lines and comments.
    #[must_use]
    pub fn statements(&self) -> &[Statement] {
        &self.0
    }
}

/// Computes statements, and keeps the variables.
#[derive(Clone, Debug, Default)]
pub struct Interpreter {
    algebra: Algebra,
    variables: BTreeMap<String, evaluate::Variable>,
}

impl Interpreter {
    /// Without variables yet.
    #[must_use]
    pub fn new(algebra: Algebra) -> Self {
        Interpreter {
            algebra,
            variables: BTreeMap::new(),
        }
    }

    /// Computes one statement.
    ///
    /// # Errors
    /// [`ScriptError`] at the operation that could not be done.
    pub fn run(&mut self, statement: &Statement) -> Result<Outcome, ScriptError> {
        evaluate::run(self, statement)
    }

    /// Computes an expression of one line, such as `stair(0, 4, 1) * ratency(2, 3)`.
    ///
    /// # Errors
    /// [`ScriptError`].
    pub fn evaluate(&self, expression: &str) -> Result<Found, ScriptError> {
        let mut kinds = self
            .variables
            .iter()
            .map(|(name, variable)| (name.clone(), variable.found.kind()))
            .collect();
        let expression = parser::expression(expression, &mut kinds)?;
        evaluate::expression(self, &expression)
    }

    /// Gives a name to a curve.
    pub fn assign(&mut self, name: &str, curve: Curve) {
        self.variables
            .insert(name.to_owned(), evaluate::Variable::of(curve));
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Found::Number(number) => number.fmt(f),
            Found::Curve(curve) => f.write_str(&written(curve)),
        }
    }
}
