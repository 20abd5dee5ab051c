//! The convolution of two sections: the lower envelope of all sums of their pieces.
//!
//! Invariant: which kernel computed it can not be seen in a result.

mod convex;
pub(crate) mod lines;
mod pairs;
mod rows;
pub(crate) mod staircase;
mod whole;

use crate::number::Number;
use crate::section::Section;
use crate::settings::Algebra;

pub(crate) use convex::is_convex;

/// How many pairs begin before the end.
pub(crate) fn pairs<N: Number>(f: &Section<N>, g: &Section<N>, end: &N) -> u64 {
    let mut count = 0;
    for one in &f.pieces {
        let room = end.minus(&one.start);
        count += g.pieces.partition_point(|two| two.start < room) as u64;
    }
    count
}

/// The convolution of two sections on `[0, end)`, as if both were +∞ behind their ends. `slope` is
/// that of the result in the long run: it decides how soon pairs are passed over, not the result.
///
/// O(n + m) for n and m pieces of convex sections; O(n m) for staircases, at some nanoseconds a
/// pair; else O(n m log(n m)).
pub(crate) fn envelope<N: Number>(
    f: &Section<N>,
    g: &Section<N>,
    end: &N,
    slope: &N,
    algebra: &Algebra,
) -> Section<N> {
    let on = algebra.optimisations;
    if on.convex
        && let Some(section) = convex::envelope(f, g, end)
    {
        return section;
    }
    if on.staircase
        && let Some(section) = staircase::envelope(f, g, end)
    {
        return section;
    }
    let general = |f: &Section<N>, g: &Section<N>, end: &N, slope: &N| match on.merge_tree {
        true => rows::envelope(f, g, end, slope, on.early_exit),
        false => pairs::envelope(f, g, end),
    };
    if on.integers
        && let Some(scale) = whole::Scale::of(f, g, end)
    {
        let whole = |f: &Section<N>, g: &Section<N>, end: &N, slope: &N| {
            let lines = match on.merge_tree {
                true => lines::envelope(f, g, end, slope, on.early_exit, algebra.threads),
                false => None,
            };
            lines.unwrap_or_else(|| general(f, g, end, slope))
        };
        if scale.is_one() {
            return whole(f, g, end, slope);
        }
        let (end, slope) = (scale.time_up(end), scale.slope_up(slope));
        return scale.down(&whole(&scale.up(f), &scale.up(g), &end, &slope));
    }
    general(f, g, end, slope)
}
