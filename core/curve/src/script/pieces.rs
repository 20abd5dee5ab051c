//! `uaf(…)` and `upp(…)`: from segments to curves, and back.
//!
//! Invariant: what [`written`] gives is read as the same curve.

use super::syntax::{Expression, Part, Pieces};
use super::{Place, ScriptError};
use crate::curve::{Curve, Element, Value};
use crate::number::Rational;

/// A curve as `uaf(…)` if it is affine in the end, else as `upp(…)`. Linear.
#[must_use]
pub fn written(curve: &Curve) -> String {
    let elements = curve.elements();
    let transient = curve.transient();
    let affine = curve.is_ultimately_affine() || infinite_in_the_end(&elements, &transient);
    let (mut before, mut behind) = (Vec::new(), Vec::new());
    let count = elements.len() / 2;
    for (index, pair) in elements.chunks(2).enumerate() {
        let [
            Element::Point { time, value: at },
            Element::Segment {
                end, value, slope, ..
            },
        ] = pair
        else {
            continue;
        };
        if affine && index + 1 == count {
            before.push(segment(time, at, value, slope, None));
        } else if *time < transient && transient < *end {
            // The period begins on a line that the part before it shares.
            let there = on_line(value, slope, &(&transient - time));
            before.push(segment(time, at, value, slope, Some(&transient)));
            behind.push(segment(&transient, &there, &there, slope, Some(end)));
        } else if *time < transient {
            before.push(segment(time, at, value, slope, Some(end)));
        } else {
            behind.push(segment(time, at, value, slope, Some(end)));
        }
    }
    let before = before.join(" ");
    if affine {
        return format!("uaf({before})");
    }
    let behind = behind.join(" ");
    let comma = if before.is_empty() { "" } else { ", " };
    let (step, period) = (curve.step(), curve.period());
    format!("upp({before}{comma}period({behind}), {step}, {period})")
}

/// The value on a line, so long behind its start.
fn on_line(value: &Value, slope: &Rational, behind: &Rational) -> Value {
    match value {
        Value::Finite(value) => Value::Finite(value + &(slope * behind)),
        infinity => infinity.clone(),
    }
}

/// A point and the segment behind it as they are written; without an end it goes on for ever.
fn segment(
    start: &Rational,
    at: &Value,
    after: &Value,
    slope: &Rational,
    end: Option<&Rational>,
) -> String {
    let zero = Rational::from(0);
    let value = match (end, after) {
        (Some(end), after) => on_line(after, slope, &(end - start)),
        (None, Value::Finite(_)) if *slope < zero => Value::NegativeInfinity,
        (None, Value::Finite(_)) if *slope > zero => Value::PositiveInfinity,
        (None, after) => after.clone(),
    };
    let end = end.map_or_else(|| "+inf".to_owned(), Rational::to_string);
    match at == after {
        true => format!("[({start}, {at}) {slope} ({end}, {value})["),
        false => format!("[({start}, {at})] ]({start}, {after}) {slope} ({end}, {value})["),
    }
}

/// Whether there is nothing but one infinity from T on.
fn infinite_in_the_end(elements: &[Element], transient: &Rational) -> bool {
    match elements {
        [
            ..,
            Element::Point { time, value: at },
            Element::Segment { value, .. },
        ] => {
            let infinite = !matches!(value, Value::Finite(_));
            infinite && (time < transient || (time == transient && at == value))
        }
        _ => false,
    }
}

/// A segment, or a point, with its numbers known.
struct Known {
    place: Place,
    start: Rational,
    /// The value at the start, if it belongs to it.
    at: Option<Value>,
    line: Option<Line>,
}

struct Line {
    /// `None` is for ever.
    end: Option<Rational>,
    after: Value,
    slope: Rational,
    end_value: Value,
    closed: bool,
}

/// The curve of what is written.
pub(super) fn curve(
    pieces: &Pieces,
    number: impl Fn(&Expression) -> Result<Value, ScriptError>,
) -> Result<Curve, ScriptError> {
    let known = |parts: &[Part]| -> Result<Vec<Known>, ScriptError> {
        parts.iter().map(|part| read(part, &number)).collect()
    };
    let transient = known(&pieces.transient)?;
    match &pieces.periodic {
        None => ultimately_affine(&transient),
        Some(parts) => {
            let periodic = known(parts)?;
            let option = |expression: &Option<Box<Expression>>| match expression {
                Some(expression) => Ok(Some((number(expression)?, expression.place))),
                None => Ok(None),
            };
            let (step, period) = (option(&pieces.step)?, option(&pieces.period)?);
            pseudo_periodic(&transient, &periodic, step, period)
        }
    }
}

