//! Curves of whole numbers, of which several are convolved with a slow one at once: beside the same
//! chain pair by pair, and beside pairs without that optimisation.
//!
//! Invariant: what is compared took different paths, and enough cases took the one that is tested.

use std::cell::Cell;

use metes_curve::plan::Plan;
use metes_curve::{Algebra, Curve, Element, Error, Optimisations, Rational, Value};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestCaseError, TestRunner};

/// What a segment behind a point does: length, jumps to the point and behind it, slope.
type Part = (i64, i64, i64, i64);

#[derive(Clone, Debug)]
struct Described {
    parts: Vec<Part>,
    /// Which part is the first that repeats itself, of as many as there are.
    from: usize,
    /// More than it comes to by itself, each period.
    more: i64,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Repeats,
    /// With its last slope.
    Affine,
    Infinite,
    /// Infinite in the last part of each period.
    Gaps,
}

impl Described {
    fn curve(&self) -> Curve {
        let (mut time, mut value) = (0, 0);
        let mut starts = Vec::new();
        let mut elements = Vec::new();
        let finite = |value: i64| Value::Finite(value.into());
        let mut push = |time: i64, length: i64, at: Value, after: Value, slope: i64| {
            elements.push(Element::Point {
                time: time.into(),
                value: at,
            });
            elements.push(Element::Segment {
                start: time.into(),
                end: (time + length).into(),
                value: after,
                slope: slope.into(),
            });
        };
        for (length, to, behind, slope) in &self.parts {
            starts.push((time, value));
            let (at, after) = (value + to, value + to + behind);
            push(time, *length, finite(at), finite(after), *slope);
            (time, value) = (time + length, after + slope * length);
        }
        let last = self.parts.last().map_or(0, |part| part.3);
        let (transient, period, step) = match self.end {
            End::Repeats => {
                let (start, begin) = starts[self.from % starts.len()];
                (start, time - start, value - begin + self.more)
            }
            End::Affine => {
                push(time, 1, finite(value), finite(value), last);
                (time, 1, last)
            }
            End::Infinite => {
                let infinity = Value::PositiveInfinity;
                push(time, 1, finite(value), infinity, 0);
                (time + 1, 1, 0)
            }
            End::Gaps => {
                let (start, begin) = starts[self.from % starts.len()];
                push(time, 1, finite(value), Value::PositiveInfinity, 0);
                (start, time + 1 - start, value - begin + self.more)
            }
        };
        if self.end == End::Infinite {
            let infinity = Value::PositiveInfinity;
            push(time + 1, 1, infinity.clone(), infinity, 0);
        }
        Curve::new(&elements, &transient.into(), &period.into(), &step.into()).expect("a curve")
    }
}

fn described(parts: impl Strategy<Value = Part>) -> impl Strategy<Value = Described> {
    let end = prop_oneof![
        8 => Just(End::Repeats),
        1 => Just(End::Affine),
        1 => Just(End::Infinite),
        1 => Just(End::Gaps),
    ];
    let parts = prop::collection::vec(parts, 1..5);
    (parts, 0..4_usize, 0..30_i64, end).prop_map(|(parts, from, more, end)| Described {
        parts,
        from,
        more,
        end,
    })
}

/// Curves that go up and down and jump either way, or never fall, or are staircases; a few of them with
/// numbers near what fits.
fn curves() -> impl Strategy<Value = Vec<Described>> {
    let any = (1..9_i64, -3..6_i64, -3..6_i64, -3..7_i64);
    let rising = (1..9_i64, 0..5_i64, 0..5_i64, 0..7_i64);
    let flat = (1..9_i64, 0..5_i64, 0..5_i64, Just(0_i64));
    let some = 2..6_usize;
    let curves = prop_oneof![
        prop::collection::vec(described(any), some.clone()),
        prop::collection::vec(described(rising), some.clone()),
        prop::collection::vec(described(flat), some),
    ];
    let long = prop_oneof![8 => Just(0), 1 => 0..50];
    let high = prop_oneof![8 => Just(0), 1 => 0..50];
    (curves, long, high).prop_map(|(mut curves, long, high)| {
        for described in &mut curves {
            for (length, to, behind, slope) in &mut described.parts {
                // Slopes times lengths are to fit, too.
                let most = 50 - high.min(long);
                *length <<= long.min(most);
                (*to, *behind) = (*to << high, *behind << high);
                *slope <<= high.min(most - long.min(most));
            }
            described.more <<= high;
        }
        curves
    })
}

