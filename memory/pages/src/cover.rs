//! Which units of a power of two a range covers: those it has to itself, those it shares.
//!
//! Invariant: every unit with an item of the range is counted once, as its own or as shared.

/// The units of a range.
pub(crate) struct Cover {
    /// Those that it covers in part: its first and its last one.
    pub(crate) shared: [Option<u32>; 2],
    /// Those that it covers wholly: the first, and how many.
    pub(crate) own: (u32, u32),
}

impl Cover {
    /// The units of `1 << shift` that `items` items from `start` lie on; at least one item.
    #[inline]
    pub(crate) fn of(start: u64, items: u64, shift: u32) -> Self {
        let (end, mask) = (start + items, (1 << shift) - 1);
        let unit = |item: u64| (item >> shift) as u32;
        let (first, last) = (unit(start), unit(end - 1));
        let (begins, ends) = (start & mask == 0, end & mask == 0);
        if first == last {
            return match begins && ends {
                true => Self {
                    shared: [None; 2],
                    own: (first, 1),
                },
                false => Self {
                    shared: [Some(first), None],
                    own: (first, 0),
                },
            };
        }
        let (from, to) = (first + u32::from(!begins), last + u32::from(ends));
        Self {
            shared: [(!begins).then_some(first), (!ends).then_some(last)],
            own: (from, to - from),
        }
    }
}
