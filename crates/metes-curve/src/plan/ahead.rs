//! An order for all of a chain, chosen before any of it is convolved.
//!
//! The curve of least slope comes first: with it neither the periods of the others matter nor what
//! lies far out in them. The others follow by how far each is needed beside it, the least first:
//! what is soon outgrown adds few pieces. Several curves of the least slope repeat themselves
//! together only after a common multiple of their periods, and their convolution does by the
//! greatest common divisor: a pair that soon does so comes first, and its result takes part as
//! another curve.
//!
//! Numbers are in floating point: they only choose an order, and every order gives the same curve.
//!
//! Invariant: no profile is looked at more than once but in pairs of one slope.

use super::Part;
use super::profile::Profile;

/// A step that is planned: what enters it.
pub(super) struct Planned {
    pub(super) left: Part,
    pub(super) right: Part,
    /// By what it is sorted.
    key: f64,
}

/// What enters each step, the steps being numbered from `first` on. O(n log n) for n curves, and
/// O(m³) for the m ones of least slope.
pub(super) fn steps(items: &[(Part, Profile)], first: usize) -> Vec<Planned> {
    let mut steps = Vec::with_capacity(items.len());
    let slopes = items.iter().map(|(_, profile)| profile.slope);
    let least = slopes.fold(f64::INFINITY, f64::min);
    // Equal fractions may differ in the last digit of their quotients.
    let least = least + least.abs() * 1e-12;
    let is_steeper = |item: &&(Part, Profile)| item.1.slope > least;
    // Slopes that are no number, of fractions too long for floating point, are none that is steeper.
    let is_flat = |item: &&(Part, Profile)| !is_steeper(item);
    let mut group = items.iter().filter(is_flat);
    let Some(one) = group.next() else {
        return steps;
    };
    let mut low = Flat::new(one);
    if group.next().is_some() {
        // Each pair makes another one.
        let mut group = Vec::with_capacity(2 * items.len());
        group.extend(items.iter().filter(is_flat).map(Flat::new));
        low = convolved(group, first, &mut steps);
    }
    let begin = steps.len();
    for (part, profile) in items.iter().filter(is_steeper) {
        steps.push(Planned {
            left: low.part,
            right: *part,
            key: low.reach(profile),
        });
    }
    steps[begin..].sort_by(|one, other| one.key.total_cmp(&other.key));
    for (number, step) in steps.iter_mut().enumerate().skip(begin + 1) {
        step.left = Part::Step(first + number - 1);
    }
    debug_assert_eq!(steps.len() + 1, items.len(), "a tree of all");
    steps
}

/// One curve after the other.
pub(super) fn in_order(order: &[usize]) -> Vec<Planned> {
    let Some((first, others)) = order.split_first() else {
        return Vec::new();
    };
    let mut left = Part::Curve(*first);
    let step = |(number, curve): (usize, &usize)| Planned {
        left: std::mem::replace(&mut left, Part::Step(number)),
        right: Part::Curve(*curve),
        key: 0.0,
    };
    others.iter().enumerate().map(step).collect()
}

/// All of one slope, two or more, pair by pair.
fn convolved(mut group: Vec<Flat>, first: usize, steps: &mut Vec<Planned>) -> Flat {
    let curves = group.len();
    // Of those that are not convolved yet.
    let mut pairs = Vec::with_capacity(curves * curves);
    for other in 1..curves {
        pairs.extend((0..other).map(|one| (group[one].together(&group[other]), one, other)));
    }
    let mut waiting: Vec<usize> = (0..curves).collect();
    while let Some(&(key, one, other)) = pairs.iter().min_by(|a, b| a.0.total_cmp(&b.0)) {
        let made = Part::Step(first + steps.len());
        let (left, right) = (group[one].part, group[other].part);
        steps.push(Planned { left, right, key });
        let made = group[one].with(&group[other], made);
        waiting.retain(|flat| *flat != one && *flat != other);
        pairs.retain(|(_, a, b)| *a != one && *a != other && *b != one && *b != other);
        let number = group.len();
        match waiting[..] {
            // There is no choice.
            [last] => pairs.push((0.0, last, number)),
            _ => {
                let rest = waiting.iter();
                pairs.extend(rest.map(|one| (group[*one].together(&made), *one, number)));
            }
        }
        waiting.push(number);
        group.push(made);
    }
    // The last one made is what all came to.
    group.swap_remove(group.len() - 1)
}

/// A curve of least slope, or what is known of the convolution of several.
struct Flat {
    part: Part,
    slope: f64,
    transient: f64,
    /// 0 if it has every period.
    period: f64,
    /// Highest above the slope in the end, and lowest anywhere.
    most: f64,
    least: f64,
    origin: f64,
}

