//! Where what stands on a board.
//!
//! A header that never changes; three counters, each in a cache line of its own, and a word that
//! says the heap is gone; the last few publications of figures, one after another in a ring; a
//! ring of changes to records; the records, one a page and one a stream.
//!
//! Invariant: parts do not overlap, and all lie within [`Layout::words`].

/// Words of a record.
pub(crate) const RECORD: usize = 3;
/// Words of a change: the record's number, and what it is now.
pub(crate) const CHANGE: usize = 1 + RECORD;
/// Words of the header.
pub(crate) const HEADER: usize = 64;
/// Words from one counter to the next.
const LINE: usize = 8;

/// Sizes of the parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Words before the counters.
    pub(crate) header: usize,
    /// Words from one counter to the next.
    pub(crate) line: usize,
    /// Words of figures; the first two are those of the protocol.
    pub(crate) figures: usize,
    /// Publications that are kept, two at least.
    pub(crate) slots: usize,
    /// Changes that are kept.
    pub(crate) changes: usize,
    pub(crate) records: usize,
}

impl Layout {
    /// The layout for so many records.
    pub(crate) fn new(figures: usize, records: usize) -> Self {
        Layout {
            header: HEADER,
            line: LINE,
            figures,
            slots: 16,
            // What a busy heap changes while a reader copies the records, and more.
            changes: (records / 4).clamp(1 << 10, 1 << 14).next_power_of_two(),
            records,
        }
    }

    /// Publications so far.
    pub(crate) const fn latest(&self) -> usize {
        self.header
    }

    /// Changes whose places may have been written.
    pub(crate) const fn claimed(&self) -> usize {
        self.header + self.line
    }

    /// Changes that the records have.
    pub(crate) const fn applied(&self) -> usize {
        self.header + 2 * self.line
    }

    /// Not 0 when the heap is gone.
    pub(crate) const fn closed(&self) -> usize {
        self.header + 3 * self.line
    }

    /// The figures of a publication.
    pub(crate) const fn slot(&self, number: u64) -> usize {
        let place = (number % self.slots as u64) as usize;
        self.header + 4 * self.line + place * self.figures
    }

    /// A change.
    pub(crate) const fn change(&self, position: u64) -> usize {
        let place = (position % self.changes as u64) as usize;
        self.slot(0) + self.slots * self.figures + place * CHANGE
    }

    /// A record.
    pub(crate) const fn record(&self, number: usize) -> usize {
        self.change(0) + self.changes * CHANGE + number * RECORD
    }

    /// All of it. Of sizes that no board has, perhaps `None`.
    pub(crate) fn words(&self) -> Option<usize> {
        let slots = self.slots.checked_mul(self.figures)?;
        let changes = self.changes.checked_mul(CHANGE)?;
        let records = self.records.checked_mul(RECORD)?;
        (self.header + 4 * self.line)
            .checked_add(slots)?
            .checked_add(changes)?
            .checked_add(records)
    }
}
