//! Chains: the convolution of many curves, in an order that costs little.
//!
//! Every order gives the same curve; what differs, by orders of magnitude, is how many pairs of
//! pieces meet on the way. A [`Plan`] says how the order is chosen. The result of a convolution
//! is known only when it is made, so every plan but a given order looks again after each.
//!
//! Invariant: every curve of a chain enters exactly one convolution, and so does every result
//! but the last.

mod explain;
mod orders;
mod policy;
mod profile;
mod subsets;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Instant;

pub use explain::{Share, Side};
pub use orders::{costs_of_trees, orders, splits};
pub use policy::{Estimate, FirstPair, NextCurve};
use profile::Profile;

use crate::algebra::Algebra;
use crate::curve::{Curve, either};
use crate::error::Error;

/// How the order of a chain is chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Plan {
    /// The curve of least slope first, because with it neither the periods of the others matter
    /// nor what lies far out in them; and each time one of those that cost about least with what
    /// there is. Of several curves of one least slope the cheapest pair first. O(n²) with n
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
    /// About how many pairs of pieces were expected to meet.
    pub predicted: f64,
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

/// Costs up to this factor apart are taken as equal: then the flatter curve is first, because it
/// smooths what follows.
const NEAR: f64 = 1.15;

/// What is still to be convolved.
struct Item<'a> {
    part: Part,
    curve: Cow<'a, Curve>,
    profile: Profile,
}

impl Algebra {
    /// Convolves any number of curves; of none, the curve with which every convolution is the
    /// other curve: 0 at 0 and +∞ behind.
    ///
    /// # Errors
    /// [`Error::Order`] of an order that is none of these curves, and those of
    /// [`convolution`](Self::convolution).
    pub fn chain(&self, curves: &[Curve], plan: &Plan) -> Result<Chain, Error> {
        let begin = Instant::now();
        if let Plan::Order(order) = plan {
            permutation(order, curves.len())?;
        }
        let mut items: Vec<Item<'_>> = Vec::with_capacity(curves.len());
        for (number, curve) in curves.iter().enumerate() {
            items.push(Item {
                part: Part::Curve(number),
                profile: profile(curve),
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
            let predicted = left.profile.cost(&right.profile);
            let chosen = Instant::now();
            planning += chosen - begin;
            let curve = self.convolution(&left.curve, &right.curve)?;
            let convolved = Instant::now();
            steps.push(Step {
                left: left.part,
                right: right.part,
                predicted,
                elements: curve.pieces() * 2,
                seconds: (convolved - chosen).as_secs_f64(),
            });
            let part = Part::Step(steps.len() - 1);
            let profile = profile(&curve);
            items.push(Item {
                part,
                curve: Cow::Owned(curve),
                profile,
            });
            planning += convolved.elapsed();
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
        let place = |curve: usize| {
            let part = Part::Curve(curve);
            items.iter().position(|item| item.part == part)
        };
        let chosen = match plan {
            Plan::Subsets if items.len() <= Plan::MOST_SUBSETS => {
                let profiles: Vec<&Profile> = items.iter().map(|item| &item.profile).collect();
                Some(subsets::first_pair(&profiles))
            }
            Plan::Automatic | Plan::Subsets => automatic(items),
            Plan::LeftToRight if begun => Some((last, 0)),
            Plan::LeftToRight => Some((0, 1)),
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
            Plan::Order(order) => {
                let mut left = order.iter().filter_map(|curve| place(*curve));
                match begun {
                    true => left.next().map(|next| (last, next)),
                    false => left.next().zip(left.next()),
                }
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

fn profile(curve: &Curve) -> Profile {
    either!(curve, curve => Profile::of(curve))
}

fn slope(items: &[Item<'_>], place: usize) -> f64 {
    items[place].profile.slope
}

/// What [`Plan::Automatic`] says.
fn automatic(items: &[Item<'_>]) -> Option<(usize, usize)> {
    let cost = |one: usize, other: usize| items[one].profile.cost(&items[other].profile);
    let all = 0..items.len();
    let least = all
        .clone()
        .map(|place| slope(items, place))
        .fold(f64::INFINITY, f64::min);
    // Equal fractions may differ in the last digit of their quotients.
    let flat = |place: &usize| slope(items, *place) <= least + least.abs() * 1e-12;
    let mut flattest = all.clone().filter(flat);
    let only = flattest.next()?;
    if flattest.next().is_some() {
        let pairs = all.clone().filter(flat).flat_map(|one| {
            let later = one + 1..items.len();
            later.filter(flat).map(move |other| (one, other))
        });
        return pairs.min_by(|a, b| cost(a.0, a.1).total_cmp(&cost(b.0, b.1)));
    }
    let mut costs = Vec::with_capacity(items.len());
    let others = all.filter(|other| *other != only);
    costs.extend(others.map(|other| (other, cost(only, other))));
    let cheapest = costs
        .iter()
        .fold(f64::INFINITY, |cheapest, (_, cost)| cheapest.min(*cost));
    let near = costs
        .into_iter()
        .filter(|(_, cost)| *cost <= cheapest * NEAR);
    let next = near.min_by(|(a, _), (b, _)| slope(items, *a).total_cmp(&slope(items, *b)));
    next.map(|(next, _)| (only, next))
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
