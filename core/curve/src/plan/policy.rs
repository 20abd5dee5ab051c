//! The policies of Salvalaggio, Zippo and Stea, "Improving (min,+) convolutions by heuristic
//! operation reordering", section IV: which two curves to convolve first, and which one to add
//! next, by an estimate of what each convolution costs.
//!
//! Invariant: among equal costs the first pair in order of the curves' numbers is taken, so a
//! choice depends on nothing but the estimates.

/// Which two curves come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FirstPair {
    /// The pair of the least cost.
    Shortest,
    /// The pair of the greatest cost.
    Longest,
    /// Of each curve's costliest pair, the cheapest.
    ShortestBetweenLongest,
    /// Of each curve's median pair, the median.
    MedianOfMedians,
    /// Of each curve's median pair, the cheapest.
    ShortestMedian,
}

/// Which curve comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NextCurve {
    /// That of the least cost with what there is so far.
    Shortest,
    /// That of the greatest cost.
    Longest,
    /// That of the median cost.
    Median,
}

/// By what costs are estimated before convolving.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Estimate {
    /// The product of the numbers of elements of both operands as they are cut: constant time.
    ElementProduct,
    /// The pairs of elements that pass the filters: counted, in about their number.
    OperationCount,
    /// The convolution itself, run and timed: an ideal to compare with, dearer than any order.
    Runtime,
}

impl FirstPair {
    /// All, in the paper's order.
    pub const ALL: [FirstPair; 5] = [
        FirstPair::Shortest,
        FirstPair::Longest,
        FirstPair::ShortestBetweenLongest,
        FirstPair::MedianOfMedians,
        FirstPair::ShortestMedian,
    ];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            FirstPair::Shortest => "shortest",
            FirstPair::Longest => "longest",
            FirstPair::ShortestBetweenLongest => "shortest-between-longest",
            FirstPair::MedianOfMedians => "median-of-medians",
            FirstPair::ShortestMedian => "shortest-median",
        }
    }

    /// The pair chosen of `count` ≥ 2 curves. O(n² log n), and n (n − 1) / 2 costs.
    pub fn choose<E>(
        self,
        count: usize,
        mut cost: impl FnMut(usize, usize) -> Result<f64, E>,
    ) -> Result<(usize, usize), E> {
        let mut pairs = Vec::with_capacity(count * (count - 1) / 2);
        for one in 0..count {
            for other in one + 1..count {
                pairs.push((cost(one, other)?, (one, other)));
            }
        }
        let of_each = |choose: fn(Vec<Pair>) -> Pair| -> Vec<Pair> {
            let of = |curve: usize| {
                let with = |(_, (one, other)): &&Pair| *one == curve || *other == curve;
                choose(pairs.iter().filter(with).copied().collect())
            };
            (0..count).map(of).collect()
        };
        let (_, pair) = match self {
            FirstPair::Shortest => cheapest(pairs),
            FirstPair::Longest => costliest(pairs),
            FirstPair::ShortestBetweenLongest => cheapest(of_each(costliest)),
            FirstPair::MedianOfMedians => median(of_each(median)),
            FirstPair::ShortestMedian => cheapest(of_each(median)),
        };
        Ok(pair)
    }
}

impl NextCurve {
    /// All, in the paper's order.
    pub const ALL: [NextCurve; 3] = [NextCurve::Shortest, NextCurve::Longest, NextCurve::Median];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            NextCurve::Shortest => "shortest",
            NextCurve::Longest => "longest",
            NextCurve::Median => "median",
        }
    }

    /// The curve chosen of those left, of which there is one at least. O(n log n), and n costs.
    pub fn choose<E>(
        self,
        left: &[usize],
        mut cost: impl FnMut(usize) -> Result<f64, E>,
    ) -> Result<usize, E> {
        if let [only] = left {
            return Ok(*only);
        }
        let mut costs = Vec::with_capacity(left.len());
        for curve in left {
            costs.push((cost(*curve)?, (*curve, *curve)));
        }
        let (_, (curve, _)) = match self {
            NextCurve::Shortest => cheapest(costs),
            NextCurve::Longest => costliest(costs),
            NextCurve::Median => median(costs),
        };
        Ok(curve)
    }
}

impl Estimate {
    /// All, the ideal first.
    pub const ALL: [Estimate; 3] = [
        Estimate::Runtime,
        Estimate::OperationCount,
        Estimate::ElementProduct,
    ];

    /// Its name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Estimate::ElementProduct => "element-product",
            Estimate::OperationCount => "operation-count",
            Estimate::Runtime => "runtime",
        }
    }
}

/// A cost, and the curves it is of.
type Pair = (f64, (usize, usize));

fn sorted(mut pairs: Vec<Pair>) -> Vec<Pair> {
    pairs.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
    pairs
}

fn cheapest(pairs: Vec<Pair>) -> Pair {
    sorted(pairs)[0]
}

fn costliest(pairs: Vec<Pair>) -> Pair {
    let sorted = sorted(pairs);
    let most = sorted[sorted.len() - 1].0;
    sorted[sorted.partition_point(|pair| pair.0.total_cmp(&most).is_lt())]
}

/// The middle one; of an even number the lower of both.
fn median(pairs: Vec<Pair>) -> Pair {
    let sorted = sorted(pairs);
    sorted[(sorted.len() - 1) / 2]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Costs of six curves' pairs: 1 to 15 in the order 01 02 03 04 05 12 13 …
    fn cost(one: usize, other: usize) -> Result<f64, ()> {
        let mut count = 0.0;
        for a in 0..6 {
            for b in a + 1..6 {
                count += 1.0;
                if (a, b) == (one.min(other), one.max(other)) {
                    return Ok(count);
                }
            }
        }
        Err(())
    }

    #[test]
    fn pairs_as_defined() {
        let chosen = FirstPair::ALL.map(|policy| policy.choose(6, cost));
        // The longest of 0 is 05 = 5, the least of all longest; medians are 3, 7, 10, 11, 11, 9
        // of the pairs 03, 13, 23, 34 or 24, …
        assert_eq!(chosen[0], Ok((0, 1)));
        assert_eq!(chosen[1], Ok((4, 5)));
        assert_eq!(chosen[2], Ok((0, 5)));
        assert_eq!(chosen[4], Ok((0, 3)));
        let medians: Vec<f64> = (0..6)
            .map(|curve| {
                let mut own: Vec<f64> = (0..6)
                    .filter(|other| *other != curve)
                    .map(|other| cost(curve, other).unwrap())
                    .collect();
                own.sort_by(f64::total_cmp);
                own[2]
            })
            .collect();
        let mut sorted = medians.clone();
        sorted.sort_by(f64::total_cmp);
        let (one, other) = chosen[3].unwrap();
        assert_eq!(cost(one, other).unwrap(), sorted[2]);
    }

    #[test]
    fn next_as_defined() {
        let costs = [0.0, 5.0, 1.0, 3.0, 9.0];
        let chosen = NextCurve::ALL
            .map(|policy| policy.choose(&[1, 2, 3, 4], |curve| Ok::<_, ()>(costs[curve])));
        assert_eq!(chosen, [Ok(2), Ok(4), Ok(3)]);
    }
}
