//! Tasks of one core at one pair of frequencies, in whole numbers of a common grain.
//!
//! *Invariant:* items of 64 or 128 bits are so small that no sum of an analysis overflows: what is greater is analysed in
//! numbers of any length.

use num_bigint::BigInt;
use num_integer::Integer;
use num_traits::{Signed, ToPrimitive};

use crate::rational::Rational;

/// Whole numbers of some width.
pub(crate) trait Whole: Integer + Signed + Clone + ToPrimitive {
    /// Sums are below this.
    fn most() -> Option<Self>;
    /// A number that fits with room for sums over a system.
    fn small(value: &BigInt) -> Option<Self>;
    fn big(&self) -> BigInt;
}

macro_rules! whole {
    ($type:ty, $bits:literal, $most:literal, $to:ident) => {
        impl Whole for $type {
            fn most() -> Option<Self> {
                Some(1 << $most)
            }

            fn small(value: &BigInt) -> Option<Self> {
                (value.bits() < $bits).then(|| value.$to()).flatten()
            }

            fn big(&self) -> BigInt {
                BigInt::from(*self)
            }
        }
    };
}

// At most 1024 tasks: a sum of products (w + J + T) / T · C with C ≤ T is below 2^11 · 2^51 and 2^11 · 2^115.
whole!(i64, 48, 50, to_i64);
whole!(i128, 112, 114, to_i128);

impl Whole for BigInt {
    fn most() -> Option<Self> {
        None
    }

    fn small(value: &BigInt) -> Option<Self> {
        Some(value.clone())
    }

    fn big(&self) -> BigInt {
        self.clone()
    }
}

/// A task as it is analysed, its priority being its place.
#[derive(Clone, Debug)]
pub(crate) struct Item<N> {
    pub(crate) time: N,
    pub(crate) period: N,
    pub(crate) deadline: N,
    pub(crate) jitter: N,
    pub(crate) blocking: N,
    /// The first arrival, where it is known.
    pub(crate) offset: Option<N>,
}

impl Item<Rational> {
    pub(crate) fn values(&self) -> impl Iterator<Item = &Rational> {
        let five = [
            &self.time,
            &self.period,
            &self.deadline,
            &self.jitter,
            &self.blocking,
        ];
        five.into_iter().chain(self.offset.as_ref())
    }

    /// In grains; none where a number is too wide.
    pub(crate) fn scaled<N: Whole>(&self, grain: &BigInt) -> Option<Item<N>> {
        let scaled = |value: &Rational| N::small(&crate::rational::in_grains(value, grain));
        let offset = match &self.offset {
            Some(offset) => Some(scaled(offset)?),
            None => None,
        };
        Some(Item {
            time: scaled(&self.time)?,
            period: scaled(&self.period)?,
            deadline: scaled(&self.deadline)?,
            jitter: scaled(&self.jitter)?,
            blocking: scaled(&self.blocking)?,
            offset,
        })
    }
}

/// Why an analysis has no answer in such numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// A number grew too wide.
    Wide,
    /// More steps than are taken.
    Long,
}

/// Steps that may still be taken.
pub(crate) struct Budget(pub(crate) u64);

impl Budget {
    pub(crate) fn take(&mut self, steps: usize) -> Result<(), Stop> {
        let left = self.0.checked_sub(steps as u64 + 1);
        self.0 = left.ok_or(Stop::Long)?;
        Ok(())
    }
}

/// Upwards.
pub(crate) fn div_ceil<N: Whole>(top: &N, bottom: &N) -> N {
    N::zero() - (N::zero() - top.clone()).div_floor(bottom)
}

/// Arrivals below `length` of a task of which the first is at `first`, which may be before 0.
pub(crate) fn arrivals<N: Whole>(length: &N, first: &N, period: &N) -> N {
    let count = div_ceil(&(length.clone() - first.clone()), period);
    if count.is_negative() {
        N::zero()
    } else {
        count
    }
}

/// When the last of all items in `items` may begin a busy period: for each, the arrival nearest before or behind that may
/// be ready then at the earliest, from there on.
pub(crate) fn firsts<N: Whole>(items: &[Item<N>], start: &N) -> Vec<N> {
    let first = |item: &Item<N>| match &item.offset {
        None => N::zero() - item.jitter.clone(),
        Some(offset) => {
            let ready = start.clone() - item.jitter.clone() - offset.clone();
            let number = div_ceil(&ready, &item.period);
            offset.clone() + number * item.period.clone() - start.clone()
        }
    };
    items.iter().map(first).collect()
}

/// Where busy periods may begin at worst: where an arrival of known phase becomes ready at the latest, over one common
/// period. One of any phase alone: at once.
pub(crate) fn starts<N: Whole>(items: &[Item<N>], budget: &Budget) -> Result<Vec<N>, Stop> {
    let known = || items.iter().filter(|item| item.offset.is_some());
    if known().next().is_none() {
        return Ok(vec![N::zero()]);
    }
    let common = known().fold(BigInt::from(1), |common, item| {
        common.lcm(&item.period.big())
    });
    let mut counts = known().map(|item| (&common / item.period.big()).to_u64());
    let count = counts.try_fold(0_u64, |sum, count| sum.checked_add(count?));
    if count.is_none_or(|count| count > budget.0) {
        return Err(Stop::Long);
    }
    let common = N::small(&common).ok_or(Stop::Wide)?;
    let mut starts = Vec::new();
    for item in known() {
        let offset = item.offset.clone().unwrap_or_else(N::zero);
        let mut start = (offset + item.jitter.clone()).mod_floor(&item.period);
        while start < common {
            starts.push(start.clone());
            start = start + item.period.clone();
        }
    }
    starts.sort();
    starts.dedup();
    Ok(starts)
}
