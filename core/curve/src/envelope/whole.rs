//! Sections scaled to whole numbers, once, so that sums and comparisons need no common
//! denominators. Only where lines cross there are fractions again.
//!
//! Invariant: scaling back gives what the kernel would have found on the fractions.

use num_integer::Integer;

use crate::extended::Extended::Finite;
use crate::number::Number;
use crate::section::{Piece, Section};

/// Beyond this the products of a kernel would soon not fit 64 bits.
const MOST: i64 = 1 << 24;

/// By what times and values are multiplied.
pub(super) struct Scale<N> {
    time: N,
    value: N,
}

impl<N: Number> Scale<N> {
    /// The least scale on which all is whole; `None` if that is large.
    pub(super) fn of(f: &Section<N>, g: &Section<N>, end: &N) -> Option<Self> {
        let (mut time, mut value) = (end.parts()?.1, 1_i64);
        let take = |common: &mut i64, number: &N| {
            let denominator = number.parts()?.1;
            if *common % denominator != 0 {
                *common = least(*common, denominator)?;
            }
            Some(())
        };
        for section in [f, g] {
            take(&mut time, &section.end)?;
            for piece in &section.pieces {
                take(&mut time, &piece.start)?;
                for known in [&piece.at, &piece.after] {
                    if let Finite(known) = known {
                        take(&mut value, known)?;
                    }
                }
            }
        }
        for piece in f.pieces.iter().chain(&g.pieces) {
            // slope · value / time is to be whole.
            let (numerator, denominator) = piece.slope.parts()?;
            let denominator = i128::from(denominator) * i128::from(time);
            let common = i128::from(numerator).gcd(&denominator);
            let denominator = i64::try_from(denominator / common).ok()?;
            if value % denominator != 0 {
                value = least(value, denominator)?;
            }
        }
        Some(Scale {
            time: N::whole(time),
            value: N::whole(value),
        })
    }

    /// Whether all is whole as it is.
    pub(super) fn is_one(&self) -> bool {
        self.time == N::whole(1) && self.value == N::whole(1)
    }

    pub(super) fn time_up(&self, time: &N) -> N {
        time.times(&self.time)
    }

    pub(super) fn slope_up(&self, slope: &N) -> N {
        slope.times(&self.value).over(&self.time)
    }

    /// On whole numbers.
    pub(super) fn up(&self, section: &Section<N>) -> Section<N> {
        let slope = self.value.over(&self.time);
        scaled(section, &self.time, &self.value, &slope)
    }

    /// Back.
    pub(super) fn down(&self, section: &Section<N>) -> Section<N> {
        let one = N::whole(1);
        let (time, value) = (one.over(&self.time), one.over(&self.value));
        let slope = self.time.over(&self.value);
        scaled(section, &time, &value, &slope)
    }
}

fn scaled<N: Number>(section: &Section<N>, time: &N, value: &N, slope: &N) -> Section<N> {
    let pieces = section.pieces.iter().map(|piece| Piece {
        start: piece.start.times(time),
        at: piece.at.times(value),
        after: piece.after.times(value),
        slope: piece.slope.times(slope),
    });
    Section {
        pieces: pieces.collect(),
        end: section.end.times(time),
    }
}

fn least(one: i64, other: i64) -> Option<i64> {
    let common = (one / one.gcd(&other)).checked_mul(other)?;
    (common <= MOST).then_some(common)
}
