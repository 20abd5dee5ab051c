//! What of a chain comes first, chosen before any of it is convolved.
//!
//! The curve of least slope comes first: with it neither the periods of the others matter nor what
//! lies far out in them ([`crate::together`]). Several curves of the least slope repeat themselves
//! together only after a common multiple of their periods, and their convolution does by the
//! greatest common divisor: a pair that soon does so comes first, and its result takes part as
//! another curve.
//!
//! Numbers are in floating point: they only choose an order, and every order gives the same curve.
//!
//! Invariant: every part enters one pair, or is steeper, or is the only one of its slope.

use std::borrow::Cow;
use std::num::NonZeroU32;

use super::Part;
use super::profile::{Profile, common};

/// What is convolved first, and what is left then.
pub(super) struct Ahead {
    /// Curves of the least slope, pair by pair.
    pub(super) pairs: Vec<(Part, Part)>,
    /// What all of these come to, if there are any.
    pub(super) low: Option<Part>,
    /// What is steeper.
    pub(super) high: Vec<Part>,
}

impl Ahead {
    /// Of some parts, when so many steps are done. O(n) for n curves, and O(m³) for the m ones of least
    /// slope.
    pub(super) fn of<'a>(
        parts: impl ExactSizeIterator<Item = Part> + Clone,
        profile: impl Fn(Part) -> Cow<'a, Profile>,
        steps: usize,
    ) -> Self {
        let count = parts.len();
        let slopes = parts.clone().map(|part| profile(part).slope);
        let least = slopes.fold(f64::INFINITY, f64::min);
        // Equal fractions may differ in the last digit of their quotients.
        let least = least + least.abs() * 1e-12;
        let mut ahead = Ahead {
            pairs: Vec::new(),
            low: None,
            high: Vec::with_capacity(count),
        };
        let mut group = Vec::new();
        for part in parts {
            // Slopes that are no number, of fractions too long for floating point, are none that is steeper.
            match (profile(part).slope > least, ahead.low) {
                (true, _) => ahead.high.push(part),
                (false, None) => ahead.low = Some(part),
                (false, Some(first)) => {
                    if group.is_empty() {
                        group.reserve(count);
                        group.push(Flat::new(first, &profile(first)));
                    }
                    group.push(Flat::new(part, &profile(part)));
                }
            }
        }
        if !group.is_empty() {
            ahead.low = Some(convolved(group, steps, &mut ahead.pairs));
        }
        ahead
    }
}

/// Which of several curves is needed least far beside a slow one, by its place.
pub(super) fn least_reach<'a>(
    low: &Profile,
    high: impl Iterator<Item = Cow<'a, Profile>>,
) -> usize {
    let reaches = high.map(|high| low.reach_of(&high)).enumerate();
    let least = reaches.min_by(|(_, one), (_, other)| one.total_cmp(other));
    least.map_or(0, |(place, _)| place)
}

/// All of one slope, two or more, pair by pair: what all come to. The pair is next that repeats itself
/// together first.
fn convolved(mut group: Vec<Flat>, before: usize, pairs: &mut Vec<(Part, Part)>) -> Part {
    pairs.reserve(group.len());
    while group.len() > 2 {
        let (mut soonest, mut next) = (f64::INFINITY, (0, 1));
        for other in 1..group.len() {
            for one in 0..other {
                // A common multiple is no less than either, and asked for only where that is soon enough.
                if group[one].together_at_least(&group[other]) < soonest {
                    let together = group[one].together(&group[other]);
                    if together < soonest {
                        (soonest, next) = (together, (one, other));
                    }
                }
            }
        }
        // The later place first, so that the earlier one stays.
        let (other, one) = (group.swap_remove(next.1), group.swap_remove(next.0));
        let made = Part::Step(before + pairs.len());
        pairs.push((one.part, other.part));
        group.push(one.with(&other, made));
    }
    // Of two there is no choice.
    if let [one, other] = &group[..] {
        pairs.push((one.part, other.part));
    }
    Part::Step(before + pairs.len() - 1)
}

/// When a curve of least slope repeats itself, or what is known of the convolution of several.
struct Flat {
    part: Part,
    transient: f64,
    /// 0 if it has every period.
    period: Period,
}

/// A period; as a whole number, too, if it is one.
#[derive(Clone, Copy)]
struct Period {
    time: f64,
    whole: Option<NonZeroU32>,
}

impl Period {
    fn new(time: f64) -> Self {
        // A cast saturates, so that what is no such number differs.
        let whole = NonZeroU32::new(time as u32).filter(|whole| f64::from(whole.get()) == time);
        Period { time, whole }
    }

    /// The least common multiple and the greatest common divisor, about; of 0 and another, that other.
    fn with(self, other: Self) -> (f64, Self) {
        if let (Some(one), Some(two)) = (self.whole, other.whole) {
            let divisor = divisor(one, two);
            let time = f64::from(divisor.get());
            let whole = Some(divisor);
            return (self.time * other.time / time, Period { time, whole });
        }
        match (self.time > 0.0, other.time > 0.0) {
            (true, true) => {
                let multiple = common(self.time, other.time);
                let divisor = self.time * other.time / multiple;
                (multiple, Period::new(divisor))
            }
            (true, false) => (self.time, self),
            _ => (other.time, other),
        }
    }
}

/// The greatest common divisor, without divisions (Stein, 1967).
fn divisor(one: NonZeroU32, other: NonZeroU32) -> NonZeroU32 {
    let twos = (one.get() | other.get()).trailing_zeros();
    let odd = |number: u32| number >> number.trailing_zeros();
    let (mut one, mut other) = (odd(one.get()), odd(other.get()));
    while one != other {
        (one, other) = (odd(one.abs_diff(other)), one.min(other));
    }
    NonZeroU32::new(one << twos).unwrap_or(NonZeroU32::MIN)
}

