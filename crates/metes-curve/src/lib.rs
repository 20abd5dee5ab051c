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
mod constructors;
mod convolution;
mod curve;
mod document;
mod error;
mod extended;
mod number;
mod periodic;
mod pointwise;
mod section;

pub use algebra::{Algebra, LIMIT};
pub use curve::{Curve, Element, Value};
pub use document::DocumentError;
pub use error::Error;
pub use number::{NotANumber, Rational};
