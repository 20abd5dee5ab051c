//! Exact (min,+) and (max,+) algebra of ultimately pseudo-periodic, piecewise affine curves.
//!
//! A [`Curve`] is a function of time with jumps and infinities; its numbers are fractions of any
//! length. Equal functions are equal structs.
//!
//! ```
//! use metes_curve::{Curve, Element, Rational, Value};
//!
//! // A packet of 3 every 4: a staircase.
//! let number = Rational::from;
//! let stairs = Curve::new(
//!     &[
//!         Element::Point { time: number(0), value: Value::Finite(number(0)) },
//!         Element::Segment {
//!             start: number(0),
//!             end: number(4),
//!             value: Value::Finite(number(3)),
//!             slope: number(0),
//!         },
//!     ],
//!     &number(0),
//!     &number(4),
//!     &number(3),
//! )?;
//! assert_eq!(stairs.value(&number(9)), Some(Value::Finite(number(9))));
//! # Ok::<(), metes_curve::Error>(())
//! ```

#[macro_use]
mod algebra;
mod closure;
mod comparison;
mod composition;
pub mod conformance;
mod constructors;
mod convolution;
mod curve;
mod cut;
mod deconvolution;
mod deviation;
mod document;
mod envelope;
mod error;
mod extended;
mod found;
mod inverse;
mod limits;
mod memo;
mod monotone;
mod number;
mod optimisations;
mod paths;
mod periodic;
pub mod plan;
pub mod plot;
mod pointwise;
pub mod published;
mod query;
mod rounding;
pub mod script;
mod section;
mod settings;

mod together;
mod transform;

pub use curve::{Curve, Element, Value};
pub use cut::{Cut, Prediction};
pub use deviation::Deviation;
pub use document::DocumentError;
pub use error::Error;
pub use inverse::Interval;
pub use memo::Memo;
pub use number::{NotANumber, Rational};
pub use optimisations::Optimisations;
pub use query::Bounds;
pub use settings::{Algebra, LIMIT};
