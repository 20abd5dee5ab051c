//! Envelopes pair by pair: each pair is a function of its own, and the lowest of all is taken by
//! merging pairs, pairs of pairs, and so on. What the other kernels are compared with.
//!
//! Invariant: no two functions on the way are of as many pairs.

use crate::extended::Extended::{self, Finite, PositiveInfinity};
use crate::number::Number;
use crate::section::{Piece, Section};

/// The convolution of two sections on `[0, end)`, as if both were +∞ behind their ends.
/// O(n m log(n m)) for n and m pieces.
pub(super) fn envelope<N: Number>(f: &Section<N>, g: &Section<N>, end: &N) -> Section<N> {
    let mut tree = Tree::new(end);
    for (one, one_end) in f.spans() {
        for (two, two_end) in g.spans() {
            if one.start.plus(&two.start) < *end {
                tree.meet((one, one_end), (two, two_end));
            }
        }
    }
    tree.lowest()
}

/// Lower envelopes of 1, 2, 4, … sections, of which no two are as large.
struct Tree<'a, N> {
    end: &'a N,
    levels: Vec<Option<Section<N>>>,
}

impl<'a, N: Number> Tree<'a, N> {
    fn new(end: &'a N) -> Self {
        Tree {
            end,
            levels: Vec::new(),
        }
    }

    fn add(&mut self, section: Section<N>) {
        let mut section = section;
        for level in &mut self.levels {
            match level.take() {
                Some(other) => section = other.minimum(&section),
                None => {
                    *level = Some(section);
                    return;
                }
            }
        }
        self.levels.push(Some(section));
    }

    fn lowest(self) -> Section<N> {
        let nothing = self.between(&N::zero(), PositiveInfinity, &[]);
        let levels = self.levels.into_iter().flatten();
        levels.fold(nothing, |lowest, section| lowest.minimum(&section))
    }

    /// A point and the segment behind it with another point and segment.
    fn meet(&mut self, (one, one_end): (&Piece<N>, &N), (two, two_end): (&Piece<N>, &N)) {
        let start = one.start.plus(&two.start);
        let both =
            |left: &Extended<N>, right: &Extended<N>| left.plus(right).unwrap_or(PositiveInfinity);
        // The points, and each point with the other's segment.
        let at = both(&one.at, &two.at);
        for (point, segment, length) in [
            (one, two, two_end.minus(&two.start)),
            (two, one, one_end.minus(&one.start)),
        ] {
            let value = both(&point.at, &segment.after);
            let section = self.between(&start, at.clone(), &[(value, length, &segment.slope)]);
            self.add(section);
        }
        // Both segments: the flatter one first.
        let value = both(&one.after, &two.after);
        let lengths = [one_end.minus(&one.start), two_end.minus(&two.start)];
        let [one_length, two_length] = lengths;
        let (flat, steep) = match one.slope <= two.slope {
            true => ((one_length, &one.slope), (two_length, &two.slope)),
            false => ((two_length, &two.slope), (one_length, &one.slope)),
        };
        let turn = match &value {
            Finite(value) => Finite(value.plus(&flat.0.times(flat.1))),
            infinity => infinity.clone(),
        };
        let parts = [(value, flat.0, flat.1), (turn, steep.0, steep.1)];
        let section = self.between(&start, PositiveInfinity, &parts);
        self.add(section);
    }

    /// +∞ but for a value at `start` and lines behind it: values, lengths and slopes.
    fn between(&self, start: &N, at: Extended<N>, lines: &[(Extended<N>, N, &N)]) -> Section<N> {
        let nothing = |start: N| Piece::new(start, PositiveInfinity, PositiveInfinity, N::zero());
        let mut pieces = Vec::with_capacity(lines.len() + 2);
        if start.is_positive() {
            pieces.push(nothing(N::zero()));
        }
        let mut time = start.clone();
        for (index, (value, length, slope)) in lines.iter().enumerate() {
            let at = if index == 0 {
                at.clone()
            } else {
                value.clone()
            };
            pieces.push(Piece::new(
                time.clone(),
                at,
                value.clone(),
                (*slope).clone(),
            ));
            time = time.plus(length);
        }
        match lines {
            [] => pieces.push(Piece::new(time, at, PositiveInfinity, N::zero())),
            _ => pieces.push(nothing(time)),
        }
        pieces.retain(|piece| piece.start < *self.end);
        Section {
            pieces,
            end: self.end.clone(),
        }
    }
}
