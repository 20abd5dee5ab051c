//! How a reader sees one moment of a heap that never waits for it.
//!
//! The writer *publishes* after each operation, in this order: changes of records go to a ring of
//! changes; the figures go to the next place of a ring of figures, and say how many changes there
//! were until then; the number of publications rises; the records take the changes over.
//!
//! So the records are always somewhat old, and never newer than the last publication. A reader
//! copies them, then the figures of the last publication, and then makes the changes between the
//! two itself. It starts over if the writer has meanwhile claimed the place of something that it
//! read. Both rings are long, so that it hardly ever has to, however busy the heap is; no word is
//! ever waited for by the writer.
//!
//! Invariant: what [`read`] returns are the figures of one publication, and the records as they
//! were at it. The orderings are those of a sequence lock (H.-J. Boehm, Can seqlocks get along
//! with programming language memory models?, MSPC 2012): data is written behind a release fence
//! that follows the count, and read before an acquire fence that precedes it.

use crate::cells::{AtomicU64, Ordering, fence};
use crate::layout::{CHANGE, Layout, RECORD};

/// A record.
pub(crate) type Record = [u64; RECORD];

/// The writer's side.
#[derive(Debug)]
pub(crate) struct Publisher {
    layout: Layout,
    /// Publications so far.
    number: u64,
    /// Changes so far.
    position: u64,
}

impl Publisher {
    pub(crate) fn new(layout: Layout) -> Self {
        Publisher {
            layout,
            number: 0,
            position: 0,
        }
    }

    /// Publishes figures, whose first two words it fills in, together with changes of records.
    /// O(figures + changes).
    pub(crate) fn publish(
        &mut self,
        words: &[AtomicU64],
        changes: impl Iterator<Item = (usize, Record)> + Clone,
        count: usize,
        figures: &mut [u64],
    ) {
        let layout = self.layout;
        if count > 0 {
            let claimed = self.position + count as u64;
            words[layout.claimed()].store(claimed, Ordering::Relaxed);
            fence(Ordering::Release);
            for (number, record) in changes.clone() {
                let change = &words[layout.change(self.position)..][..CHANGE];
                change[0].store(number as u64, Ordering::Relaxed);
                for (word, value) in change[1..].iter().zip(record) {
                    word.store(value, Ordering::Relaxed);
                }
                self.position += 1;
            }
        }
        // Whoever sees a word of this publication sees that the one before it is done, and so
        // that this place is being written.
        fence(Ordering::Release);
        self.number += 1;
        figures[0] = self.number;
        figures[1] = self.position;
        let slot = &words[layout.slot(self.number)..][..figures.len()];
        for (word, value) in slot.iter().zip(figures) {
            word.store(*value, Ordering::Relaxed);
        }
        words[layout.latest()].store(self.number, Ordering::Release);
        if count > 0 {
            // Whoever sees a word of a record sees the publication that it is of.
            fence(Ordering::Release);
            for (number, record) in changes {
                let words = &words[layout.record(number)..][..RECORD];
                for (word, value) in words.iter().zip(record) {
                    word.store(value, Ordering::Relaxed);
                }
            }
            words[layout.applied()].store(self.position, Ordering::Release);
        }
    }
}

/// What a reader found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) figures: Vec<u64>,
    /// Word after word.
    pub(crate) records: Vec<u64>,
}

/// Why it found nothing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Missed {
    /// The writer has gone on: try again.
    Overtaken,
    /// No writer leaves this.
    Damaged(&'static str),
}

/// Reads a moment. O(records).
pub(crate) fn read(words: &[AtomicU64], layout: Layout) -> Result<Found, Missed> {
    let get = |place: usize| words[place].load(Ordering::Relaxed);
    let copy = |from: usize, count: usize| -> Vec<u64> { (from..from + count).map(get).collect() };
    // Loads are relaxed, as the words may lie in memory that can only be read.
    let before = get(layout.applied());
    fence(Ordering::Acquire);
    let mut records = copy(layout.record(0), layout.records * RECORD);
    fence(Ordering::Acquire);
    let number = get(layout.latest());
    fence(Ordering::Acquire);
    let figures = copy(layout.slot(number), layout.figures);
    fence(Ordering::Acquire);
    let overtaken = |now: u64| now.wrapping_sub(number) > layout.slots as u64 - 2;
    if overtaken(get(layout.latest())) {
        return Err(Missed::Overtaken);
    }
    if figures[0] != number {
        return Err(Missed::Damaged("figures are not those of their number"));
    }
    let position = figures[1];
    let Some(count) = position.checked_sub(before) else {
        return Err(Missed::Damaged(
            "records have changes that are yet to be made",
        ));
    };
    if count > layout.changes as u64 {
        return Err(Missed::Overtaken);
    }
    let changes: Vec<Vec<u64>> = (before..position)
        .map(|change| copy(layout.change(change), 1 + RECORD))
        .collect();
    fence(Ordering::Acquire);
    if get(layout.claimed()).wrapping_sub(before) > layout.changes as u64 {
        return Err(Missed::Overtaken);
    }
    for change in changes {
        let place = usize::try_from(change[0])
            .ok()
            .filter(|number| *number < layout.records)
            .ok_or(Missed::Damaged("a change is of no record"))?
            * RECORD;
        records[place..place + RECORD].copy_from_slice(&change[1..]);
    }
    Ok(Found { figures, records })
}

