//! Single configurations on request: how a search that is not ours asks and is
//! told, by number or by the values of the space's parameters.
//!
//! Invariant: an answer is the row that an exploration to the end has for the
//! number, and the same whenever and however often it is asked for.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::document::Heap;
use super::evaluate::Evaluator;
use super::row::Row;
use crate::space::{Axis, AxisError, AxisValues, Space};

/// A space, for whoever wants to choose from it.
#[derive(Clone, Debug, Serialize)]
pub struct SpaceAxes {
    /// Different configurations; numbers go from zero to one below.
    pub space: u64,
    /// Grid points, dead parameters counted.
    pub raw: String,
    /// How many heaps to compare with there are; they have the first numbers.
    pub baselines: u64,
    /// The parameters and their values.
    pub axes: Vec<Axis>,
}

impl SpaceAxes {
    /// Those of a space.
    pub fn of(space: &Space) -> Self {
        SpaceAxes {
            space: space.size(),
            raw: space.raw().to_string(),
            baselines: space.baselines(),
            axes: space.axes(),
        }
    }
}

/// A configuration and what became of it.
#[derive(Clone, Debug, Serialize)]
pub struct Answer {
    /// The heap and its metrics.
    #[serde(flatten)]
    pub heap: Heap,
    /// The values of the space's parameters; none for a heap to compare with.
    pub values: Option<AxisValues>,
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuestionError {
    /// It is no question.
    #[error(
        "`{text}` is no question ({why}): ask for a number, as in 17, or for values, as in \
         {{\"values\": {{\"list.fit\": \"best\"}}}}"
    )]
    Form {
        /// What was asked.
        text: String,
        /// What is wrong with it.
        why: String,
    },
    /// The number is not of the space.
    #[error("the space has no configuration {number}: its numbers go from 0 to {last}")]
    Number {
        /// The number.
        number: u64,
        /// The largest that there is.
        last: u64,
    },
    /// The values are not of the space.
    #[error("{0}")]
    Values(#[from] AxisError),
}

/// A question as JSON: a number, or one of two keys.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    number: Option<u64>,
    values: Option<AxisValues>,
}

impl QuestionError {
    /// Whether the values are of the space, but together no heap: what a search
    /// may well ask for.
    pub fn is_no_heap(&self) -> bool {
        matches!(self, QuestionError::Values(AxisError::NoHeap))
    }
}

/// Answers questions about configurations of a space.
#[derive(Clone, Debug)]
pub struct Dialogue<'e> {
    evaluator: Evaluator<'e>,
    rows: HashMap<u64, Row>,
}

impl<'e> Dialogue<'e> {
    /// Answers by an evaluator's replays.
    pub fn new(evaluator: Evaluator<'e>) -> Self {
        Dialogue {
            evaluator,
            rows: HashMap::new(),
        }
    }

    /// Configurations replayed so far, each once.
    pub fn replayed(&self) -> usize {
        self.rows.len()
    }

    /// The number that a question is for: `17`, `{"number": 17}` or
    /// `{"values": {"list.fit": "best"}}`, where parameters that are left out
    /// have their first value.
    ///
    /// # Errors
    /// [`QuestionError`] for what is no question, and for what the space does not
    /// have.
    pub fn number(&self, question: &str) -> Result<u64, QuestionError> {
        let space = self.evaluator.space();
        let number = match read(question)? {
            Question {
                number: Some(number),
                values: None,
            } => number,
            Question {
                number: None,
                values: Some(values),
            } => space.number(&values)?,
            _ => return Err(form(question, "give either `number` or `values`")),
        };
        match number < space.size() {
            true => Ok(number),
            false => Err(QuestionError::Number {
                number,
                last: space.size().saturating_sub(1),
            }),
        }
    }

    /// Replays the configuration of a question to its end; one that was replayed
    /// before is remembered.
    ///
    /// # Errors
    /// As [`number`](Self::number).
    pub fn answer(&mut self, question: &str) -> Result<Answer, QuestionError> {
        let number = self.number(question)?;
        let space = self.evaluator.space();
        let evaluator = &self.evaluator;
        let row = self.rows.entry(number);
        let row = row.or_insert_with(|| evaluator.row(number, None));
        let heap = Heap::of(space, row).ok_or(QuestionError::Number {
            number,
            last: space.size().saturating_sub(1),
        })?;
        Ok(Answer {
            heap,
            values: space.values(number),
        })
    }
}

fn form(text: &str, why: impl ToString) -> QuestionError {
    QuestionError::Form {
        text: text.trim().to_owned(),
        why: why.to_string(),
    }
}

fn read(text: &str) -> Result<Question, QuestionError> {
    let value: Value = serde_json::from_str(text).map_err(|error| form(text, error))?;
    if let Some(number) = value.as_u64() {
        return Ok(Question {
            number: Some(number),
            values: None,
        });
    }
    if !value.is_object() {
        return Err(form(text, "neither a number from 0 nor an object"));
    }
    serde_json::from_value(value).map_err(|error| form(text, error))
}
