//! A naive model of curves: evaluated by their definition, step by step, without a canonical form.

#![allow(dead_code)]

use metes_curve::{Curve, Element, Rational, Value};
use proptest::prelude::*;

/// A curve as it is described.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    /// Start, value, limit from the right, slope.
    pub(crate) pieces: Vec<(Rational, Value, Value, Rational)>,
    pub(crate) transient: Rational,
    pub(crate) period: Rational,
    pub(crate) step: Rational,
}

pub(crate) fn number(value: i64) -> Rational {
    Rational::from(value)
}

pub(crate) fn part(numerator: i64, denominator: i64) -> Rational {
    Rational::new(numerator, denominator).expect("not zero")
}

impl Model {
    pub(crate) fn value(&self, time: &Rational) -> Value {
        let end = &self.transient + &self.period;
        let (mut time, mut higher) = (time.clone(), number(0));
        while time >= end {
            (time, higher) = (&time - &self.period, &higher + &self.step);
        }
        let piece = self.pieces.iter().rev().find(|piece| piece.0 <= time);
        let (start, at, after, slope) = piece.expect("the first begins at 0");
        let value = if *start == time { at } else { after };
        match value {
            Value::Finite(value) => {
                let risen = slope * &(&time - start);
                let risen = if *start == time { number(0) } else { risen };
                Value::Finite(&(value + &risen) + &higher)
            }
            infinity => infinity.clone(),
        }
    }

    pub(crate) fn curve(&self) -> Curve {
        let ends = self.pieces.iter().skip(1).map(|piece| piece.0.clone());
        let ends = ends.chain([&self.transient + &self.period]);
        let pair = |((start, at, after, slope), end): (&(_, Value, Value, Rational), Rational)| {
            let start: &Rational = start;
            [
                Element::Point {
                    time: start.clone(),
                    value: at.clone(),
                },
                Element::Segment {
                    start: start.clone(),
                    end,
                    value: after.clone(),
                    slope: slope.clone(),
                },
            ]
        };
        let elements: Vec<Element> = self.pieces.iter().zip(ends).flat_map(pair).collect();
        Curve::new(&elements, &self.transient, &self.period, &self.step).expect("well formed")
    }

    /// The function of this model, described at greater length: a later transient part, a multiple
    /// of the period, one more breakpoint.
    pub(crate) fn longer(&self, periods: i64, times: i64, split: &Rational) -> Model {
        let transient = &self.transient + &(&self.period * &number(periods));
        let (period, step) = (&self.period * &number(times), &self.step * &number(times));
        let end = &transient + &period;
        let mut starts: Vec<Rational> = self.pieces.iter().map(|piece| piece.0.clone()).collect();
        starts.push(self.transient.clone());
        for start in starts
            .clone()
            .into_iter()
            .filter(|start| *start >= self.transient)
        {
            starts.extend((1..periods + times).map(|k| &start + &(&self.period * &number(k))));
        }
        starts.push(split.clone());
        starts.retain(|start| *start < end);
        starts.sort();
        starts.dedup();
        let near = part(1, 1_000_003);
        let pieces = starts.into_iter().map(|start| {
            // The line behind a start, from two values behind it.
            let [one, two] = [1, 2].map(|k| self.value(&(&start + &(&near * &number(k)))));
            match (one, two) {
                (Value::Finite(one), Value::Finite(two)) => {
                    let rise = &two - &one;
                    let slope = &rise * &number(1_000_003);
                    (
                        start.clone(),
                        self.value(&start),
                        Value::Finite(&one - &rise),
                        slope,
                    )
                }
                (infinity, _) => (start.clone(), self.value(&start), infinity, number(0)),
            }
        });
        Model {
            pieces: pieces.collect(),
            transient,
            period,
            step,
        }
    }
}

pub(crate) fn values() -> impl Strategy<Value = Value> + Clone {
    prop_oneof![
        12 => (-6_i64..12, 1_i64..3).prop_map(|(n, d)| Value::Finite(part(n, d))),
        1 => Just(Value::PositiveInfinity),
    ]
}

/// Curves of a few pieces at multiples of a half, a third or a seventh.
pub(crate) fn models(values: impl Strategy<Value = Value> + Clone) -> impl Strategy<Value = Model> {
    let pieces = prop::collection::vec(
        (1_i64..5, values.clone(), values, -2_i64..4, 1_i64..4),
        1..6,
    );
    let unit = prop_oneof![Just(2_i64), Just(3), Just(7)];
    (pieces, unit, any::<prop::sample::Index>(), -3_i64..9).prop_map(|(parts, unit, from, step)| {
        let mut time = number(0);
        let mut pieces = Vec::new();
        for (length, at, after, rise, run) in parts {
            let slope = match after {
                Value::Finite(_) => part(rise, run),
                _ => number(0),
            };
            pieces.push((time.clone(), at, after, slope));
            time = &time + &part(length, unit);
        }
        let transient = pieces[from.index(pieces.len())].0.clone();
        let period = &time - &transient;
        Model {
            pieces,
            transient,
            period,
            step: number(step),
        }
    })
}

pub(crate) fn finite() -> impl Strategy<Value = Value> + Clone {
    (-6_i64..12, 1_i64..3).prop_map(|(n, d)| Value::Finite(part(n, d)))
}

pub(crate) fn plus(one: &Value, two: &Value) -> Value {
    match (one, two) {
        (Value::Finite(one), Value::Finite(two)) => Value::Finite(one + two),
        (Value::Finite(_), infinity) | (infinity, _) => infinity.clone(),
    }
}
