//! The naive model of a heap: which blocks are live, and what lies between them.
//!
//! Invariant: live blocks and gaps tile every part of the range, so that a block that lies within
//! a gap overlaps no other.

use std::collections::BTreeMap;

use crate::trial::Rules;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Live<P> {
    pub(crate) place: P,
    pub(crate) bytes: u64,
}

/// Which blocks are live, and what lies between them.
pub(crate) struct Model<P> {
    /// By offset.
    pub(crate) blocks: BTreeMap<u64, Live<P>>,
    /// Their offsets in no order, to choose one.
    pub(crate) offsets: Vec<u64>,
    pub(crate) requested: u64,
    pub(crate) parts: Vec<Part>,
    /// Slots in use of each slab, by its offset.
    slabs: BTreeMap<u64, u32>,
    /// Blocks that touch each page.
    pages: Vec<u32>,
    pub(crate) live_pages: u64,
}

/// What the lists of a part have: blocks, and slabs as a block each.
#[derive(Debug, Default)]
pub(crate) struct Part {
    /// Ends by starts.
    pub(crate) gaps: BTreeMap<u64, u64>,
    /// How many gaps have a length.
    lengths: BTreeMap<u64, u32>,
    pub(crate) listed: usize,
    pub(crate) requested: u64,
}

impl Part {
    pub(crate) fn largest_gap(&self) -> u64 {
        self.lengths
            .last_key_value()
            .map_or(0, |(&length, _)| length)
    }

    pub(crate) fn gap_bytes(&self) -> u64 {
        self.lengths
            .iter()
            .map(|(length, &count)| length * u64::from(count))
            .sum()
    }

    fn put(&mut self, start: u64, end: u64) {
        if start < end {
            self.gaps.insert(start, end);
            *self.lengths.entry(end - start).or_default() += 1;
        }
    }

    fn take(&mut self, start: u64, end: u64) {
        self.gaps.remove(&start);
        if let Some(count) = self.lengths.get_mut(&(end - start)) {
            *count -= 1;
            if *count == 0 {
                self.lengths.remove(&(end - start));
            }
        }
    }

    /// Whether there was a gap for it.
    fn occupy(&mut self, start: u64, end: u64, requested: u64) -> bool {
        let gap = self.gaps.range(..=start).next_back();
        let Some((from, to)) = gap.map(|(&from, &to)| (from, to)) else {
            return false;
        };
        if to < end {
            return false;
        }
        self.take(from, to);
        self.put(from, start);
        self.put(end, to);
        self.listed += 1;
        self.requested += requested;
        true
    }

    fn vacate(&mut self, mut start: u64, mut end: u64, requested: u64) {
        let before = self.gaps.range(..start).next_back();
        if let Some((&from, &to)) = before
            && to == start
        {
            self.take(from, to);
            start = from;
        }
        if let Some(&to) = self.gaps.get(&end) {
            self.take(end, to);
            end = to;
        }
        self.put(start, end);
        self.listed -= 1;
        self.requested -= requested;
    }
}

impl<P: Copy> Model<P> {
    pub(crate) fn new(rules: &Rules<P>) -> Self {
        let part = rules.bytes / rules.parts;
        let parts = (0..rules.parts).map(|number| {
            let mut one = Part::default();
            one.put(number * part, (number + 1) * part);
            one
        });
        let pages = rules.plan.map_or(0, |plan| plan.addresses / plan.page);
        Model {
            blocks: BTreeMap::new(),
            offsets: Vec::new(),
            requested: 0,
            parts: parts.collect(),
            slabs: BTreeMap::new(),
            pages: vec![0; pages as usize],
            live_pages: 0,
        }
    }

    /// Enters a block; what is wrong with it where it is.
    pub(crate) fn occupy(
        &mut self,
        place: P,
        offset: u64,
        bytes: u64,
        rules: &Rules<P>,
    ) -> Result<(), &'static str> {
        let end = offset.checked_add(bytes).ok_or("beyond the range")?;
        if end > rules.bytes {
            return Err("beyond the range");
        }
        let part_bytes = rules.bytes / rules.parts;
        let part = &mut self.parts[(offset / part_bytes) as usize];
        // A block of the lists has whole granules; slots share those of their slab.
        let (mut first, mut last, mut requested) =
            (offset, end.next_multiple_of(rules.granule), bytes);
        let mut new = true;
        if let Some(slab) = (rules.slab)(place) {
            (first, last, requested) = (offset / slab * slab, offset / slab * slab + slab, slab);
            let slots = self.slabs.entry(first).or_default();
            *slots += 1;
            new = *slots == 1;
            if end > last {
                return Err("it leaves its slab");
            }
            let before = self.blocks.range(..end).next_back();
            if before.is_some_and(|(start, live)| start + live.bytes > offset) {
                return Err("it overlaps a block in use");
            }
        }
        if new && !part.occupy(first, last, requested) {
            return Err("it overlaps a block in use");
        }
        if part.listed > rules.blocks {
            return Err("one block more than the heap was made for");
        }
        self.blocks.insert(offset, Live { place, bytes });
        self.offsets.push(offset);
        self.requested += bytes;
        self.touch(offset, bytes, rules, |count| {
            *count += 1;
            i64::from(*count == 1)
        });
        Ok(())
    }

    pub(crate) fn vacate(&mut self, offset: u64, rules: &Rules<P>) {
        let Some(Live { place, bytes }) = self.blocks.remove(&offset) else {
            return;
        };
        let part_bytes = rules.bytes / rules.parts;
        let part = &mut self.parts[(offset / part_bytes) as usize];
        match (rules.slab)(place) {
            None => {
                let end = (offset + bytes).next_multiple_of(rules.granule);
                part.vacate(offset, end, bytes);
            }
            Some(slab) => {
                let first = offset / slab * slab;
                if let Some(slots) = self.slabs.get_mut(&first) {
                    *slots -= 1;
                    if *slots == 0 {
                        self.slabs.remove(&first);
                        part.vacate(first, first + slab, slab);
                    }
                }
            }
        }
        self.requested -= bytes;
        self.touch(offset, bytes, rules, |count| {
            *count -= 1;
            -i64::from(*count == 0)
        });
    }

    fn touch(&mut self, offset: u64, bytes: u64, rules: &Rules<P>, note: impl Fn(&mut u32) -> i64) {
        let Some(plan) = rules.plan else { return };
        let pages = (offset / plan.page) as usize..=((offset + bytes - 1) / plan.page) as usize;
        for count in &mut self.pages[pages] {
            self.live_pages = self.live_pages.wrapping_add_signed(note(count));
        }
    }
}
