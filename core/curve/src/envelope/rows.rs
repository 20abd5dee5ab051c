//! Envelopes row by row: a piece of one section with all of the other, then rows, two rows, four.
//!
//! A row's pairs come sorted by where they begin, and are merged neighbour by neighbour in two
//! buffers. A pair is passed over if even its lowest distance above a line of the result's slope is
//! above the highest that one curve, with the other's beginning, comes to: it can not be the least
//! anywhere.
//!
//! Invariant: a part is a function that is +∞ before its first piece, and whose last piece is +∞
//! behind its start.

use crate::extended::Extended::{self, Finite, PositiveInfinity};
use crate::number::Number;
use crate::section::{Piece, Section};

/// O(n m log(n m)) for n and m pieces.
pub(super) fn envelope<N: Number>(
    f: &Section<N>,
    g: &Section<N>,
    end: &N,
    slope: &N,
    early_exit: bool,
) -> Section<N> {
    let (long, short) = match f.pieces.len() < g.pieces.len() {
        true => (g, f),
        false => (f, g),
    };
    let long = Operand::new(long, slope);
    let short = Operand::new(short, slope);
    let most = match early_exit {
        true => long.most_with(&short, end).min(short.most_with(&long, end)),
        false => PositiveInfinity,
    };
    let mut rows = Rows::default();
    let mut row = Row::default();
    for one in &short.spans {
        if one.piece.start >= *end {
            break;
        }
        if early_exit && one.above(&long.least, &most) {
            continue;
        }
        for two in &long.spans {
            if one.piece.start.plus(&two.piece.start) >= *end {
                if early_exit {
                    break;
                }
                continue;
            }
            if !early_exit || !one.above(&two.least, &most) {
                row.meet(one, two);
            }
        }
        if let Some(part) = row.finish() {
            rows.add(part);
        }
    }
    section(rows.lowest(), end)
}

/// A part as a section.
fn section<N: Number>(part: Vec<Piece<N>>, end: &N) -> Section<N> {
    let mut pieces = Vec::with_capacity(part.len() + 1);
    if part.first().is_none_or(|first| first.start.is_positive()) {
        pieces.push(nothing(N::zero()));
    }
    pieces.extend(part.into_iter().take_while(|piece| piece.start < *end));
    Section {
        pieces,
        end: end.clone(),
    }
}

fn nothing<N: Number>(start: N) -> Piece<N> {
    Piece::new(start, PositiveInfinity, PositiveInfinity, N::zero())
}

/// Where +∞ and −∞ meet, +∞.
fn both<N: Number>(one: &Extended<N>, two: &Extended<N>) -> Extended<N> {
    one.plus(two).unwrap_or(PositiveInfinity)
}

/// A section, with what is asked of each piece again and again.
struct Operand<'a, N> {
    section: &'a Section<N>,
    spans: Vec<Span<'a, N>>,
    /// The least distance above the slope.
    least: Extended<N>,
    slope: &'a N,
}

struct Span<'a, N> {
    piece: &'a Piece<N>,
    end: &'a N,
    length: N,
    /// The least distance above the slope.
    least: Extended<N>,
    /// Whether the point is below both limits beside it.
    dips: bool,
}

impl<N: Number> Span<'_, N> {
    /// Whether a sum with this is above the most.
    fn above(&self, other: &Extended<N>, most: &Extended<N>) -> bool {
        both(&self.least, other) > *most
    }
}

impl<'a, N: Number> Operand<'a, N> {
    fn new(section: &'a Section<N>, slope: &'a N) -> Self {
        let mut before = PositiveInfinity;
        let mut spans = Vec::with_capacity(section.pieces.len());
        for (piece, end) in section.spans() {
            let [at, after, limit] = distances(piece, end, slope);
            spans.push(Span {
                piece,
                end,
                length: end.minus(&piece.start),
                least: at.min(after).min(limit),
                dips: piece.at < before && piece.at < piece.after,
            });
            before = piece.line(end);
        }
        let least = spans.iter().map(|span| span.least.clone()).min();
        Operand {
            section,
            spans,
            least: least.unwrap_or(PositiveInfinity),
            slope,
        }
    }

    /// The most that the result can lie above the slope before the end: the split that gives the
    /// other nothing. +∞ if this ends earlier.
    fn most_with(&self, other: &Self, end: &N) -> Extended<N> {
        if self.section.end < *end {
            return PositiveInfinity;
        }
        let all = self
            .section
            .spans()
            .take_while(|(piece, _)| piece.start < *end);
        let most = all
            .flat_map(|(piece, end)| distances(piece, end, self.slope))
            .max();
        let begin = other.spans.first().map(|span| &span.piece.at);
        both(
            &most.unwrap_or(PositiveInfinity),
            begin.unwrap_or(&PositiveInfinity),
        )
    }
}