fn read(
    part: &Part,
    number: &impl Fn(&Expression) -> Result<Value, ScriptError>,
) -> Result<Known, ScriptError> {
    let finite = |expression: &Expression, what: &str| match number(expression)? {
        Value::Finite(finite) => Ok(finite),
        _ => Err(expression.place.error(format!("{what} is infinite"))),
    };
    let [time, value] = &part.from;
    let (start, value) = (finite(time, "the start of a segment")?, number(value)?);
    let at = (!part.open_left).then(|| value.clone());
    let Some(rest) = &part.rest else {
        return Ok(Known {
            place: part.place,
            start,
            at,
            line: None,
        });
    };
    let end_value = number(&rest.to[1])?;
    let end = match number(&rest.to[0])? {
        Value::Finite(end) if end > start => Some(end),
        Value::PositiveInfinity => None,
        end => {
            return Err(rest.to[0].place.error(format!(
                "the segment goes from {start} to {end}: time goes on"
            )));
        }
    };
    let zero = Rational::from(0);
    let given = rest.slope.as_ref();
    let given = given.map(|slope| finite(slope, "the slope")).transpose()?;
    let slope = match (&value, &end_value, &end) {
        (Value::Finite(low), Value::Finite(high), Some(end)) => {
            // The end is later than the start, so there is a quotient.
            let rise = (high - low).divided_by(&(end - &start));
            let rise = rise.unwrap_or_else(|| zero.clone());
            if let Some(given) = given.as_ref().filter(|given| **given != rise) {
                return Err(part.place.error(format!(
                    "the segment has slope {given}, and {rise} leads from {low} to {high}"
                )));
            }
            rise
        }
        (Value::Finite(low), high, None) => match given {
            Some(slope) => slope,
            None if *high == Value::Finite(low.clone()) => zero,
            None => {
                return Err(part
                    .place
                    .error("the slope of a segment without end has to be written".into()));
            }
        },
        (low, high, _) if low == high => zero,
        (low, high, _) => {
            return Err(part.place.error(format!(
                "the segment leads from {low} to {high}: a segment is finite, or one infinity"
            )));
        }
    };
    Ok(Known {
        place: part.place,
        start,
        at,
        line: Some(Line {
            end,
            after: value,
            slope,
            end_value,
            closed: !rest.open_right,
        }),
    })
}

/// Elements as far as they were read.
struct Built {
    elements: Vec<Element>,
    /// How far, and the value there if it is known.
    reached: Rational,
    at: Option<Value>,
}

impl Built {
    fn nothing() -> Self {
        Built {
            elements: Vec::new(),
            reached: Rational::from(0),
            at: None,
        }
    }

    fn push(&mut self, part: &Known) -> Result<(), ScriptError> {
        if part.start != self.reached {
            return Err(part.place.error(format!(
                "the segment begins at {}, and {} is reached: segments follow each other from 0 on",
                part.start, self.reached
            )));
        }
        match (&part.at, &self.at) {
            (Some(new), Some(old)) if new != old => {
                return Err(part.place.error(format!(
                    "the value at {} is {new} here, and {old} at the end of the segment before: \
                     leave one of them open",
                    part.start
                )));
            }
            (Some(new), _) => self.at = Some(new.clone()),
            _ => {}
        }
        let Some(line) = &part.line else {
            return Ok(());
        };
        let Some(at) = self.at.take() else {
            return Err(part.place.error(format!(
                "there is no value at {}: one of the segments that meet there is to be closed",
                part.start
            )));
        };
        self.elements.push(Element::Point {
            time: part.start.clone(),
            value: at,
        });
        let end = line.end.clone();
        let end = end.unwrap_or_else(|| &part.start + &Rational::from(1));
        self.elements.push(Element::Segment {
            start: part.start.clone(),
            end: end.clone(),
            value: line.after.clone(),
            slope: line.slope.clone(),
        });
        self.reached = end;
        self.at = line.closed.then(|| line.end_value.clone());
        Ok(())
    }
}

fn at_the_end(known: &[Known]) -> Place {
    known
        .last()
        .map_or(Place { line: 1, column: 1 }, |part| part.place)
}

