//! A cheap tree by predicted sizes: dynamic programming over subsets, as in the join orders of
//! databases (Selinger and others, 1979). What a subset's result is predicted to be like depends on
//! the way it is made, and the cheapest way alone is kept: so the tree need not be the cheapest.
//!
//! Invariant: a subset's cost is that of its cheapest split, and of a split that of both parts and
//! of their convolution.

use super::orders::splits;
use super::profile::Profile;

/// Which two items the cheapest tree convolves first, by their places. O(3ⁿ) with n items.
pub(super) fn first_pair(items: &[Profile]) -> (usize, usize) {
    let sets = 1_usize << items.len();
    let mut cheapest: Vec<Option<Best>> = vec![None; sets];
    for set in 1..sets {
        let best = match set.count_ones() {
            1 => Best {
                cost: 0.0,
                split: (0, 0),
                profile: items[set.trailing_zeros() as usize],
            },
            _ => best(&cheapest, set as u32),
        };
        cheapest[set] = Some(best);
    }
    // Down to a pair of single items, by the dearer part: it is looked at again soonest.
    let mut set = sets - 1;
    loop {
        let Some(Best { split, .. }) = &cheapest[set] else {
            return (0, 1);
        };
        let (one, other) = *split;
        if one.count_ones() == 1 && other.count_ones() == 1 {
            return (
                one.trailing_zeros() as usize,
                other.trailing_zeros() as usize,
            );
        }
        let cost = |part: u32| {
            cheapest[part as usize]
                .as_ref()
                .map_or(0.0, |best| best.cost)
        };
        set = match cost(one) >= cost(other) {
            true => one,
            false => other,
        } as usize;
    }
}

#[derive(Clone)]
struct Best {
    cost: f64,
    split: (u32, u32),
    profile: Profile,
}

