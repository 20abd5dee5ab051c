//! How much of the space of objectives a set of points dominates.
//!
//! Objectives are taken by logarithm between two ends each, so that a factor
//! counts the same everywhere, and the volume is a share of the box between the
//! ends: 0 for nothing, 1 for its best corner.
//!
//! Exact for any number of objectives by slicing (While, Hingston, Barone,
//! Huband 2006): O(n log n) for two, O(n² log n) for three, O(n³ log n) for four.

use super::objective::ObjectiveSet;
use super::objective::{Front, OBJECTIVES, Point};

/// The box that volumes are shares of.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// Place in a point, natural logarithms of the best and the worst value.
    axes: Vec<(usize, f64, f64)>,
}

impl Scale {
    /// The box around some points: the least and the largest value of each
    /// objective, finite ones where there are several. An objective in which all points agree spans no box and
    /// is left out. `None` without points.
    pub fn around<'p>(
        points: impl Iterator<Item = &'p Point>,
        objectives: ObjectiveSet,
    ) -> Option<Self> {
        let (mut least, mut most) = ([u64::MAX; OBJECTIVES], [0; OBJECTIVES]);
        let mut infinite = [false; OBJECTIVES];
        let mut any = false;
        for point in points {
            any = true;
            for (axis, &value) in point.iter().enumerate() {
                if value == u64::MAX {
                    infinite[axis] = true;
                    continue;
                }
                least[axis] = least[axis].min(value);
                most[axis] = most[axis].max(value);
            }
        }
        for axis in 0..OBJECTIVES {
            // One value and infinity span a box, too.
            if infinite[axis] && least[axis] >= most[axis] {
                most[axis] = u64::MAX;
            }
        }
        let axes = objectives.iter().map(|objective| objective as usize);
        let axes = axes
            .filter(|&axis| least[axis] < most[axis])
            .map(|axis| (axis, ln(least[axis]), ln(most[axis])));
        any.then(|| Scale {
            axes: axes.collect(),
        })
    }

    /// A point with the best corner at 0 and the worst at 1.
    fn place(&self, point: &Point) -> Vec<f64> {
        let share = |&(axis, best, worst): &(usize, f64, f64)| {
            ((ln(point[axis]) - best) / (worst - best)).clamp(0.0, 1.0)
        };
        self.axes.iter().map(share).collect()
    }

    /// The share of the box that a front dominates.
    pub fn volume(&self, front: &Front) -> f64 {
        let points = front.points().iter();
        hypervolume(points.map(|(point, _)| self.place(point)).collect())
    }
}

fn ln(value: u64) -> f64 {
    (value.max(1) as f64).ln()
}

/// The volume between points and the corner at 1 of all axes; smaller is better.
/// Points of one length, at most four axes for a volume in reasonable time.
pub fn hypervolume(mut points: Vec<Vec<f64>>) -> f64 {
    let Some(axes) = points.first().map(Vec::len) else {
        return 0.0;
    };
    match axes {
        0 => 0.0,
        1 => {
            let best = points.iter().map(|point| point[0]).fold(1.0, f64::min);
            1.0 - best
        }
        2 => {
            points.sort_by(|a, b| a[0].total_cmp(&b[0]).then(a[1].total_cmp(&b[1])));
            let (mut volume, mut height) = (0.0, 1.0);
            for point in &points {
                if point[1] < height {
                    volume += (1.0 - point[0]) * (height - point[1]);
                    height = point[1];
                }
            }
            volume
        }
        _ => {
            let last = axes - 1;
            points.sort_by(|a, b| a[last].total_cmp(&b[last]));
            let mut volume = 0.0;
            for depth in 0..points.len() {
                let from = points[depth][last];
                let to = points.get(depth + 1).map_or(1.0, |point| point[last]);
                if to > from {
                    let slice = points[..=depth].iter().map(|point| point[..last].to_vec());
                    volume += (to - from) * hypervolume(unbeaten(slice.collect()));
                }
            }
            volume
        }
    }
}