/// How far a piece is above the slope: its point, and its line at both ends.
fn distances<N: Number>(piece: &Piece<N>, end: &N, slope: &N) -> [Extended<N>; 3] {
    let below = |time: &N| slope.times(time).negated();
    let (start, limit) = (below(&piece.start), below(end));
    [
        piece.at.moved(&start),
        piece.after.moved(&start),
        piece.line(end).moved(&limit),
    ]
}

/// The pairs of one piece, until they are merged.
struct Row<N> {
    /// Sums with the piece's point, sorted: a part but for its last piece.
    points: Vec<Piece<N>>,
    /// Where the last of `points` ends.
    reached: Option<N>,
    /// Sums with the piece's segment: parts one behind the other.
    parts: Vec<Piece<N>>,
    /// Where parts begin.
    begins: Vec<usize>,
    /// The other buffer, for merging.
    merged: (Vec<Piece<N>>, Vec<usize>),
}

impl<N> Default for Row<N> {
    fn default() -> Self {
        Row {
            points: Vec::new(),
            reached: None,
            parts: Vec::new(),
            begins: Vec::new(),
            merged: (Vec::new(), Vec::new()),
        }
    }
}

impl<N: Number> Row<N> {
    /// A point and the segment behind it, that of the row, with another point and segment.
    fn meet(&mut self, one: &Span<N>, two: &Span<N>) {
        let start = one.piece.start.plus(&two.piece.start);
        if one.piece.at != PositiveInfinity {
            if let Some(reached) = self.reached.take()
                && reached < start
            {
                self.points.push(nothing(reached));
            }
            self.points.push(Piece::new(
                start.clone(),
                both(&one.piece.at, &two.piece.at),
                both(&one.piece.at, &two.piece.after),
                two.piece.slope.clone(),
            ));
            self.reached = Some(one.piece.start.plus(two.end));
        }
        if one.piece.after == PositiveInfinity {
            return;
        }
        // A point that is not below what is beside it is not below sums with that, either.
        let value = both(&one.piece.after, &two.piece.at);
        if two.dips && value != PositiveInfinity {
            self.begins.push(self.parts.len());
            let after = start.plus(&one.length);
            let slope = one.piece.slope.clone();
            self.parts
                .push(Piece::new(start.clone(), PositiveInfinity, value, slope));
            self.parts.push(nothing(after));
        }
        let value = both(&one.piece.after, &two.piece.after);
        if value == PositiveInfinity {
            return;
        }
        // Both segments: the flatter one first.
        let (flat, steep) = match one.piece.slope <= two.piece.slope {
            true => (one, two),
            false => (two, one),
        };
        let turn = start.plus(&flat.length);
        let then = match &value {
            Finite(value) => Finite(value.plus(&flat.piece.slope.times(&flat.length))),
            infinity => infinity.clone(),
        };
        self.begins.push(self.parts.len());
        let slope = flat.piece.slope.clone();
        self.parts
            .push(Piece::new(start, PositiveInfinity, value, slope));
        let after = turn.plus(&steep.length);
        if flat.piece.slope != steep.piece.slope {
            let slope = steep.piece.slope.clone();
            self.parts.push(Piece::new(turn, then.clone(), then, slope));
        }
        self.parts.push(nothing(after));
    }

    /// The row as one part, if there is anything in it; and empty again.
    fn finish(&mut self) -> Option<Vec<Piece<N>>> {
        while self.begins.len() > 1 {
            let (merged, begins) = &mut self.merged;
            merged.clear();
            begins.clear();
            for pair in 0..self.begins.len().div_ceil(2) {
                let bound = |index: usize| self.begins.get(index).copied();
                let from = self.begins[2 * pair];
                begins.push(merged.len());
                match bound(2 * pair + 1) {
                    None => merged.extend_from_slice(&self.parts[from..]),
                    Some(middle) => {
                        let to = bound(2 * pair + 2).unwrap_or(self.parts.len());
                        let (one, two) = (&self.parts[from..middle], &self.parts[middle..to]);
                        merge(one, two, merged);
                    }
                }
            }
            std::mem::swap(&mut self.parts, merged);
            std::mem::swap(&mut self.begins, begins);
        }
        if let Some(reached) = self.reached.take() {
            self.points.push(nothing(reached));
        }
        let mut part = Vec::new();
        match (self.points.is_empty(), self.parts.is_empty()) {
            (true, true) => return None,
            (true, false) => part.extend_from_slice(&self.parts),
            (false, true) => part.extend_from_slice(&self.points),
            (false, false) => merge(&self.points, &self.parts, &mut part),
        }
        self.points.clear();
        self.parts.clear();
        self.begins.clear();
        Some(part)
    }
}

