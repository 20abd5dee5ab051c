//! A column of numbers that takes what its numbers need.
//!
//! Numbers of a trace mostly lie near each other: times rise, sizes are small, the
//! thread is the same. So a *chunk* of a thousand is kept as one number where all
//! are equal, in four bytes each where all lie within 2³² of the first or of zero,
//! and in eight otherwise.
//!
//! Invariant: what was pushed is what is found, for any numbers.

use std::fmt;

/// Numbers of a chunk.
const CHUNK: usize = 1024;

/// How the numbers of a chunk are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// All are the chunk's base.
    Same,
    /// Above the base, in four bytes.
    Narrow,
    /// As they are.
    Wide,
}

/// Up to [`CHUNK`] numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Chunk {
    base: u64,
    /// Where its numbers begin in the array of their form.
    at: usize,
    form: Form,
}

/// See the module. Equal numbers are kept equally.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Numbers {
    chunks: Vec<Chunk>,
    narrow: Vec<u32>,
    wide: Vec<u64>,
    length: usize,
}

impl Numbers {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.length
    }

    /// True if there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The number at `index`; None past the end. O(1).
    #[must_use]
    #[inline]
    pub fn get(&self, index: usize) -> Option<u64> {
        if index >= self.length {
            return None;
        }
        let chunk = self.chunks.get(index / CHUNK)?;
        let within = chunk.at + index % CHUNK;
        match chunk.form {
            Form::Same => Some(chunk.base),
            Form::Narrow => Some(chunk.base + u64::from(*self.narrow.get(within)?)),
            Form::Wide => self.wide.get(within).copied(),
        }
    }

    /// The first number.
    #[must_use]
    pub fn first(&self) -> Option<u64> {
        self.get(0)
    }

    /// The last number.
    #[must_use]
    pub fn last(&self) -> Option<u64> {
        self.get(self.length.checked_sub(1)?)
    }

    /// All numbers in order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        (0..self.length).map_while(|index| self.get(index))
    }

    /// Whether all are equal to `number`. O(len), mostly a thousandth of it.
    #[must_use]
    pub fn all_are(&self, number: u64) -> bool {
        let same = |chunk: &Chunk| chunk.form == Form::Same && chunk.base == number;
        self.chunks.iter().all(same) || self.iter().all(|own| own == number)
    }

    /// Adds a number at the end. Amortised O(1).
    pub(crate) fn push(&mut self, number: u64) {
        let within = self.length % CHUNK;
        if within == 0 {
            self.chunks.push(Chunk {
                base: number,
                at: 0,
                form: Form::Same,
            });
        }
        let Some(chunk) = self.chunks.last_mut() else {
            return;
        };
        if chunk.form == Form::Same && number != chunk.base {
            let own = chunk.base;
            // Small numbers lie near zero, whichever comes first.
            chunk.base = match own <= u64::from(u32::MAX) {
                true => 0,
                false => own,
            };
            chunk.at = self.narrow.len();
            chunk.form = Form::Narrow;
            let above = (own - chunk.base) as u32;
            self.narrow.resize(self.narrow.len() + within, above);
        }
        if chunk.form == Form::Narrow {
            match number.checked_sub(chunk.base).map(u32::try_from) {
                Some(Ok(above)) => self.narrow.push(above),
                _ => {
                    let base = chunk.base;
                    let own = self.narrow.drain(chunk.at..);
                    chunk.at = self.wide.len();
                    self.wide.extend(own.map(|above| base + u64::from(above)));
                    chunk.form = Form::Wide;
                }
            }
        }
        if chunk.form == Form::Wide {
            self.wide.push(number);
        }
        self.length += 1;
    }

    /// Gives unused room back.
    pub(crate) fn shrink(&mut self) {
        self.chunks.shrink_to_fit();
        self.narrow.shrink_to_fit();
        self.wide.shrink_to_fit();
    }
}

impl fmt::Debug for Numbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(numbers: &[u64]) -> Numbers {
        let mut column = Numbers::default();
        for &number in numbers {
            column.push(number);
        }
        column
    }

    /// Bytes that the numbers themselves take.
    fn bytes(column: &Numbers) -> usize {
        4 * column.narrow.len() + 8 * column.wide.len()
    }

    #[test]
    fn equal_numbers_take_nothing_and_near_ones_four_bytes() {
        assert_eq!(bytes(&of(&[7; 5000])), 0);
        let far = 1_u64 << 50;
        let times: Vec<u64> = (0..5000).map(|at| far + at * 1_000_000 / 2).collect();
        let column = of(&times);
        assert_eq!(bytes(&column), 4 * 5000);
        assert!(column.iter().eq(times.iter().copied()));
        assert!(!column.all_are(far) && of(&[3; 2000]).all_are(3));
        // One that is far costs its chunk alone.
        let mut sizes = vec![48; 5000];
        (sizes[10], sizes[2000]) = (50, u64::MAX);
        let column = of(&sizes);
        assert_eq!(bytes(&column), 4 * 1024 + 8 * 1024);
        assert!(column.iter().eq(sizes.iter().copied()));
    }

    #[test]
    fn an_end_is_an_end() {
        let column = of(&[5, 9]);
        assert_eq!((column.first(), column.last()), (Some(5), Some(9)));
        assert_eq!((column.get(1), column.get(2)), (Some(9), None));
        assert_eq!((of(&[]).first(), of(&[]).last()), (None, None));
        assert!(of(&[]).is_empty() && column == of(&[5, 9]) && column != of(&[5, 9, 9]));
    }

    proptest! {
        #[test]
        fn what_was_pushed_is_found(
            runs in prop::collection::vec((0_usize..700, 0_u32..64, any::<u64>(), 0_u64..3), 0..12),
        ) {
            let mut numbers = Vec::new();
            for (length, bits, seed, step) in runs {
                let start = seed >> bits;
                numbers.extend((0..length as u64).map(|at| start.saturating_add(at * step)));
            }
            let column = of(&numbers);
            prop_assert_eq!(column.len(), numbers.len());
            prop_assert!(column.iter().eq(numbers.iter().copied()));
            prop_assert_eq!(column.last(), numbers.last().copied());
        }
    }
}
