//! Energies as the sums that they are: of works at speeds, compared by their nearest numbers where these are apart, else
//! exactly.
//!
//! *Invariant:* the order is that of the exact sums.

use std::cmp::Ordering;

use num_bigint::BigInt;

use super::super::yds::Number;
use crate::rational::Rational;

/// How far nearest numbers must be apart to be believed: sums of thousands of positive parts are a thousand times nearer.
const APART: f64 = 1e-10;
/// What a bound in nearest numbers is made smaller by, so that it is one of the exact sum: ten times as much.
pub(super) const MARGIN: f64 = 1e-9;

/// A bound from nearest numbers.
pub(super) fn surely(nearly: f64) -> f64 {
    nearly * (1.0 - MARGIN)
}

/// Works, and the time that each has: of one speed each.
#[derive(Clone, Debug)]
pub(super) struct Cost<N> {
    /// In order.
    pub(super) parts: Vec<(N, N)>,
    pub(super) nearly: f64,
}

impl<N: Number> Cost<N> {
    pub(super) fn new(mut parts: Vec<(N, N)>) -> Self {
        parts.sort_unstable();
        let near = |value: &N| value.to_f64().unwrap_or(f64::INFINITY);
        let nearly = parts.iter().map(|(work, time)| {
            let (work, time) = (near(work), near(time));
            work * (work / time) * (work / time)
        });
        Cost {
            nearly: nearly.sum(),
            parts,
        }
    }

    pub(super) fn compare(&self, other: &Self) -> Ordering {
        compare(
            (self.nearly, &mut self.parts.iter()),
            (other.nearly, &mut other.parts.iter()),
        )
    }
}

/// Compares sums by what is nearly so, then exactly; parts in order.
pub(super) fn compare<'a, N: Number + 'a>(
    (near, parts): (f64, &mut dyn Iterator<Item = &'a (N, N)>),
    (other_near, others): (f64, &mut dyn Iterator<Item = &'a (N, N)>),
) -> Ordering {
    if (near - other_near).abs() > APART * near.abs().max(other_near.abs()) {
        return near.total_cmp(&other_near);
    }
    exactly(parts, others)
}

/// Compares sums exactly, of which parts come in order: what both have is left out.
pub(super) fn exactly<'a, N: Number + 'a>(
    parts: &mut dyn Iterator<Item = &'a (N, N)>,
    others: &mut dyn Iterator<Item = &'a (N, N)>,
) -> Ordering {
    let (mut parts, mut others) = (parts.peekable(), others.peekable());
    let (mut more, mut less) = (Vec::new(), Vec::new());
    loop {
        match (parts.peek(), others.peek()) {
            (None, None) => break,
            (Some(part), Some(other)) if part == other => {
                parts.next();
                others.next();
            }
            (Some(part), other) if other.is_none_or(|other| part < other) => {
                more.push(exact(part));
                parts.next();
            }
            (_, Some(other)) => {
                less.push(exact(other));
                others.next();
            }
            (Some(_), None) => unreachable!("it is before none"),
        }
    }
    let sum = |parts: Vec<Rational>| parts.into_iter().sum::<Rational>();
    sum(more).cmp(&sum(less))
}

fn exact<N: Number>((work, time): &(N, N)) -> Rational {
    let work: BigInt = work.clone().into();
    let time: BigInt = time.clone().into();
    Rational::new(&work * &work * &work, &time * &time)
}
