//! The cheapest tree by predicted sizes: dynamic programming over subsets, as in the join orders
//! of databases (Selinger and others, 1979).
//!
//! Invariant: a subset's cost is that of its cheapest split, and of a split that of both parts and
//! of their convolution.

use super::orders::splits;
use super::profile::Profile;

/// Which two items the cheapest tree convolves first, by their places. O(3ⁿ) with n items.
pub(super) fn first_pair(items: &[&Profile]) -> (usize, usize) {
    let sets = 1_usize << items.len();
    let mut cheapest: Vec<Option<Best>> = vec![None; sets];
    for set in 1..sets {
        let best = match set.count_ones() {
            1 => Best {
                cost: 0.0,
                split: (0, 0),
                profile: items[set.trailing_zeros() as usize].clone(),
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
