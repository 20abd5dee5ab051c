//! Chains: the convolution of many curves, in an order that costs little.
//!
//! Every order gives the same curve; what differs, by orders of magnitude, is how many pairs of
//! pieces meet on the way. A [`Plan`] says how the order is chosen. The result of a convolution
//! is known only when it is made, so every plan but a given order looks again after each.
//!
//! Invariant: every curve of a chain enters exactly one convolution, and so does every result
//! but the last.

mod ahead;
mod explain;
mod orders;
mod policy;
mod profile;
mod subsets;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Instant;

use ahead::Planned;
pub use explain::{Share, Side};
pub use orders::{costs_of_trees, orders, splits};
pub use policy::{Estimate, FirstPair, NextCurve};
pub(crate) use profile::Profile;

use crate::algebra::Algebra;
use crate::curve::Curve;
use crate::error::Error;

/// How the order of a chain is chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Plan {
    /// The curve of least slope first, because with it neither the periods of the others matter
    /// nor what lies far out in them; then the others by how far each is needed beside it. Several
    /// curves of one least slope by pairs, first those that soon repeat themselves together. All
    /// of it is chosen ahead, and what is left again after a large result. O(n log n) with n
    /// curves, O(n³) if their slopes are equal.
    #[default]
    Automatic,
    /// As given.
    LeftToRight,
    /// By ascending slope.
    LeastSlope,
    /// By a pair of the paper's policies and an estimate.
    Policy {
        /// Which two first.
        first: FirstPair,
        /// Which one next.
        next: NextCurve,
        /// Cost by what.
        estimate: Estimate,
    },
    /// Any tree, the cheapest by predicted sizes, predicted again after each convolution.
    /// O(3ⁿ); of more than [`Plan::MOST_SUBSETS`] curves [`Plan::Automatic`].
    Subsets,
    /// In this order: each number of `0..n` once.
    Order(Vec<usize>),
}

impl Plan {
    /// Most curves of which all subsets are looked at.
    pub const MOST_SUBSETS: usize = 10;
}

/// What enters a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    /// A curve of the chain, from 0.
    Curve(usize),
    /// The result of an earlier step, from 0.
    Step(usize),
}

/// One convolution of a chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// One operand.
    pub left: Part,
    /// The other.
    pub right: Part,
    /// How many pairs of pieces (or pieces, where none meet) it was predicted to look at.
    pub predicted: u64,
    /// Elements of the result on `[0, T + d)`.
    pub elements: usize,
    /// How long it took.
    pub seconds: f64,
}

/// A chain, convolved.
#[derive(Clone, Debug)]
pub struct Chain {
    /// The result.
    pub curve: Curve,
    /// What was done, in order.
    pub steps: Vec<Step>,
    /// How long choosing took, over all steps.
    pub planning_seconds: f64,
}

/// Results of so many pieces are looked at before it goes on: that takes little beside what is
/// convolved with them.
const WORTH_LOOKING: usize = 256;

/// What is still to be convolved.
struct Item<'a> {
    part: Part,
    curve: Cow<'a, Curve>,
}

impl Algebra {
    /// Convolves any number of curves; of none, the curve with which every convolution is the
    /// other curve: 0 at 0 and +∞ behind.
    ///
    /// # Errors
    /// [`Error::Order`] of an order that is none of these curves, and those of
    /// [`convolution`](Self::convolution).
    pub fn chain(&self, curves: &[Curve], plan: &Plan) -> Result<Chain, Error> {
        match plan {
            Plan::Automatic => self.ahead(curves, None),
            Plan::Order(order) => self.ahead(curves, Some(order.as_slice())),
            Plan::Subsets if curves.len() > Plan::MOST_SUBSETS => self.ahead(curves, None),
            _ => self.step_by_step(curves, plan),
        }
    }