fn best(cheapest: &[Option<Best>], set: u32) -> Best {
    let mut found: Option<Best> = None;
    for split in splits(set) {
        let parts = [split.0, split.1].map(|part| cheapest[part as usize].as_ref());
        let [Some(one), Some(other)] = parts else {
            continue;
        };
        let cost = one.cost + other.cost + one.profile.cost(&other.profile);
        if found.as_ref().is_none_or(|found| cost < found.cost) {
            found = Some(Best {
                cost,
                split,
                profile: one.profile.convolved(&other.profile),
            });
        }
    }
    // A set of two curves or more has a split.
    found.unwrap_or_else(|| unreachable!("every set of two has a split"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::Curve;
    use crate::number::Rational;

    /// One way to convolve a set.
    #[derive(Clone)]
    struct Tree {
        items: u32,
        parts: Option<Box<(Tree, Tree)>>,
        /// Of all its convolutions.
        cost: f64,
        /// Of its result: depends on the way.
        profile: Profile,
    }

    impl Tree {
        fn leaf(profiles: &[Profile], item: u32) -> Self {
            Tree {
                items: 1 << item,
                parts: None,
                cost: 0.0,
                profile: profiles[item as usize],
            }
        }

        fn of(one: Tree, other: Tree) -> Self {
            Tree {
                items: one.items | other.items,
                cost: one.cost + other.cost + one.profile.cost(&other.profile),
                profile: one.profile.convolved(&other.profile),
                parts: Some(Box::new((one, other))),
            }
        }

        /// Whether these two items meet in it before any other meets one of them.
        fn begins_with(&self, pair: u32) -> bool {
            self.parts.as_deref().is_some_and(|(one, other)| {
                self.items == pair || one.begins_with(pair) || other.begins_with(pair)
            })
        }

        /// The pair that is found by always taking the dearer part.
        fn dearest_pair(&self) -> u32 {
            match self.parts.as_deref() {
                Some((one, other)) if self.items.count_ones() > 2 => {
                    let dearer = if one.cost >= other.cost { one } else { other };
                    dearer.dearest_pair()
                }
                _ => self.items,
            }
        }
    }

    /// All trees of a set: 3, 15 and 105 of 3, 4 and 5 items.
    fn trees(profiles: &[Profile], set: u32) -> Vec<Tree> {
        if set.count_ones() == 1 {
            return vec![Tree::leaf(profiles, set.trailing_zeros())];
        }
        let mut all = Vec::new();
        for (one, other) in splits(set) {
            let others = trees(profiles, other);
            for one in trees(profiles, one) {
                let trees = others
                    .iter()
                    .map(|other| Tree::of(one.clone(), other.clone()));
                all.extend(trees);
            }
        }
        all
    }

    /// The cheapest tree of those whose parts are each made in their own cheapest way.
    fn cheapest(profiles: &[Profile], set: u32) -> Tree {
        if set.count_ones() == 1 {
            return Tree::leaf(profiles, set.trailing_zeros());
        }
        let trees = splits(set)
            .map(|(one, other)| Tree::of(cheapest(profiles, one), cheapest(profiles, other)));
        trees
            .reduce(|best, next| if next.cost < best.cost { next } else { best })
            .expect("a set of two has a split")
    }

    /// Profiles of staircases, 60 sets: some that begin late, some of one slope.
    fn sets(count: u32) -> Vec<Vec<Profile>> {
        let mut state = 7_u64;
        let mut next = move |most: u64| {
            // Knuth's multiplier and increment.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            Rational::from(((state >> 33) % most) as i64)
        };
        let one = Rational::from(1);
        let mut staircase = |kind: u32| {
            let length = &next(20) + &one;
            let (offset, height) = match kind {
                0 => (next(5), &next(20) + &one),
                1 => (Rational::from(0), &next(6) + &one),
                _ => (next(9), &length * &Rational::from(2)),
            };
            let curve = Curve::staircase(&offset, &length, &height).expect("in range");
            Profile::of(&curve)
        };
        (0..60)
            .map(|set| (0..count).map(|_| staircase(set % 3)).collect())
            .collect()
    }

    /// What is chosen, as a set of two.
    fn chosen(profiles: &[Profile]) -> u32 {
        let (one, other) = first_pair(profiles);
        assert_ne!(one, other);
        1 << one | 1 << other
    }

    /// How many times the cheapest tree that begins with what is chosen costs the cheapest of all.
    fn regret(profiles: &[Profile], trees: &[Tree]) -> f64 {
        let pair = chosen(profiles);
        let least = |trees: &mut dyn Iterator<Item = &Tree>| {
            trees.map(|tree| tree.cost).fold(f64::INFINITY, f64::min)
        };
        let begun = least(&mut trees.iter().filter(|tree| tree.begins_with(pair)));
        begun / least(&mut trees.iter())
    }

    #[test]
    fn of_three_the_cheapest_tree_is_begun() {
        for profiles in sets(3) {
            let trees = trees(&profiles, 0b111);
            assert_eq!(trees.len(), 3);
            assert_eq!(regret(&profiles, &trees), 1.0, "{profiles:?}");
        }
    }

    #[test]
    fn each_part_is_made_in_its_cheapest_way() {
        for count in [2, 4, 5] {
            for profiles in sets(count) {
                let tree = cheapest(&profiles, (1 << count) - 1);
                assert_eq!(chosen(&profiles), tree.dearest_pair(), "{profiles:?}");
            }
        }
    }

    /// What a part is like is predicted from how it was made, and one profile is kept of each: so the cheapest
    /// of all trees may have a part made in a dearer way.
    #[test]
    fn the_cheapest_of_all_trees_is_near() {
        for (count, all) in [(4, 15), (5, 105)] {
            let mut cheapest = 0;
            for profiles in sets(count) {
                let trees = trees(&profiles, (1 << count) - 1);
                assert_eq!(trees.len(), all);
                let regret = regret(&profiles, &trees);
                assert!(regret < 1.25, "{regret}: {profiles:?}");
                cheapest += u32::from(regret == 1.0);
            }
            assert!(cheapest >= 50, "{cheapest} of 60");
        }
    }
}