#[cfg(test)]
mod interleavings {
    use super::*;
    #[cfg(loom)]
    use loom::{sync::Arc, thread};
    #[cfg(not(loom))]
    use std::{
        sync::{Arc, atomic::AtomicBool},
        thread,
    };

    /// Small rings, so that the writer overtakes the reader often.
    fn small(records: usize) -> Layout {
        Layout {
            header: 0,
            line: 1,
            figures: 3,
            slots: 2,
            changes: 2,
            records,
        }
    }

    fn words(layout: Layout) -> Arc<Vec<AtomicU64>> {
        let words = layout.words().unwrap();
        Arc::new((0..words).map(|_| AtomicU64::new(0)).collect())
    }

    /// Publication `number` has the figure `7 * number`, and changes the first record, and the
    /// one whose turn it is: both to `number`.
    fn write(layout: Layout, words: &[AtomicU64], publisher: &mut Publisher, number: u64) {
        let turn = number as usize % layout.records;
        let changes = [(0, [number; RECORD]), (turn, [number; RECORD])];
        let count = if turn == 0 { 1 } else { 2 };
        let changes = changes.into_iter().take(count);
        publisher.publish(words, changes, count, &mut [0, 0, 7 * number]);
    }

    /// That figures and records are of one moment: `0` before the first publication.
    fn check(layout: Layout, found: &Found) -> u64 {
        let number = found.figures[0];
        assert_eq!(found.figures[2], 7 * number);
        let records = layout.records as u64;
        for (record, words) in (0..).zip(found.records.chunks(RECORD)) {
            let last = match record {
                0 => number,
                // Its last turn until then, if it had one.
                record if record > number => 0,
                record => number - (number - record) % records,
            };
            assert_eq!(words, [last; RECORD], "record {record} at {number}");
        }
        number
    }

    #[cfg(loom)]
    #[test]
    fn every_one_shows_one_moment() {
        use loom::sync::atomic::Ordering::Relaxed;
        use std::sync::atomic::AtomicUsize;
        // All of them where there are few, else those with up to so many preemptions.
        for (records, publications, bound) in [(1, 2, None), (2, 2, Some(2)), (1, 4, Some(2))] {
            let layout = small(records);
            let runs = std::sync::Arc::new([const { AtomicUsize::new(0) }; 2]);
            let counted = std::sync::Arc::clone(&runs);
            let mut model = loom::model::Builder::new();
            model.preemption_bound = bound;
            model.check(move || {
                let shared = words(layout);
                let own = Arc::clone(&shared);
                let writer = thread::spawn(move || {
                    let mut publisher = Publisher::new(layout);
                    for number in 1..=publications {
                        write(layout, &own, &mut publisher, number);
                    }
                });
                let kind = match read(&shared, layout) {
                    Ok(found) => {
                        check(layout, &found);
                        0
                    }
                    Err(missed) => {
                        assert_eq!(missed, Missed::Overtaken);
                        1
                    }
                };
                counted[kind].fetch_add(1, Relaxed);
                writer.join().unwrap();
                let last = read(&shared, layout).unwrap();
                assert_eq!(check(layout, &last), publications);
            });
            let [found, missed] = [0, 1].map(|kind| runs[kind].load(Relaxed));
            println!(
                "{records} records, {publications} publications: {found} reads, {missed} misses"
            );
            assert!(found > 0);
        }
    }

    #[cfg(not(loom))]
    #[test]
    fn a_busy_writer_is_never_seen_between_two_moments() {
        let long = Layout {
            slots: 16,
            changes: 64,
            ..small(300)
        };
        for layout in [small(2), small(5), long] {
            let shared = words(layout);
            let own = Arc::clone(&shared);
            let seen_enough = Arc::new(AtomicBool::new(false));
            let enough = Arc::clone(&seen_enough);
            let writer = thread::spawn(move || {
                let mut publisher = Publisher::new(layout);
                for number in 1.. {
                    write(layout, &own, &mut publisher, number);
                    if enough.load(Ordering::Relaxed) {
                        return number;
                    }
                    // The reader has its turn, in the midst of whatever it reads.
                    if number % 97 == 0 {
                        thread::yield_now();
                    }
                }
                0
            });
            let (mut moments, mut last) = (0, 0);
            while moments < 300 {
                match read(&shared, layout) {
                    Ok(found) => {
                        let number = check(layout, &found);
                        assert!(number >= last, "time runs backwards");
                        moments += u32::from(number > last);
                        last = number;
                    }
                    Err(missed) => assert_eq!(missed, Missed::Overtaken),
                }
            }
            seen_enough.store(true, Ordering::Relaxed);
            let number = writer.join().unwrap();
            assert_eq!(check(layout, &read(&shared, layout).unwrap()), number);
        }
    }
}
