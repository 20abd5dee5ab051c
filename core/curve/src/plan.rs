//! Chains: the convolution of many curves, in an order that costs little.
//!
//! Every order gives the same curve; what differs, by orders of magnitude, is how many pairs of
//! pieces meet on the way. A [`Plan`] says how the order is chosen. The result of a convolution
//! is known only when it is made, so that plans by policies look again after each.
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
use std::time::{Duration, Instant};

use ahead::Ahead;
pub use explain::{Share, Side};
pub use orders::{costs_of_trees, orders, splits};
pub use policy::{Estimate, FirstPair, NextCurve};
pub(crate) use profile::Profile;

use crate::curve::Curve;
use crate::error::Error;
use crate::number::{Small, exactly};
use crate::periodic::Periodic;
use crate::settings::Algebra;
use crate::together::{Taken, Together};

/// How the order of a chain is chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Plan {
    /// The curve of least slope first, because with it neither the periods of the others matter
    /// nor what lies far out in them; several of one least slope by pairs, first those that soon
    /// repeat themselves together. With it all steeper curves of which little is needed beside it, at
    /// once, and so on with what comes of that; a curve of which much is needed by itself. To choose
    /// takes O(n) with n curves, O(n³) if their slopes are equal.
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
    /// What enters it: two, or a slow curve and several steeper ones that are convolved with it at once.
    pub parts: Vec<Part>,
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
            Plan::Automatic => self.automatic(curves),
            Plan::Order(order) => self.in_order(curves, order),
            Plan::Subsets if curves.len() > Plan::MOST_SUBSETS => self.automatic(curves),
            _ => self.step_by_step(curves, plan),
        }
    }

    /// In an order that is given.
    fn in_order(&self, curves: &[Curve], order: &[usize]) -> Result<Chain, Error> {
        permutation(order, curves.len())?;
        let mut progress = Progress::of(curves);
        let planning = progress.lap();
        let Some((first, others)) = order.split_first() else {
            return Ok(progress.chain(planning));
        };
        let mut left = Part::Curve(*first);
        for other in others {
            left = progress.convolve(self, left, Part::Curve(*other))?;
        }
        Ok(progress.chain(planning))
    }

    /// By [`Plan::Automatic`].
    fn automatic(&self, curves: &[Curve]) -> Result<Chain, Error> {
        let mut progress = Progress::of(curves);
        // Curves of one slope by pairs, until one is the flattest.
        let all = (0..curves.len()).map(Part::Curve);
        let mut ahead = Ahead::of(all, |part| progress.profile(part), 0);
        let mut planning = progress.lap();
        let mut pairs = ahead.pairs.into_iter();
        while let Some((left, right)) = pairs.next() {
            let made = progress.convolve(self, left, right)?;
            let is_large = progress.of_part(made).pieces() >= WORTH_LOOKING;
            if is_large && pairs.len() > 1 {
                let (left, steps) = (progress.left().into_iter(), progress.steps.len());
                ahead = Ahead::of(left, |part| progress.profile(part), steps);
                planning += progress.lap();
                pairs = ahead.pairs.into_iter();
            }
        }
        let (Some(mut low), mut high) = (ahead.low, ahead.high) else {
            return Ok(progress.chain(planning));
        };
        while !high.is_empty() {
            low = progress.convolve_together(self, low, &mut high);
            if high.is_empty() {
                break;
            }
            // Much is left of each: the one of which least is left, by itself.
            let profiles = high.iter().map(|part| progress.profile(*part));
            let next = ahead::least_reach(&progress.profile(low), profiles);
            planning += progress.lap();
            low = progress.convolve(self, low, high.swap_remove(next))?;
        }
        Ok(progress.chain(planning))
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
                parts: vec![left.part, right.part],
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
                    items.iter().map(|item| *profile(&item.curve)).collect();
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

/// How far a chain is convolved.
struct Progress<'a> {
    curves: &'a [Curve],
    /// Results that are not used yet, by the steps that made them.
    made: Vec<Option<Curve>>,
    steps: Vec<Step>,
    /// When what is timed began.
    now: Instant,
}

impl<'a> Progress<'a> {
    fn of(curves: &'a [Curve]) -> Self {
        Progress {
            curves,
            made: Vec::new(),
            steps: Vec::with_capacity(curves.len()),
            now: Instant::now(),
        }
    }

    /// How long it is since this was asked last, or a step ended.
    fn lap(&mut self) -> Duration {
        let before = std::mem::replace(&mut self.now, Instant::now());
        self.now - before
    }

