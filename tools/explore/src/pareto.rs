//! Which outcomes no other one beats.
//!
//! Objectives are minimised. One point *dominates* another when it is nowhere
//! worse and somewhere better; equal points do not dominate each other.

use std::collections::BTreeMap;

/// Footprint in bytes, cycles of the whole trace, most cycles of one operation.
pub type Objectives = [u64; 3];

/// Whether `a` dominates `b`.
pub fn dominates(a: &Objectives, b: &Objectives) -> bool {
    a.iter().zip(b).all(|(a, b)| a <= b) && a != b
}

/// The positions of all points that no other point dominates, ascending.
///
/// O(n log n) for the three objectives (Kung, Luccio, Preparata 1975): in
/// lexicographic order only earlier points can dominate later ones, and of these
/// a staircase over the last two objectives says the best of the third for
/// every value of the second.
pub fn front(points: &[Objectives]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..points.len()).collect();
    order.sort_unstable_by_key(|&index| points[index]);
    // Second objective -> least third objective so far; falls as the key rises.
    let mut stairs: BTreeMap<u64, u64> = BTreeMap::new();
    let mut kept = Vec::new();
    let mut last: Option<(Objectives, bool)> = None;
    for index in order {
        let point = points[index];
        let keep = match last {
            // Equal points share their fate.
            Some((same, kept)) if same == point => kept,
            _ => {
                let below = stairs.range(..=point[1]).next_back();
                below.is_none_or(|(_, &third)| third > point[2])
            }
        };
        last = Some((point, keep));
        if !keep {
            continue;
        }
        kept.push(index);
        let beaten: Vec<u64> = stairs
            .range(point[1]..)
            .take_while(|&(_, &third)| third >= point[2])
            .map(|(&second, _)| second)
            .collect();
        for second in beaten {
            stairs.remove(&second);
        }
        stairs.insert(point[1], point[2]);
    }
    kept.sort_unstable();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn naive(points: &[Objectives]) -> Vec<usize> {
        (0..points.len())
            .filter(|&index| !points.iter().any(|other| dominates(other, &points[index])))
            .collect()
    }

    proptest! {
        #[test]
        fn the_front_is_that_of_the_definition(
            points in prop::collection::vec([0_u64..12, 0_u64..12, 0_u64..12], 0..200),
            wide in prop::collection::vec(any::<[u64; 3]>(), 0..60),
            flat in prop::collection::vec([0_u64..30, 0_u64..30, 7_u64..8], 0..100),
        ) {
            prop_assert_eq!(front(&points), naive(&points));
            prop_assert_eq!(front(&wide), naive(&wide));
            prop_assert_eq!(front(&flat), naive(&flat));
        }
    }
}