fn ultimately_affine(parts: &[Known]) -> Result<Curve, ScriptError> {
    let mut built = Built::nothing();
    let place = at_the_end(parts);
    for (index, part) in parts.iter().enumerate() {
        let endless = part.line.as_ref().is_some_and(|line| line.end.is_none());
        if endless != (index + 1 == parts.len()) {
            return Err(part
                .place
                .error("in `uaf` the last segment, and no other, ends at +inf".into()));
        }
        built.push(part)?;
    }
    let last = parts
        .last()
        .and_then(|part| Some((part, part.line.as_ref()?)));
    let Some((part, line)) = last else {
        return Err(place.error("expected a segment that ends at +inf".into()));
    };
    // The value where the last segment begins may be off its line; behind it, it is not.
    let one = Rational::from(1);
    let transient = &part.start + &one;
    let value = match &line.after {
        Value::Finite(after) => Value::Finite(after + &line.slope),
        infinity => infinity.clone(),
    };
    built.elements.push(Element::Point {
        time: transient.clone(),
        value: value.clone(),
    });
    built.elements.push(Element::Segment {
        start: transient.clone(),
        end: &transient + &one,
        value,
        slope: line.slope.clone(),
    });
    let curve = Curve::new(&built.elements, &transient, &one, &line.slope);
    curve.map_err(|error| place.error(error.to_string()))
}

fn pseudo_periodic(
    transient: &[Known],
    periodic: &[Known],
    step: Option<(Value, Place)>,
    period: Option<(Value, Place)>,
) -> Result<Curve, ScriptError> {
    let endless = |part: &&Known| part.line.as_ref().is_some_and(|line| line.end.is_none());
    if let Some(part) = transient.iter().chain(periodic).find(endless) {
        return Err(part.place.error(
            "a segment of `upp` ends: write `uaf` for a curve that is affine in the end".into(),
        ));
    }
    let place = at_the_end(periodic);
    let mut built = Built::nothing();
    for part in transient {
        built.push(part)?;
    }
    let start = built.reached.clone();
    let (first, last) = (&periodic[0], &periodic[periodic.len() - 1]);
    let begins = first.at.clone();
    let lines = || periodic.iter().filter_map(|part| part.line.as_ref());
    let Some((low, high)) = lines().next().zip(lines().next_back()) else {
        return Err(place.error("the period has no segment".into()));
    };
    for part in periodic {
        built.push(part)?;
    }
    let length = &built.reached - &start;
    if let Some((period, place)) = period
        && period != Value::Finite(length.clone())
    {
        return Err(place.error(format!(
            "the period is {period} here, and its segments take {length}"
        )));
    }
    let low = begins.as_ref().unwrap_or(&low.after);
    let step = match step {
        Some((Value::Finite(step), _)) => step,
        Some((step, place)) => {
            return Err(place.error(format!("the increment of a period is {step}: it is finite")));
        }
        None => match (low, &high.end_value) {
            (Value::Finite(low), Value::Finite(high)) => high - low,
            _ => Rational::from(0),
        },
    };
    let moved = |value: &Value| match value {
        Value::Finite(value) => Value::Finite(value + &step),
        infinity => infinity.clone(),
    };
    // The value one period behind the start is that at the start or that at the end: with both
    // they have to agree, without any there is none.
    let ends = built.at.take();
    let next = match (begins.as_ref().map(moved), ends) {
        (Some(next), Some(end)) if next != end => {
            return Err(last.place.error(format!(
                "the period ends with {end} where the next one begins with {next}: leave one open"
            )));
        }
        (None, None) => {
            return Err(last
                .place
                .error("the period is open on both sides: close it on one".into()));
        }
        (Some(next), _) | (None, Some(next)) => next,
    };
    // Written out once more: its own first value may be one of the transient part.
    let repeated = &built.elements[built.elements.len() - 2 * lines().count()..];
    let later: Vec<Element> = repeated
        .iter()
        .enumerate()
        .map(|(index, element)| match element {
            Element::Point { time, value } => Element::Point {
                time: time + &length,
                value: if index == 0 {
                    next.clone()
                } else {
                    moved(value)
                },
            },
            Element::Segment {
                start,
                end,
                value,
                slope,
            } => Element::Segment {
                start: start + &length,
                end: end + &length,
                value: moved(value),
                slope: slope.clone(),
            },
        })
        .collect();
    built.elements.extend(later);
    let curve = Curve::new(&built.elements, &built.reached, &length, &step);
    curve.map_err(|error| place.error(error.to_string()))
}