impl Flat {
    fn new(part: Part, profile: &Profile) -> Self {
        let period = match profile.is_affine {
            true => 0.0,
            false => profile.period,
        };
        Flat {
            part,
            transient: profile.transient,
            period: Period::new(period),
        }
    }

    /// Not before what time both repeat themselves together.
    fn together_at_least(&self, other: &Flat) -> f64 {
        self.transient + other.transient + 2.0 * self.period.time.max(other.period.time)
    }

    /// After what time both repeat themselves together.
    fn together(&self, other: &Flat) -> f64 {
        self.transient + other.transient + 2.0 * self.period.with(other.period).0
    }

    /// Their convolution.
    fn with(&self, other: &Flat, part: Part) -> Self {
        let (multiple, period) = self.period.with(other.period);
        Flat {
            part,
            transient: self.transient + other.transient + multiple,
            period,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use num_integer::Integer;
    use proptest::prelude::*;

    use super::*;

    fn numbers() -> impl Strategy<Value = f64> {
        let special = [0.0, 1.0, 2.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        prop_oneof![
            3 => (1..20_i32).prop_map(f64::from),
            1 => proptest::sample::select(special.to_vec()),
        ]
    }

    fn ahead(profiles: &[Profile], steps: usize) -> Ahead {
        let parts = (0..profiles.len()).map(Part::Curve);
        let profile = |part: Part| match part {
            Part::Curve(curve) => Cow::Borrowed(&profiles[curve]),
            Part::Step(_) => unreachable!("nothing is made yet"),
        };
        Ahead::of(parts, profile, steps)
    }

    proptest! {
        /// Whatever profiles are like, each curve enters a pair once, or is left; and each result, once.
        #[test]
        fn all_are_there_once(
            all in proptest::collection::vec(proptest::array::uniform7(numbers()), 1..9),
            affine in any::<u16>(),
            steps in 0..5_usize,
        ) {
            let profiles: Vec<Profile> = all
                .into_iter()
                .enumerate()
                .map(|(number, numbers)| Profile::drawn(numbers, affine >> number & 1 == 1))
                .collect();
            let Ahead { pairs, low, high } = ahead(&profiles, steps);
            let key = |part: Part| match part {
                Part::Curve(curve) => (false, curve),
                Part::Step(step) => (true, step),
            };
            let mut waiting: BTreeSet<(bool, usize)> =
                (0..profiles.len()).map(|curve| (false, curve)).collect();
            for (number, (left, right)) in pairs.iter().enumerate() {
                for part in [left, right] {
                    prop_assert!(waiting.remove(&key(*part)), "{:?} is there once", part);
                }
                waiting.insert((true, steps + number));
            }
            let left: Vec<Part> = low.into_iter().chain(high).collect();
            prop_assert_eq!(left.len(), waiting.len());
            let left: BTreeSet<(bool, usize)> = left.into_iter().map(key).collect();
            prop_assert_eq!(left, waiting);
        }

        #[test]
        fn divisors_are_the_greatest(one in 1..10_000_u32, other in 1..10_000_u32) {
            let [a, b] = [one, other].map(|number| NonZeroU32::new(number).expect("above zero"));
            prop_assert_eq!(divisor(a, b).get(), one.gcd(&other));
            let (multiple, period) = Period::new(one.into()).with(Period::new(other.into()));
            prop_assert_eq!(multiple, f64::from(one.lcm(&other)));
            prop_assert_eq!(period.time, f64::from(one.gcd(&other)));
        }
    }

    /// Slope, transient, period, most, least, origin, step.
    fn profile(slope: f64, period: f64, least: f64) -> Profile {
        Profile::drawn([slope, 0.0, period, 5.0, least, 0.0, slope * period], false)
    }

    #[test]
    fn the_flattest_is_not_among_the_others() {
        let all = [5.0, 1.0, 3.0, 10.0].map(|slope| profile(slope, 10.0, 0.0));
        let Ahead { pairs, low, high } = ahead(&all, 0);
        assert_eq!((pairs, low), (vec![], Some(Part::Curve(1))));
        assert_eq!(high, [0, 2, 3].map(Part::Curve));
    }

    #[test]
    fn what_is_soon_outgrown_is_next() {
        let low = profile(1.0, 10.0, -5.0);
        // (5 + 5 + 8) / 4, (5 + 5 + 1) / 2, (5 + 5 + 3) / 9.
        let high = [(5.0, -8.0), (3.0, -1.0), (10.0, -3.0)];
        let high = high.map(|(slope, least)| profile(slope, 10.0, least));
        let high = || high.iter().map(Cow::Borrowed);
        assert_eq!(least_reach(&low, high()), 2);
        assert_eq!(least_reach(&low, high().take(2)), 0);
    }

    #[test]
    fn of_one_slope_those_that_repeat_soon_first() {
        let all = [7.0, 6.0, 5.0, 9.0].map(|period| profile(1.0, period, 0.0));
        let Ahead { pairs, low, high } = ahead(&all, 0);
        // 18 is the least of all common multiples; then 5 with their greatest common divisor, 3.
        let expected = [
            (Part::Curve(1), Part::Curve(3)),
            (Part::Curve(2), Part::Step(0)),
            (Part::Curve(0), Part::Step(1)),
        ];
        assert_eq!(pairs, expected);
        assert_eq!((low, high), (Some(Part::Step(2)), vec![]));
    }
}
