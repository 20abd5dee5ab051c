//! Curves as JSON: `{"T", "d", "c", "elements"}`, numbers as strings such as `"22/7"`.
//!
//! Elements are `{"k": "p", "t", "v"}` and `{"k": "s", "t0", "t1", "v0", "slope"}`; values may be
//! `"+inf"` or `"-inf"`. Other keys, such as `type`, are passed over.
//!
//! Invariant: what is written and read again is the same curve.

use serde::{Deserialize, Serialize};

use crate::curve::{Curve, Element, Value};
use crate::error::Error;
use crate::number::{NotANumber, Rational};

/// Why a document is no curve.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DocumentError {
    /// It is no such JSON.
    #[error("this is no curve in JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A number is none.
    #[error(transparent)]
    Number(#[from] NotANumber),
    /// It describes no curve.
    #[error(transparent)]
    Curve(#[from] Error),
}

#[derive(Serialize, Deserialize)]
struct Document {
    #[serde(rename = "T")]
    transient: String,
    #[serde(rename = "d")]
    period: String,
    #[serde(rename = "c")]
    step: String,
    elements: Vec<Part>,
}

#[derive(Serialize, Deserialize)]
#[serde(tag = "k")]
enum Part {
    #[serde(rename = "p")]
    Point { t: String, v: String },
    #[serde(rename = "s")]
    Segment {
        t0: String,
        t1: String,
        v0: String,
        slope: String,
    },
}

impl Curve {
    /// Reads a curve.
    ///
    /// # Errors
    /// [`DocumentError`].
    pub fn from_json(text: &str) -> Result<Self, DocumentError> {
        let document: Document = serde_json::from_str(text)?;
        let elements: Vec<Element> = document
            .elements
            .into_iter()
            .map(Element::try_from)
            .collect::<Result<_, _>>()?;
        // The step of a curve that is infinite in the end may be written as infinite.
        let step = match value(&document.step)? {
            Value::Finite(step) => step,
            Value::NegativeInfinity | Value::PositiveInfinity => Rational::from(0),
        };
        let (transient, period) = (document.transient.parse()?, document.period.parse()?);
        Ok(Curve::new(&elements, &transient, &period, &step)?)
    }

    /// The curve as one line of JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        let document = Document {
            transient: self.transient().to_string(),
            period: self.period().to_string(),
            step: self.step().to_string(),
            elements: self.elements().iter().map(Part::from).collect(),
        };
        // Strings and lists of them can always be written.
        serde_json::to_string(&document).unwrap_or_default()
    }
}

impl TryFrom<Part> for Element {
    type Error = NotANumber;

    fn try_from(part: Part) -> Result<Self, NotANumber> {
        Ok(match part {
            Part::Point { t, v } => Element::Point {
                time: t.parse()?,
                value: value(&v)?,
            },
            Part::Segment { t0, t1, v0, slope } => Element::Segment {
                start: t0.parse()?,
                end: t1.parse()?,
                value: value(&v0)?,
                slope: slope.parse()?,
            },
        })
    }
}

impl From<&Element> for Part {
    fn from(element: &Element) -> Self {
        match element {
            Element::Point { time, value } => Part::Point {
                t: time.to_string(),
                v: value.to_string(),
            },
            Element::Segment {
                start,
                end,
                value,
                slope,
            } => Part::Segment {
                t0: start.to_string(),
                t1: end.to_string(),
                v0: value.to_string(),
                slope: slope.to_string(),
            },
        }
    }
}

pub(crate) fn value(text: &str) -> Result<Value, NotANumber> {
    Ok(match text {
        "+inf" => Value::PositiveInfinity,
        "-inf" => Value::NegativeInfinity,
        number => Value::Finite(number.parse()?),
    })
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Value::NegativeInfinity => f.write_str("-inf"),
            Value::Finite(number) => number.fmt(f),
            Value::PositiveInfinity => f.write_str("+inf"),
        }
    }
}