impl Flat {
    fn new((part, profile): &(Part, Profile)) -> Self {
        Flat {
            part: *part,
            slope: profile.slope,
            transient: profile.transient,
            period: match profile.is_affine {
                true => 0.0,
                false => profile.period,
            },
            most: profile.most,
            least: profile.least,
            origin: profile.origin,
        }
    }

    /// After what time both repeat themselves together.
    fn together(&self, other: &Flat) -> f64 {
        self.transient + other.transient + 2.0 * multiple(self.period, other.period)
    }

    /// Their convolution.
    fn with(&self, other: &Flat, part: Part) -> Self {
        let multiple = multiple(self.period, other.period);
        Flat {
            part,
            slope: self.slope,
            transient: self.transient + other.transient + multiple,
            // Of two numbers, the common multiple times the common divisor.
            period: match self.period > 0.0 && other.period > 0.0 {
                true => self.period * other.period / multiple,
                false => multiple,
            },
            most: (self.most + other.origin).min(other.most + self.origin),
            least: self.least + other.least,
            origin: self.origin + other.origin,
        }
    }

    /// How far a steeper curve is needed beside it: until it has outgrown what this one varies by.
    fn reach(&self, high: &Profile) -> f64 {
        match high.slope == f64::INFINITY {
            true => high.transient,
            false => {
                (self.most - self.least + high.origin - high.least) / (high.slope - self.slope)
            }
        }
    }
}

/// The least common multiple, about; of 0 and another that other.
fn multiple(one: f64, other: f64) -> f64 {
    if one == other || other == 0.0 {
        return one;
    }
    if one == 0.0 {
        return other;
    }
    super::profile::common(one, other)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn numbers() -> impl Strategy<Value = f64> {
        let special = [0.0, 1.0, 2.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
        prop_oneof![
            3 => (1..20_i32).prop_map(f64::from),
            1 => proptest::sample::select(special.to_vec()),
        ]
    }

    proptest! {
        /// Whatever profiles are like, each curve and each result but the last enters one step.
        #[test]
        fn steps_are_a_tree(
            all in proptest::collection::vec(proptest::array::uniform7(numbers()), 1..9),
            affine in any::<u16>(),
            first in 0..5_usize,
        ) {
            let profiles: Vec<Profile> = all
                .into_iter()
                .enumerate()
                .map(|(number, numbers)| Profile::drawn(numbers, affine >> number & 1 == 1))
                .collect();
            let items: Vec<(Part, Profile)> = profiles
                .iter()
                .enumerate()
                .map(|(number, profile)| (Part::Curve(number), *profile))
                .collect();
            let steps = steps(&items, first);
            prop_assert_eq!(steps.len() + 1, items.len());
            let mut waiting: BTreeSet<(bool, usize)> =
                (0..items.len()).map(|curve| (false, curve)).collect();
            for (number, step) in steps.iter().enumerate() {
                for part in [step.left, step.right] {
                    let part = match part {
                        Part::Curve(curve) => (false, curve),
                        Part::Step(step) => (true, step),
                    };
                    prop_assert!(waiting.remove(&part), "{:?} is there once", part);
                }
                waiting.insert((true, first + number));
            }
        }
    }

    #[test]
    fn least_slope_first_then_what_is_soon_outgrown() {
        // Slope, transient, period, most, least, origin, step.
        let profile = |slope: f64, least: f64| {
            Profile::drawn([slope, 0.0, 10.0, 5.0, least, 0.0, slope * 10.0], false)
        };
        // Beside the second: (5 + 5 + 8) / 4, (5 + 5 + 1) / 2, (5 + 5 + 3) / 9.
        let all = [
            profile(5.0, -8.0),
            profile(1.0, -5.0),
            profile(3.0, -1.0),
            profile(10.0, -3.0),
        ];
        let items: Vec<(Part, Profile)> = all
            .iter()
            .enumerate()
            .map(|(number, profile)| (Part::Curve(number), *profile))
            .collect();
        let order: Vec<(Part, Part)> = steps(&items, 0)
            .into_iter()
            .map(|step| (step.left, step.right))
            .collect();
        let expected = [
            (Part::Curve(1), Part::Curve(3)),
            (Part::Step(0), Part::Curve(0)),
            (Part::Step(1), Part::Curve(2)),
        ];
        assert_eq!(order, expected);
    }

    #[test]
    fn of_one_slope_those_that_repeat_soon_first() {
        let profile =
            |period: f64| Profile::drawn([1.0, 0.0, period, 1.0, 0.0, 0.0, period], false);
        let all = [7.0, 6.0, 5.0, 9.0].map(profile);
        let items: Vec<(Part, Profile)> = all
            .iter()
            .enumerate()
            .map(|(number, profile)| (Part::Curve(number), *profile))
            .collect();
        let first = &steps(&items, 0)[0];
        // 18 is the least of all common multiples.
        assert_eq!((first.left, first.right), (Part::Curve(1), Part::Curve(3)));
    }
}
