//! Published pairs of curves, convolved, timed and checked.
//!
//! Invariant: what results are checked against tries every split at and beside a breakpoint, and
//! knows nothing of how far one has to look.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::curve::{Curve, Element, Value};
use crate::document::DocumentError;
use crate::number::Rational;
use crate::settings::Algebra;

/// A set of pairs, convolved one after the other on one thread.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Set {
    /// Its name.
    pub name: String,
    /// How many pairs.
    pub pairs: usize,
    /// What convolving all of them took; checking is not in it.
    pub taken: Duration,
    /// What the longest took.
    pub longest: Duration,
    /// The best published times, added up.
    pub published: Duration,
    /// Pairs whose result differs from brute force at one of ten times, or that were refused.
    pub wrong: usize,
}

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    sets: BTreeMap<String, Vec<Pair<'a>>>,
}

#[derive(Deserialize)]
struct Pair<'a> {
    #[serde(borrow)]
    f: &'a RawValue,
    #[serde(borrow)]
    g: &'a RawValue,
    #[serde(default)]
    published_ms: BTreeMap<String, Option<f64>>,
}

/// The pairs of a document `{"sets": {NAME: [{"f", "g"}]}}`, by set.
///
/// # Errors
/// [`DocumentError`] if it is no such document.
pub fn pairs(document: &str) -> Result<BTreeMap<String, Vec<(Curve, Curve)>>, DocumentError> {
    let document: Document = serde_json::from_str(document)?;
    let read = |pair: &Pair| {
        Ok((
            Curve::from_json(pair.f.get())?,
            Curve::from_json(pair.g.get())?,
        ))
    };
    let sets = document.sets.into_iter().map(|(name, pairs)| {
        let pairs: Result<Vec<_>, DocumentError> = pairs.iter().map(read).collect();
        Ok((name, pairs?))
    });
    sets.collect()
}

/// Convolves every pair of a document `{"sets": {NAME: [{"f", "g", "published_ms"}]}}`.
///
/// # Errors
/// [`DocumentError`] if it is no such document. What is wrong with results is counted.
pub fn bench(document: &str, algebra: &Algebra) -> Result<Vec<Set>, DocumentError> {
    let document: Document = serde_json::from_str(document)?;
    document
        .sets
        .into_iter()
        .map(|(name, pairs)| set(name, &pairs, algebra))
        .collect()
}

fn set(name: String, pairs: &[Pair], algebra: &Algebra) -> Result<Set, DocumentError> {
    let mut set = Set {
        name,
        pairs: pairs.len(),
        taken: Duration::ZERO,
        longest: Duration::ZERO,
        published: Duration::ZERO,
        wrong: 0,
    };
    for pair in pairs {
        let (f, g) = (
            Curve::from_json(pair.f.get())?,
            Curve::from_json(pair.g.get())?,
        );
        let begin = Instant::now();
        let result = algebra.convolution(&f, &g);
        let taken = begin.elapsed();
        set.taken += taken;
        set.longest = set.longest.max(taken);
        let times = pair.published_ms.values().flatten();
        let best = times.copied().fold(f64::INFINITY, f64::min);
        if best.is_finite() && best >= 0.0 {
            set.published += Duration::from_secs_f64(best / 1e3);
        }
        let right = result.is_ok_and(|result| is_right(&f, &g, &result));
        set.wrong += usize::from(!right);
    }
    Ok(set)
}

/// Whether a result is the convolution at ten times, from all over what is not repetition, at most
/// so far as is soon tried. For curves without infinities at breakpoints and slopes below 10⁶.
#[must_use]
pub fn is_right(f: &Curve, g: &Curve, result: &Curve) -> bool {
    let whole = &result.transient() + &(&result.period() * &Rational::from(2));
    let far = whole.min(Rational::from(4000));
    (0..10).all(|k| {
        let Some(time) = Rational::new(2 * k + 1, 20).map(|part| &far * &part) else {
            return false;
        };
        match (result.value(&time), tried(f, g, &time)) {
            (Some(Value::Finite(found)), Value::Finite(tried)) => {
                let near = Rational::new(1, 1_000_000).unwrap_or(Rational::from(0));
                found <= tried && tried <= &found + &near
            }
            (found, tried) => found == Some(tried),
        }
    })
}

/// The least of all splits at and beside a breakpoint.
fn tried(f: &Curve, g: &Curve, time: &Rational) -> Value {
    // Beside a breakpoint is as good as at its limit, but for what a slope makes of this.
    let near = Rational::new(1, 1_000_000_007).unwrap_or(Rational::from(0));
    let mut splits = breakpoints(f, time);
    splits.extend(breakpoints(g, time).iter().map(|split| time - split));
    let beside = splits
        .iter()
        .flat_map(|split| [split - &near, split.clone(), split + &near]);
    let sums = beside.filter_map(
        |split| match (f.value(&split)?, g.value(&(time - &split))?) {
            (Value::Finite(left), Value::Finite(right)) => Some(Value::Finite(&left + &right)),
            _ => None,
        },
    );
    sums.min().unwrap_or(Value::PositiveInfinity)
}

/// Breakpoints up to a time.
fn breakpoints(curve: &Curve, until: &Rational) -> Vec<Rational> {
    let mut found = Vec::new();
    for element in curve.elements() {
        let Element::Point { time, .. } = element else {
            continue;
        };
        let periodic = time >= curve.transient();
        let mut time = time;
        while time <= *until {
            found.push(time.clone());
            if !periodic {
                break;
            }
            time = &time + &curve.period();
        }
    }
    found
}
