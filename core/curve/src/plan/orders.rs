//! Orders in which the curves of a chain can be convolved: left to right after one of n!/2
//! permutations, or by any of the (2n − 3)!! trees.
//!
//! A set of curves is a number whose bits say which it has. Convolution is commutative and
//! associative, and equal functions are equal structs; so every subset has one result, however it
//! was made, and all trees of n curves need no more convolutions than there are ways to split a
//! subset in two: (3ⁿ − 2ⁿ⁺¹ + 1) / 2, 301 of six curves.
//!
//! Invariant: an unordered pair is listed once.

/// Permutations of `0..count`, the first two ascending: n!/2 orders, in lexicographic order.
#[must_use]
pub fn orders(count: usize) -> Vec<Vec<usize>> {
    let mut found = Vec::new();
    let mut order = Vec::with_capacity(count);
    extend(count, &mut order, &mut found);
    found
}

fn extend(count: usize, order: &mut Vec<usize>, found: &mut Vec<Vec<usize>>) {
    if order.len() == count {
        found.push(order.clone());
        return;
    }
    for next in 0..count {
        let twice = order.len() == 1 && order[0] > next;
        if !order.contains(&next) && !twice {
            order.push(next);
            extend(count, order, found);
            order.pop();
        }
    }
}

/// The ways to split a set of two curves or more in two, each as the part that holds the least
/// curve and the other.
pub fn splits(set: u32) -> impl Iterator<Item = (u32, u32)> {
    let least = set & set.wrapping_neg();
    let rest = set ^ least;
    // Every subset of the rest but all of it, from the largest.
    let mut part = rest;
    std::iter::from_fn(move || {
        if part == 0 {
            return None;
        }
        part = (part - 1) & rest;
        Some((least | part, rest ^ part))
    })
}

/// The cost of each tree of all `count` curves, from that of each split; in no particular order.
/// (2n − 3)!! values: 945 of six curves.
#[must_use]
pub fn costs_of_trees(count: usize, cost: &dyn Fn(u32, u32) -> f64) -> Vec<f64> {
    let sets = 1_usize << count;
    let mut costs: Vec<Vec<f64>> = vec![Vec::new(); sets];
    for set in 1..sets {
        if set.count_ones() == 1 {
            costs[set] = vec![0.0];
            continue;
        }
        let mut all = Vec::new();
        for (one, other) in splits(set as u32) {
            let own = cost(one, other);
            for left in &costs[one as usize] {
                all.extend(costs[other as usize].iter().map(|right| own + left + right));
            }
        }
        costs[set] = all;
    }
    costs.pop().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_as_counted() {
        assert_eq!(orders(2), [[0, 1]]);
        assert_eq!(orders(6).len(), 360);
        let sets = 1..1_u32 << 6;
        let all: usize = sets
            .filter(|set: &u32| set.count_ones() > 1)
            .map(|set| splits(set).count())
            .sum();
        assert_eq!(all, 301);
        for (count, trees) in [(2, 1), (3, 3), (4, 15), (5, 105), (6, 945)] {
            assert_eq!(
                costs_of_trees(count, &|_, _| 1.0),
                vec![count as f64 - 1.0; trees]
            );
        }
    }

    #[test]
    fn a_split_is_listed_once() {
        for set in [0b11_u32, 0b1011, 0b11_1111] {
            let mut seen: Vec<(u32, u32)> = splits(set).collect();
            assert!(
                seen.iter()
                    .all(|(one, other)| one & other == 0 && one | other == set)
            );
            assert!(seen.iter().all(|(one, other)| *one != 0 && *other != 0));
            let count = seen.len();
            seen.sort_unstable();
            seen.dedup();
            assert_eq!(seen.len(), count);
            assert_eq!(count, (1 << (set.count_ones() - 1)) - 1);
        }
    }
}