/// Points that no other one covers; the rest adds no volume.
fn unbeaten(mut points: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    points.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    let mut kept: Vec<Vec<f64>> = Vec::new();
    for point in points {
        let covered = |own: &Vec<f64>| own.iter().zip(&point).all(|(own, other)| own <= other);
        if !kept.iter().any(covered) {
            kept.push(point);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::super::objective::Objective;
    use super::*;
    use crate::random::Random;

    #[test]
    fn volumes_worked_out_by_hand() {
        assert_eq!(hypervolume(vec![]), 0.0);
        assert_eq!(hypervolume(vec![vec![0.25]]), 0.75);
        let two = hypervolume(vec![vec![0.0, 0.5], vec![0.5, 0.0]]);
        assert!((two - 0.75).abs() < 1e-12);
        // Two boxes of a quarter and one half that meet in an eighth.
        let three = hypervolume(vec![vec![0.5, 0.5, 0.0], vec![0.0, 0.0, 0.5]]);
        assert!((three - (0.25 + 0.5 - 0.125)).abs() < 1e-12);
        let four = hypervolume(vec![vec![0.5; 4], vec![0.75, 0.0, 0.75, 0.75]]);
        let both = 0.25 * 0.5 * 0.25 * 0.25;
        assert!((four - (1.0 / 16.0 + 1.0 / 64.0 - both)).abs() < 1e-12);
    }

    #[test]
    fn what_has_no_end_lies_at_the_worst_corner() {
        let objectives = ObjectiveSet::of(&[Objective::Footprint, Objective::Guarantee]);
        let point = |footprint, guarantee| [footprint, 0, 0, 0, 0, 0, 0, guarantee];
        let points = [
            point(10, u64::MAX),
            point(20, 400),
            point(1000, 100),
            point(1000, u64::MAX),
        ];
        let scale = Scale::around(points.iter(), objectives).unwrap();
        assert_eq!(scale.place(&points[0]), [0.0, 1.0]);
        assert_eq!(scale.place(&points[1])[1], 1.0);
        assert_eq!(scale.place(&points[2]), [1.0, 0.0]);
        // One finite value beside none still tells two heaps apart.
        let scale = Scale::around(points[..2].iter(), objectives).unwrap();
        assert_eq!(scale.place(&points[1]), [1.0, 0.0]);
        assert_eq!(scale.place(&points[0])[1], 1.0);
        // All without a bound: no box.
        let scale = Scale::around([points[0], points[3]].iter(), objectives).unwrap();
        assert_eq!(scale.place(&points[3]), [1.0]);
    }

    /// Inclusion and exclusion over all subsets: another way to the same figure.
    fn by_subsets(points: &[Vec<f64>]) -> f64 {
        let axes = points[0].len();
        (1_u32..1 << points.len())
            .map(|subset| {
                let chosen = |axis: usize| {
                    let members = (0..points.len()).filter(|i| subset >> i & 1 == 1);
                    1.0 - members.map(|i| points[i][axis]).fold(0.0, f64::max)
                };
                let volume: f64 = (0..axes).map(chosen).product();
                match subset.count_ones() % 2 {
                    1 => volume,
                    _ => -volume,
                }
            })
            .sum()
    }

    #[test]
    fn slicing_agrees_with_inclusion_and_exclusion() {
        let mut random = Random::new(7);
        for axes in 1..=4 {
            for _ in 0..60 {
                let count = 1 + random.below(7);
                let points: Vec<Vec<f64>> = (0..count)
                    .map(|_| (0..axes).map(|_| random.below(9) as f64 / 8.0).collect())
                    .collect();
                let difference = hypervolume(points.clone()) - by_subsets(&points);
                assert!(difference.abs() < 1e-9, "{points:?}");
            }
        }
    }
}