    /// In an order that is given, or by [`Plan::Automatic`].
    fn ahead(&self, curves: &[Curve], order: Option<&[usize]>) -> Result<Chain, Error> {
        let mut waiting = vec![true; curves.len()];
        let mut made: Vec<Option<Curve>> = Vec::with_capacity(curves.len());
        let mut steps: Vec<Step> = Vec::with_capacity(curves.len());
        let mut now = Instant::now();
        let mut planned = match order {
            Some(order) => {
                permutation(order, curves.len())?;
                ahead::in_order(order)
            }
            None => ahead::steps(&left(curves, &waiting, &made), 0),
        }
        .into_iter();
        let mut planning = now.elapsed();
        now += planning;
        while let Some(Planned {
            left: one,
            right: other,
            ..
        }) = planned.next()
        {
            let (curve, predicted) = {
                let of = |part: Part| match part {
                    Part::Curve(number) => curves.get(number),
                    Part::Step(number) => made.get(number).and_then(Option::as_ref),
                };
                let Some((one, other)) = of(one).zip(of(other)) else {
                    unreachable!("a plan names curves, and steps that are made and not used")
                };
                self.convolution_with_work(one, other)?
            };
            for part in [one, other] {
                match part {
                    Part::Curve(number) => waiting[number] = false,
                    Part::Step(number) => made[number] = None,
                }
            }
            let before = std::mem::replace(&mut now, Instant::now());
            steps.push(Step {
                left: one,
                right: other,
                predicted,
                elements: curve.pieces() * 2,
                seconds: (now - before).as_secs_f64(),
            });
            let is_large = curve.pieces() >= WORTH_LOOKING;
            made.push(Some(curve));
            if is_large && order.is_none() && planned.len() > 1 {
                let left = left(curves, &waiting, &made);
                planned = ahead::steps(&left, steps.len()).into_iter();
                let spent = now.elapsed();
                planning += spent;
                now += spent;
            }
        }
        let curve = match made.pop() {
            Some(last) => last,
            None => curves.first().cloned(),
        };
        Ok(Chain {
            curve: curve.unwrap_or_else(Curve::neutral),
            steps,
            planning_seconds: planning.as_secs_f64(),
        })
    }

    /// By a plan that looks at what there is before each step.
    fn step_by_step(&self, curves: &[Curve], plan: &Plan) -> Result<Chain, Error> {
        let begin = Instant::now();
        let mut items: Vec<Item<'_>> = Vec::with_capacity(curves.len());
        for (number, curve) in curves.iter().enumerate() {
            items.push(Item {
                part: Part::Curve(number),
                curve: Cow::Borrowed(curve),
            });
        }
        let mut steps = Vec::with_capacity(curves.len());
        let mut planning = begin.elapsed();
        while items.len() > 1 {
            let begin = Instant::now();
            let (one, other) = self.next(&items, plan)?;
            // The later place first, so that the earlier one stays.
            let right = items.remove(one.max(other));
            let left = items.remove(one.min(other));
            let chosen = Instant::now();
            planning += chosen - begin;
            let (curve, predicted) = self.convolution_with_work(&left.curve, &right.curve)?;
            steps.push(Step {
                left: left.part,
                right: right.part,
                predicted,
                elements: curve.pieces() * 2,
                seconds: chosen.elapsed().as_secs_f64(),
            });
            items.push(Item {
                part: Part::Step(steps.len() - 1),
                curve: Cow::Owned(curve),
            });
        }
        Ok(Chain {
            curve: items
                .pop()
                .map_or_else(Curve::neutral, |item| item.curve.into_owned()),
            steps,
            planning_seconds: planning.as_secs_f64(),
        })
    }