fn algebra(optimisations: Optimisations) -> Algebra {
    Algebra {
        limit: 20_000,
        optimisations,
        ..Algebra::default()
    }
}

/// What may be refused for what it takes, or because there is no result.
fn found<T>(result: Result<T, Error>) -> Result<Option<T>, TestCaseError> {
    match result {
        Ok(found) => Ok(Some(found)),
        Err(Error::TooLarge { .. } | Error::TwoRates) => Ok(None),
        Err(error) => Err(TestCaseError::fail(error.to_string())),
    }
}

#[test]
fn at_once_is_as_pair_by_pair() {
    let cases = std::env::var("PROPTEST_CASES").ok();
    let cases = cases.and_then(|cases| cases.parse().ok()).unwrap_or(400);
    let (with, without) = (
        algebra(Optimisations::all()),
        algebra(Optimisations::all().without("together").expect("one")),
    );
    let (compared, at_once) = (Cell::new(0), Cell::new(0));
    let mut runner = TestRunner::new(Config {
        source_file: Some(file!()),
        ..Config::with_cases(cases)
    });
    let run = runner.run(&curves(), |described| {
        let curves: Vec<Curve> = described.iter().map(Described::curve).collect();
        let Some(pair_by_pair) = found(without.chain(&curves, &Plan::LeftToRight))? else {
            return Ok(());
        };
        let Some(chain) = found(with.chain(&curves, &Plan::Automatic))? else {
            return Ok(());
        };
        prop_assert_eq!(&chain.curve, &pair_by_pair.curve);
        compared.set(compared.get() + 1);
        let most = chain.steps.iter().map(|step| step.parts.len()).max();
        at_once.set(at_once.get() + u32::from(most > Some(2)));
        let pairs = curves.windows(2).map(|pair| [&pair[0], &pair[1]]);
        for [f, g] in pairs {
            let results = [&with, &without].map(|algebra| found(algebra.convolution(f, g)));
            let [Some(one), Some(other)] = results.map(|result| result.ok().flatten()) else {
                continue;
            };
            prop_assert_eq!(one, other);
        }
        Ok(())
    });
    if let Err(error) = run {
        panic!("{error}");
    }
    let (compared, at_once) = (compared.get(), at_once.get());
    assert!(compared * 10 >= cases * 7, "{compared} of {cases} compared");
    assert!(at_once * 4 >= compared, "{at_once} of {compared} at once");
}

/// A staircase of one step a period.
fn staircase(height: i64, length: i64) -> Curve {
    let whole = |number: i64| Rational::from(number);
    Curve::staircase(&whole(0), &whole(length), &whole(height)).expect("a staircase")
}

/// Of steep curves that jump more than the slow one ever grows by in as long a time nothing is needed.
#[test]
fn what_is_outgrown_at_once_takes_one_step() {
    let curves = [
        staircase(9, 3),
        staircase(1, 10),
        staircase(13, 8),
        staircase(6, 9),
    ];
    let chain = Algebra::default()
        .chain(&curves, &Plan::Automatic)
        .expect("small");
    assert_eq!(chain.steps.len(), 1);
    assert_eq!(chain.steps[0].parts.len(), 4);
    assert_eq!(chain.curve, curves[1]);
}

/// What is needed of a curve may end with a point, by which what falls is moved, too.
#[test]
fn a_point_at_the_end_of_what_is_needed_moves_what_falls() {
    let described = |parts: &[Part], more: i64, end: End| {
        let described = Described {
            parts: parts.to_vec(),
            from: 0,
            more,
            end,
        };
        described.curve()
    };
    let curves = [
        described(&[(1, 0, 0, 0)], 0, End::Infinite),
        described(&[(1, 0, 0, -1), (1, 2, 0, 2)], 0, End::Affine),
        described(
            &[(4, -3, -2, 0), (6, 0, 0, 2), (3, 0, 0, -2)],
            9,
            End::Repeats,
        ),
        described(
            &[(1, 0, 3, 0), (4, -3, 0, -1), (4, 0, 0, 0)],
            4,
            End::Repeats,
        ),
        described(&[(1, 0, 0, -2), (1, 3, 4, 0)], 2, End::Repeats),
    ];
    let at_once = Algebra::default().chain(&curves, &Plan::Automatic);
    let without = algebra(Optimisations::all().without("together").expect("one"));
    let pair_by_pair = without.chain(&curves, &Plan::LeftToRight);
    assert_eq!(
        at_once.expect("small").curve,
        pair_by_pair.expect("small").curve
    );
}
