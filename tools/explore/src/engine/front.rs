//! Points that nothing beats.
//!
//! Invariant: no point of a [`Front`] dominates or equals another one.

/// The values of all objectives, zero for those that were not chosen.
pub type Point = [u64; 6];

/// Whether `a` is nowhere worse than `b` and somewhere better.
#[inline]
pub fn dominates(a: &Point, b: &Point) -> bool {
    a.iter().zip(b).all(|(a, b)| a <= b) && a != b
}

/// A set of points that nothing beats, each with the number of its heap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Front {
    points: Vec<(Point, u64)>,
}

impl Front {
    /// No points.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a point that nothing beats or equals, and drops those that it beats.
    /// O(points). Returns whether it was added.
    pub fn enter(&mut self, point: Point, number: u64) -> bool {
        let refused = |(own, _): &(Point, u64)| own.iter().zip(&point).all(|(a, b)| a <= b);
        if self.points.iter().any(refused) {
            return false;
        }
        self.points.retain(|(own, _)| !dominates(&point, own));
        self.points.push((point, number));
        true
    }

    /// Whether some point beats this one.
    #[inline]
    pub fn beats(&self, point: &Point) -> bool {
        self.points.iter().any(|(own, _)| dominates(own, point))
    }

    /// Points and numbers in the order of entry.
    pub fn points(&self) -> &[(Point, u64)] {
        &self.points
    }

    /// Numbers, by rising first objective.
    pub fn numbers(&self) -> Vec<u64> {
        let mut points = self.points.clone();
        points.sort_unstable();
        points.into_iter().map(|(_, number)| number).collect()
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