    fn of_part(&self, part: Part) -> &Curve {
        let curve = match part {
            Part::Curve(number) => self.curves.get(number),
            Part::Step(number) => self.made.get(number).and_then(Option::as_ref),
        };
        curve.unwrap_or_else(|| {
            unreachable!("a plan names curves, and steps that are made and not used")
        })
    }

    fn profile(&self, part: Part) -> Cow<'_, Profile> {
        profile(self.of_part(part))
    }

    /// What is left to convolve: curves that wait, and results that were not used.
    fn left(&self) -> Vec<Part> {
        let is_used = |part: &Part| self.steps.iter().any(|step| step.parts.contains(part));
        let curves = (0..self.curves.len()).map(Part::Curve);
        let results = (0..self.steps.len()).map(Part::Step);
        curves
            .chain(results)
            .filter(|part| !is_used(part))
            .collect()
    }

    /// Two parts, by themselves.
    fn convolve(&mut self, algebra: &Algebra, left: Part, right: Part) -> Result<Part, Error> {
        let (one, other) = (self.of_part(left), self.of_part(right));
        let (curve, predicted) = algebra.convolution_with_work(one, other)?;
        let elements = 2 * curve.pieces();
        let parts = vec![left, right];
        Ok(self.step(parts, predicted, elements, Some(curve), Instant::now()))
    }

    /// A slow one with steeper ones, as many at once as take little; those are taken away.
    fn convolve_together(&mut self, algebra: &Algebra, low: Part, high: &mut Vec<Part>) -> Part {
        let Some((taken, curve)) = self.together(algebra, low, high) else {
            return low;
        };
        let all = std::mem::take(high);
        let mut is_taken = vec![false; all.len()];
        let mut result = low;
        for (
            Taken {
                places,
                pairs,
                pieces,
            },
            ended,
        ) in taken
        {
            let mut parts = Vec::with_capacity(1 + places.len());
            parts.push(result);
            for place in places {
                is_taken[place] = true;
                parts.push(all[place]);
            }
            result = self.step(parts, pairs, 2 * pieces, None, ended);
        }
        if let (Some(made), Some(step)) = (self.made.last_mut(), self.steps.last_mut()) {
            // The last one is brought to its form.
            step.elements = 2 * curve.pieces();
            *made = Some(curve);
        }
        let left = all.iter().zip(is_taken).filter(|(_, is_taken)| !is_taken);
        high.extend(left.map(|(part, _)| *part));
        result
    }

    /// What was taken at once, and when that ended, and the result; `None` if nothing was.
    fn together(
        &self,
        algebra: &Algebra,
        low: Part,
        high: &[Part],
    ) -> Option<(Vec<(Taken, Instant)>, Curve)> {
        if !Together::is_allowed(algebra) {
            return None;
        }
        let low = self.of_part(low).short()?;
        let high = high.iter().map(|part| self.of_part(*part).short());
        let high: Vec<&Periodic<Small>> = high.collect::<Option<_>>()?;
        exactly(|| {
            let mut together = Together::new(low, &high)?;
            let mut steps = Vec::new();
            while let Some(taken) = together.next(algebra.limit) {
                steps.push((taken, Instant::now()));
            }
            let curve = (!steps.is_empty()).then(|| Curve::of_small(together.curve()))?;
            if let Some((_, ended)) = steps.last_mut() {
                *ended = Instant::now();
            }
            Some((steps, curve))
        })?
    }

    /// Notes what was done.
    fn step(
        &mut self,
        parts: Vec<Part>,
        predicted: u64,
        elements: usize,
        made: Option<Curve>,
        ended: Instant,
    ) -> Part {
        for part in &parts {
            if let Part::Step(number) = part {
                self.made[*number] = None;
            }
        }
        let seconds = (ended - self.now).as_secs_f64();
        self.now = ended;
        self.made.push(made);
        self.steps.push(Step {
            parts,
            predicted,
            elements,
            seconds,
        });
        Part::Step(self.steps.len() - 1)
    }

    fn chain(mut self, planning: Duration) -> Chain {
        let curve = match self.made.pop() {
            Some(last) => last,
            None => self.curves.first().cloned(),
        };
        Chain {
            curve: curve.unwrap_or_else(Curve::neutral),
            steps: self.steps,
            planning_seconds: planning.as_secs_f64(),
        }
    }
}

fn profile(curve: &Curve) -> Cow<'_, Profile> {
    match &curve.profile {
        Some(known) => Cow::Borrowed(known),
        None => Cow::Owned(Profile::of(curve)),
    }
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
