//! Lower envelopes of many short paths, taken by merging pairs, pairs of pairs, and so on.
//!
//! Invariant: what is known of the envelope is a function on `[0, end)`, +∞ where no path was.

use crate::extended::Extended::{self, Finite, PositiveInfinity};
use crate::number::Number;
use crate::section::{Piece, Section};

/// Lower envelopes of 1, 2, 4, … paths, of which no two are of as many.
pub(crate) struct Envelope<N> {
    end: N,
    levels: Vec<Option<Section<N>>>,
}

/// A part of a path: the limit where it begins, how long it is, and its slope.
pub(crate) type Line<N> = (Extended<N>, N, N);

impl<N: Number> Envelope<N> {
    pub(crate) fn new(end: N) -> Self {
        Envelope {
            end,
            levels: Vec::new(),
        }
    }

    /// A value at `start`, and lines behind it, each beginning where the one before ends. What is
    /// before 0 or behind the end is passed over.
    pub(crate) fn path(&mut self, start: &N, at: Extended<N>, lines: &[Line<N>]) {
        if *start >= self.end {
            return;
        }
        let nothing = |start: N| Piece::new(start, PositiveInfinity, PositiveInfinity, N::zero());
        let mut pieces = Vec::with_capacity(lines.len() + 2);
        if start.is_positive() {
            pieces.push(nothing(N::zero()));
        }
        let mut time = start.clone();
        let mut value = at;
        for (after, length, slope) in lines {
            let piece = Piece::new(time.clone(), value, after.clone(), slope.clone());
            time = time.plus(length);
            value = piece.line(&time);
            pieces.push(piece);
        }
        let last = match lines {
            [] => value,
            _ => PositiveInfinity,
        };
        pieces.push(Piece::new(time, last, PositiveInfinity, N::zero()));
        let long = Section {
            pieces,
            end: self.end.clone(),
        };
        let section = match *start < N::zero() {
            true => long.cut(&self.end),
            false => Section {
                pieces: long
                    .pieces
                    .into_iter()
                    .filter(|piece| piece.start < self.end)
                    .collect(),
                end: long.end,
            },
        };
        self.add(section);
    }

    /// A section as long as the envelope.
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

    /// The least of all paths.
    pub(crate) fn lowest(self) -> Section<N> {
        let nothing = Piece::new(N::zero(), PositiveInfinity, PositiveInfinity, N::zero());
        let nothing = Section {
            pieces: vec![nothing],
            end: self.end,
        };
        let levels = self.levels.into_iter().flatten();
        levels.fold(nothing, |lowest, section| lowest.minimum(&section))
    }
}

/// Two lines one behind the other, the flatter one first: the least sums of two segments of these
/// lengths and slopes whose limits at the start sum to `value`.
pub(crate) fn bent<N: Number>(value: Extended<N>, one: (N, N), two: (N, N)) -> [Line<N>; 2] {
    let (flat, steep) = if one.1 <= two.1 {
        (one, two)
    } else {
        (two, one)
    };
    let turn = match &value {
        Finite(value) => Finite(value.plus(&flat.0.times(&flat.1))),
        infinity => infinity.clone(),
    };
    [(value, flat.0, flat.1), (turn, steep.0, steep.1)]
}
