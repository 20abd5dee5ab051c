//! Which outcomes no other one beats.
//!
//! Objectives are minimised. One point *dominates* another when it is nowhere
//! worse and somewhere better; equal points do not dominate each other.

use std::collections::BTreeMap;

/// Footprint in bytes, cycles of the whole trace, most cycles of one operation.
pub type Objectives = [u64; 3];

/// Whether `a` dominates `b`. O(N).
#[inline]
pub fn dominates<const N: usize>(a: &[u64; N], b: &[u64; N]) -> bool {
    a.iter().zip(b).all(|(a, b)| a <= b) && a != b
}

/// A set of points that nothing beats, each with what it is of.
///
/// Invariant: no point dominates or equals another one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Front<const N: usize, T> {
    points: Vec<([u64; N], T)>,
}

impl<const N: usize, T> Default for Front<N, T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize, T> Front<N, T> {
    /// No points.
    pub const fn new() -> Self {
        Front { points: Vec::new() }
    }

    /// Adds a point that nothing beats or equals, and drops those that it beats.
    /// O(points). Returns whether it was added.
    pub fn enter(&mut self, point: [u64; N], of: T) -> bool {
        let refused = |(own, _): &([u64; N], T)| own.iter().zip(&point).all(|(a, b)| a <= b);
        if self.points.iter().any(refused) {
            return false;
        }
        self.points.retain(|(own, _)| !dominates(&point, own));
        self.points.push((point, of));
        true
    }

    /// Whether some point beats this one. O(points).
    #[inline]
    pub fn beats(&self, point: &[u64; N]) -> bool {
        self.points.iter().any(|(own, _)| dominates(own, point))
    }

    /// Points, and what they are of, in the order of entry.
    pub fn points(&self) -> &[([u64; N], T)] {
        &self.points
    }

    /// How many points there are.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.points.is_empty()
    }
}

impl<const N: usize, T: Copy + Ord> Front<N, T> {
    /// What the points are of, by rising first objective. O(n log n).
    pub fn numbers(&self) -> Vec<T> {
        let mut points = self.points.clone();
        points.sort_unstable();
        points.into_iter().map(|(_, number)| number).collect()
    }
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
            // One by one, the first of equals.
            let mut entered = Front::new();
            for (index, point) in points.iter().enumerate() {
                entered.enter(*point, index);
            }
            let mut met = std::collections::HashSet::new();
            let mut firsts = naive(&points);
            firsts.retain(|&index| met.insert(points[index]));
            let mut found: Vec<usize> = entered.points().iter().map(|&(_, of)| of).collect();
            found.sort_unstable();
            prop_assert_eq!(found, firsts);
            for point in &flat {
                let beaten = points.iter().any(|other| dominates(other, point));
                prop_assert_eq!(entered.beats(point), beaten);
            }
        }
    }
}