/// The lowest of 1, 2, 4, … rows, no two of which are as many.
struct Rows<N> {
    levels: Vec<Option<Vec<Piece<N>>>>,
}

impl<N> Default for Rows<N> {
    fn default() -> Self {
        Rows { levels: Vec::new() }
    }
}

impl<N: Number> Rows<N> {
    fn add(&mut self, mut part: Vec<Piece<N>>) {
        for level in &mut self.levels {
            match level.take() {
                Some(other) => part = lower(&other, &part),
                None => {
                    *level = Some(part);
                    return;
                }
            }
        }
        self.levels.push(Some(part));
    }

    fn lowest(self) -> Vec<Piece<N>> {
        let levels = self.levels.into_iter().flatten();
        levels
            .reduce(|one, two| lower(&two, &one))
            .unwrap_or_default()
    }
}

fn lower<N: Number>(one: &[Piece<N>], two: &[Piece<N>]) -> Vec<Piece<N>> {
    let mut lowest = Vec::with_capacity(one.len() + two.len());
    merge(one, two, &mut lowest);
    lowest
}

/// Appends the lower of two parts to `lowest`. Linear.
fn merge<N: Number>(one: &[Piece<N>], two: &[Piece<N>], lowest: &mut Vec<Piece<N>>) {
    let (one, two) = match one[0].start <= two[0].start {
        true => (one, two),
        false => (two, one),
    };
    let first = lowest.len();
    // Before the other begins there is nothing to compare.
    let alone = one.partition_point(|piece| piece.start < two[0].start);
    lowest.extend_from_slice(&one[..alone]);
    let (mut left, mut right) = (alone, 0);
    loop {
        let time = match (one.get(left), two.get(right)) {
            (Some(a), Some(b)) => (&a.start).min(&b.start),
            (Some(a), None) => {
                // The other is over: +∞.
                push(lowest, first, a.clone());
                lowest.extend_from_slice(&one[left + 1..]);
                return;
            }
            (None, Some(b)) => {
                push(lowest, first, b.clone());
                lowest.extend_from_slice(&two[right + 1..]);
                return;
            }
            (None, None) => return,
        };
        let (a_at, a_after, a_slope) = step(one, &mut left, time);
        let (b_at, b_after, b_slope) = step(two, &mut right, time);
        let next = match (one.get(left), two.get(right)) {
            (Some(a), Some(b)) => Some((&a.start).min(&b.start)),
            (Some(only), None) | (None, Some(only)) => Some(&only.start),
            (None, None) => None,
        };
        let at = a_at.min(b_at);
        let is_second_lower = match (&a_after, &b_after) {
            (Finite(a), Finite(b)) => a > b || (a == b && a_slope > b_slope),
            _ => a_after > b_after,
        };
        let ((low, flat), (high, steep)) = match is_second_lower {
            true => ((b_after, b_slope), (a_after, a_slope)),
            false => ((a_after, a_slope), (b_after, b_slope)),
        };
        let crossing = match (&low, &high) {
            (Finite(below), Finite(above)) if flat > steep => {
                let wait = above.minus(below).over(&flat.minus(steep));
                let then = time.plus(&wait);
                let value = || Finite(below.plus(&flat.times(&wait)));
                next.is_none_or(|next| then < *next)
                    .then(|| (then, value(), steep.clone()))
            }
            _ => None,
        };
        push(
            lowest,
            first,
            Piece::new(time.clone(), at, low, flat.clone()),
        );
        if let Some((time, value, slope)) = crossing {
            lowest.push(Piece::new(time, value.clone(), value, slope));
        }
    }
}

/// The value of a part at a time, the limit behind it, and the slope there; passes over the piece
/// that begins there. Before the first piece, +∞.
fn step<'a, N: Number>(
    part: &'a [Piece<N>],
    next: &mut usize,
    time: &N,
) -> (Extended<N>, Extended<N>, &'a N) {
    match part.get(*next) {
        Some(piece) if piece.start == *time => {
            *next += 1;
            (piece.at.clone(), piece.after.clone(), &piece.slope)
        }
        _ if *next == 0 => (PositiveInfinity, PositiveInfinity, &part[0].slope),
        _ => {
            let piece = &part[*next - 1];
            let value = piece.line(time);
            (value.clone(), value, &piece.slope)
        }
    }
}

/// Appends a piece, unless it only goes on with the line before.
fn push<N: Number>(lowest: &mut Vec<Piece<N>>, first: usize, piece: Piece<N>) {
    let goes_on = lowest[first..]
        .last()
        .is_some_and(|before| piece.continues(before));
    if !goes_on {
        lowest.push(piece);
    }
}