    /// Which two items are convolved next, by their places. The result of the step before, if
    /// there was one, is the last item.
    fn next(&self, items: &[Item<'_>], plan: &Plan) -> Result<(usize, usize), Error> {
        let last = items.len() - 1;
        let begun = matches!(items[last].part, Part::Step(_));
        let chosen = match plan {
            Plan::Subsets => {
                let profiles: Vec<Profile> =
                    items.iter().map(|item| profile(&item.curve)).collect();
                Some(subsets::first_pair(&profiles))
            }
            Plan::LeftToRight if begun => Some((last, 0)),
            // The last two are known ahead, and do not go step by step.
            Plan::LeftToRight | Plan::Automatic | Plan::Order(_) => Some((0, 1)),
            Plan::LeastSlope => {
                let flattest = |except: Option<usize>| {
                    let places = (0..items.len()).filter(|place| Some(*place) != except);
                    places.min_by(|a, b| slope(items, *a).total_cmp(&slope(items, *b)))
                };
                let first = if begun { Some(last) } else { flattest(None) };
                first.and_then(|first| Some((first, flattest(Some(first))?)))
            }
            Plan::Policy { next, estimate, .. } if begun => {
                let cost = |place: usize| {
                    self.estimated(*estimate, &items[last].curve, &items[place].curve)
                };
                let others: Vec<usize> = (0..last).collect();
                Some((last, next.choose(&others, cost)?))
            }
            Plan::Policy {
                first, estimate, ..
            } => {
                let cost = |one: usize, other: usize| {
                    self.estimated(*estimate, &items[one].curve, &items[other].curve)
                };
                Some(first.choose(items.len(), cost)?)
            }
        };
        // There are two items at least, so every plan finds a pair.
        Ok(chosen.unwrap_or((0, last)))
    }

    /// The cost of one convolution, in the unit of the estimate.
    ///
    /// # Errors
    /// Those of [`convolution`](Self::convolution).
    pub fn estimated(&self, estimate: Estimate, f: &Curve, g: &Curve) -> Result<f64, Error> {
        Ok(match estimate {
            Estimate::ElementProduct => self.predict(f, g).element_product as f64,
            Estimate::OperationCount => self.operation_count(f, g)? as f64,
            Estimate::Runtime => {
                let begin = Instant::now();
                std::hint::black_box(self.convolution(f, g)?);
                begin.elapsed().as_secs_f64()
            }
        })
    }
}

/// What is left to convolve: curves that wait, and results that were not used.
fn left(curves: &[Curve], waiting: &[bool], made: &[Option<Curve>]) -> Vec<(Part, Profile)> {
    let mut left = Vec::with_capacity(curves.len());
    for (number, curve) in curves.iter().enumerate() {
        if waiting[number] {
            left.push((Part::Curve(number), profile(curve)));
        }
    }
    for (number, curve) in made.iter().enumerate() {
        if let Some(curve) = curve {
            left.push((Part::Step(number), profile(curve)));
        }
    }
    left
}

fn profile(curve: &Curve) -> Profile {
    curve.profile.unwrap_or_else(|| Profile::of(curve))
}

fn slope(items: &[Item<'_>], place: usize) -> f64 {
    profile(&items[place].curve).slope
}

fn permutation(order: &[usize], count: usize) -> Result<(), Error> {
    let mut seen = vec![false; count];
    for number in order {
        match seen.get_mut(*number) {
            Some(seen) if !*seen => *seen = true,
            _ => {
                return Err(Error::Order {
                    what: format!("{} stands in it and should not, or twice", number + 1),
                    curves: count,
                });
            }
        }
    }
    match seen.iter().position(|seen| !seen) {
        Some(missing) => Err(Error::Order {
            what: format!("{} is missing", missing + 1),
            curves: count,
        }),
        None => Ok(()),
    }
}

/// What is written is no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no plan: write automatic, subsets, left-to-right, least-slope, an order such as 3,1,2, or FIRST/NEXT[/ESTIMATE] with FIRST of shortest, longest, shortest-between-longest, median-of-medians, shortest-median; NEXT of shortest, longest, median; ESTIMATE of element-product, operation-count, runtime"
)]
pub struct NotAPlan(String);

impl FromStr for Plan {
    type Err = NotAPlan;

    fn from_str(text: &str) -> Result<Self, NotAPlan> {
        let wrong = || NotAPlan(text.to_owned());
        match text {
            "automatic" => return Ok(Plan::Automatic),
            "subsets" => return Ok(Plan::Subsets),
            "left-to-right" => return Ok(Plan::LeftToRight),
            "least-slope" => return Ok(Plan::LeastSlope),
            _ => {}
        }
        if text.starts_with(|first: char| first.is_ascii_digit()) {
            let number = |part: &str| part.trim().parse::<usize>().ok()?.checked_sub(1);
            let order: Option<Vec<usize>> = text.split(',').map(number).collect();
            return order.map(Plan::Order).ok_or_else(wrong);
        }
        let mut parts = text.split('/');
        let first = parts.next().unwrap_or_default();
        let next = parts.next().unwrap_or_default();
        let estimate = parts.next().unwrap_or("element-product");
        let first = FirstPair::ALL
            .into_iter()
            .find(|known| known.name() == first);
        let next = NextCurve::ALL
            .into_iter()
            .find(|known| known.name() == next);
        let estimate = Estimate::ALL
            .into_iter()
            .find(|known| known.name() == estimate);
        match (first, next, estimate, parts.next()) {
            (Some(first), Some(next), Some(estimate), None) => Ok(Plan::Policy {
                first,
                next,
                estimate,
            }),
            _ => Err(wrong()),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Plan::Automatic => f.write_str("automatic"),
            Plan::Subsets => f.write_str("subsets"),
            Plan::LeftToRight => f.write_str("left-to-right"),
            Plan::LeastSlope => f.write_str("least-slope"),
            Plan::Policy {
                first,
                next,
                estimate,
            } => write!(f, "{}/{}/{}", first.name(), next.name(), estimate.name()),
            Plan::Order(order) => {
                let numbers: Vec<String> =
                    order.iter().map(|curve| (curve + 1).to_string()).collect();
                f.write_str(&numbers.join(","))
            }
        }
    }
}
