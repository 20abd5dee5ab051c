//! Curves of a tandem's file: expressions of `metes curve`'s scripts.

use metes_curve::Curve;
use metes_curve::script::{Found, Interpreter};

/// What to write, for those who wrote something else.
const FORMS: &str = "write bucket(rate, burst), stair(offset, length, height), \
                     ratency(rate, latency), tdma(slot, cycle, bandwidth), delay(time), or an \
                     expression of such curves";

/// The curve that a text such as `bucket(1/2, 8)` names.
pub(super) fn curve(text: &str) -> Result<Curve, String> {
    match Interpreter::default().evaluate(text) {
        Ok(Found::Curve(curve)) => Ok(curve),
        Ok(Found::Number(number)) => Err(format!("`{text}` is the number {number}; {FORMS}")),
        Err(error) => Err(format!(
            "`{text}`, column {}: {}; {FORMS}",
            error.column, error.what
        )),
    }
}
