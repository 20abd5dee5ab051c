//! From raw words with addresses to a trace with serial numbers.
//!
//! Invariant: the result is a consistent trace for any input words. The
//! recorder's order makes the table of addresses exact: a block's address is
//! given up before another block can have it. A record may be missing, because
//! the process died while writing it.

use super::layout::{ALLOC, FREE, RESIZE_BEGIN, RESIZE_END};
use super::process::Loaded;
use super::segments::{Memory, Merge, Record};
use super::tables::Tables;
use crate::blocks::{Asked, Blocks, Numbered, Resizing, Sink};
use crate::error::Inconsistency;
use crate::trace::{Provenance, TraceBuilder};

/// Turns ticks into nanoseconds since the start, between two looks at both clocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    shift: u32,
    /// The counter, and nanoseconds since the start, at the first look.
    first: (u64, u64),
    /// The same at the second.
    second: (u64, u64),
    /// The look between the two, if there were more.
    between: (u64, u64),
    /// Nanoseconds of a tick between the two, by 2^[`RATE_SHIFT`].
    rate: u64,
}

/// See [`Clock`].
const RATE_SHIFT: u32 = 32;

impl Clock {
    /// Of units of two to the power of `shift` ticks, by two looks: the counter, and nanoseconds since the start.
    pub(super) fn new(shift: u32, first: (u64, u64), second: (u64, u64)) -> Clock {
        let span = second.0.saturating_sub(first.0).max(1);
        let passed = second.1.saturating_sub(first.1);
        let rate = (u128::from(passed) << RATE_SHIFT) / u128::from(span);
        Clock {
            shift,
            first,
            second,
            between: first,
            rate: u64::try_from(rate).unwrap_or(u64::MAX),
        }
    }

    fn nanoseconds(&self, time: u64) -> u64 {
        let first = self.first;
        let ticks = time.checked_shl(self.shift).unwrap_or(0);
        let ticks = ticks.saturating_sub(first.0);
        let ns = (u128::from(ticks) * u128::from(self.rate)) >> RATE_SHIFT;
        first
            .1
            .saturating_add(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// Another look at both clocks; times asked for from now on are after the one before the last.
    pub(super) fn look(&mut self, ticks: u64, nanoseconds: u64) {
        let between = self.second;
        *self = Clock::new(self.shift, self.between, (ticks, nanoseconds));
        self.between = between;
    }
}

/// What is known of a thread.
#[derive(Clone, Copy)]
struct Thread<B> {
    /// Number by first appearance.
    number: u32,
    /// What it resizes, and from where.
    resizing: Option<(Resizing<B>, u64)>,
}

/// Reads what `memory` has into a trace.
pub(super) fn load(
    memory: impl Memory,
    clock: Clock,
    tables: Option<Tables>,
    provenance: Provenance,
) -> Result<Loaded, Inconsistency> {
    let mut reading = Reading::new(memory, clock, tables, TraceBuilder::new());
    reading.read(None)?;
    Ok(reading.finish(provenance))
}

/// A raw recording as it is read, at its end or while it grows.
pub(super) struct Reading<M, S: Sink> {
    pub(super) merge: Merge<M>,
    /// Where call stacks were recorded.
    pub(super) tables: Option<Tables>,
    pub(super) requests: Requests<S>,
}

impl<M: Memory, S: Sink> Reading<M, S> {
    pub(super) fn new(memory: M, clock: Clock, tables: Option<Tables>, sink: S) -> Reading<M, S> {
        Reading {
            merge: Merge::new(memory),
            tables,
            requests: Requests {
                clock,
                blocks: Blocks::new(sink),
                threads: Numbered::default(),
                last_time: 0,
                unfinished: 0,
            },
        }
    }

    /// Passes over what was recorded before, while nothing is recorded.
    pub(super) fn pass(&mut self) {
        self.merge.pass(&mut self.tables);
    }

    /// Hands back what threads hold that are gone ([`Merge::relieve`]).
    pub(super) fn relieve(&mut self, lives: impl Fn(u32) -> bool) -> usize {
        self.merge.relieve(&mut self.tables, lives)
    }

    /// Reads all records before `horizon`, a time in the units of the layout ([`Merge::read`]); false if it stopped
    /// before, because the sink is full.
    pub(super) fn read(&mut self, horizon: Option<u64>) -> Result<bool, Inconsistency> {
        let requests = &mut self.requests;
        let read = self
            .merge
            .read(horizon, &mut self.tables, |tables, record| {
                requests.record(tables.as_ref(), record).map_err(Some)?;
                match requests.blocks.sink.is_full() {
                    true => Err(None),
                    false => Ok(()),
                }
            });
        match read {
            Ok(()) => Ok(true),
            Err(None) => Ok(false),
            Err(Some(inconsistency)) => Err(inconsistency),
        }
    }

    /// Records that were begun and are not whole, so far.
    pub(super) fn unfinished(&self) -> u64 {
        self.merge.unfinished + self.requests.unfinished + self.requests.blocks.replaced
    }
}

impl<M: Memory> Reading<M, TraceBuilder> {
    fn finish(self, provenance: Provenance) -> Loaded {
        let unfinished = self.unfinished();
        let threads = self.requests.threads();
        let blocks = self.requests.blocks;
        let mut loaded = Loaded {
            unknown_frees: blocks.unknown_frees,
            unknown_resizes: blocks.unknown_resizes,
            unfinished,
            trace: blocks.finish(Provenance {
                threads,
                ..provenance
            }),
        };
        if let Some(tables) = self.tables {
            loaded.trace.stacks = tables.finish();
        }
        loaded
    }
}

/// Requests with addresses, as they come.
pub(super) struct Requests<S: Sink> {
    pub(super) clock: Clock,
    pub(super) blocks: Blocks<S>,
    /// Those that made a request.
    threads: Numbered<Thread<S::Block>>,
    last_time: u64,
    unfinished: u64,
}

/// Alignment that malloc promises.
const MALLOC_ALIGN: u32 = 16;

impl<S: Sink> Requests<S> {
    /// Time of the last request.
    pub(super) fn last_time(&self) -> u64 {
        self.last_time
    }

    /// Threads that made a request.
    pub(super) fn threads(&self) -> u32 {
        u32::try_from(self.threads.len()).unwrap_or(u32::MAX)
    }

    fn record(&mut self, tables: Option<&Tables>, record: &Record) -> Result<(), Inconsistency> {
        let next = self.threads();
        let thread = self
            .threads
            .entry(u64::from(record.thread) << 4)
            .or_insert(Thread {
                number: next,
                resizing: None,
            });
        let number = thread.number;
        let time = self.clock.nanoseconds(record.time).max(self.last_time);
        self.last_time = time;
        let size = record.bits & 0xffff_ffff_ffff;
        let align = 1u32
            .checked_shl((record.bits >> 48 & 0x3f) as u32)
            .unwrap_or(1 << 31);
        let mut asked = Asked {
            time,
            thread: number,
            site: tables.map_or(0, |tables| tables.site(record.stack)),
        };
        match record.kind {
            ALLOC => self.blocks.alloc(asked, record.address, size, align),
            FREE => self.blocks.free(asked, record.address),
            RESIZE_BEGIN => {
                let resizing = self.blocks.resize(record.address, size, MALLOC_ALIGN);
                thread.resizing = Some((resizing, asked.site));
                Ok(())
            }
            RESIZE_END => match thread.resizing.take() {
                Some((resizing, site)) => {
                    asked.site = site;
                    self.blocks.resized(asked, resizing, record.address)
                }
                None => {
                    self.unfinished += 1;
                    Ok(())
                }
            },
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use std::sync::atomic::AtomicU64;

    use super::super::layout::{
        MARK, MODULE, PADDING, PENDING, SEGMENT_WORDS, STACK, entry, head, more, owner, request,
        system_thread,
    };
    use super::*;
    use crate::event::Op;

    /// A tick is a nanosecond.
    fn clock() -> Clock {
        Clock::new(0, (0, 0), (1, 1))
    }

    /// Segments in memory.
    #[derive(Default)]
    struct Segments {
        segments: Vec<Vec<AtomicU64>>,
        begun: u64,
        done: Vec<u64>,
    }

    impl Segments {
        /// Adds a segment of these words.
        fn add(&mut self, thread: u32, number: u32, words: &[u64]) {
            let first = [owner(thread, number)];
            let words = first.iter().chain(words).copied();
            let words = words.chain(std::iter::repeat(0)).take(SEGMENT_WORDS);
            self.segments.push(words.map(AtomicU64::new).collect());
        }
    }

    impl Memory for Segments {
        fn words(&mut self, segment: u64) -> Option<&[AtomicU64]> {
            self.segments.get(segment as usize).map(Vec::as_slice)
        }

        fn begun(&mut self, _ended: bool) -> Vec<u64> {
            let before = std::mem::replace(&mut self.begun, self.segments.len() as u64);
            (before..self.begun).collect()
        }

        fn done(&mut self, segment: u64) {
            self.done.push(segment);
        }
    }

    /// The words of each thread, a segment each.
    fn load_threads(threads: &[&[u64]], tables: Option<Tables>) -> Loaded {
        let mut memory = Segments::default();
        for (thread, words) in (1..).zip(threads) {
            for (number, words) in (1..).zip(words.chunks(SEGMENT_WORDS - 1)) {
                memory.add(thread, number, words);
            }
        }
        super::load(memory, clock(), tables, Provenance::default()).unwrap()
    }

    fn load(words: &[u64]) -> Loaded {
        load_threads(&[words], None)
    }

    fn events(loaded: &Loaded) -> Vec<(Op, u64, u64, u32, u64)> {
        loaded
            .trace
            .iter()
            .map(|e| (e.op, e.block, e.size, e.thread, e.time_ns))
            .collect()
    }

    #[test]
    fn a_block_given_up_by_a_resize_is_used_again_before_its_end() {
        let one = [
            head(ALLOC, 10, 0x100),
            more(request(5, 4)),
            head(RESIZE_BEGIN, 20, 0x100),
            more(request(500, 4)),
            head(RESIZE_END, 40, 0x200),
            head(FREE, 60, 0x100),
        ];
        let other = [
            head(ALLOC, 30, 0x100),
            more(request(6, 4)),
            head(FREE, 50, 0x200),
        ];
        let loaded = load_threads(&[&one, &other], None);
        assert_eq!(
            events(&loaded),
            [
                (Op::Alloc, 0, 5, 0, 10),
                (Op::Alloc, 1, 6, 1, 30),
                (Op::Resize, 0, 500, 0, 40),
                (Op::Free, 0, 0, 1, 50),
                (Op::Free, 1, 0, 0, 60),
            ]
        );
        assert_eq!((loaded.unknown_frees, loaded.unfinished), (0, 0));
    }

    #[test]
    fn what_threads_hold_that_are_gone_is_handed_back() {
        let mut memory = Segments::default();
        let words = |time, address| {
            [
                head(MARK, time, 0),
                more(time),
                system_thread(1000 + address as u32 / 16),
                head(ALLOC, time, address),
                more(request(5, 4)),
            ]
        };
        for thread in 1..=3 {
            memory.add(thread, 1, &words(u64::from(thread), u64::from(thread) * 16));
        }
        let mut reading = Reading::new(memory, clock(), None, TraceBuilder::new());
        // The third has a record that nobody may have yet.
        assert!(reading.read(Some(3)).unwrap());
        let lives = |thread| thread == 1002;
        assert_eq!(reading.relieve(lives), 1);
        assert_eq!(reading.merge.memory.done, [0]);
        // Another thread takes the place; those that are left go on.
        reading.merge.memory.add(4, 1, &words(4, 64));
        assert!(reading.read(Some(10)).unwrap());
        assert_eq!(reading.relieve(lives), 2);
        assert_eq!(reading.merge.memory.done, [0, 3, 2]);
        assert_eq!(reading.relieve(lives), 0);
        let last = [head(FREE, 20, 32)];
        let words = &mut reading.merge.memory.segments[1];
        words[6] = AtomicU64::new(last[0]);
        assert!(reading.read(None).unwrap());
        let trace = reading.requests.blocks.finish(Provenance::default());
        let events: Vec<(Op, u64, u32)> =
            trace.iter().map(|e| (e.op, e.time_ns, e.thread)).collect();
        assert_eq!(
            events,
            [
                (Op::Alloc, 1, 0),
                (Op::Alloc, 2, 1),
                (Op::Alloc, 3, 2),
                (Op::Alloc, 4, 3),
                (Op::Free, 20, 1)
            ]
        );
    }

    #[test]
    fn of_two_at_one_time_the_one_that_gives_a_block_up_goes_first() {
        let gets = [head(ALLOC, 7, 0x100), more(request(6, 4))];
        let gives = [
            head(ALLOC, 3, 0x100),
            more(request(5, 4)),
            head(FREE, 7, 0x100),
        ];
        let loaded = load_threads(&[&gets, &gives], None);
        let ops: Vec<Op> = events(&loaded).iter().map(|event| event.0).collect();
        assert_eq!(ops, [Op::Alloc, Op::Free, Op::Alloc]);
        assert_eq!(loaded.unfinished, 0);
    }

    #[test]
    fn a_failed_resize_changes_nothing() {
        let loaded = load(&[
            head(ALLOC, 0, 0x100),
            more(request(5, 4)),
            head(RESIZE_BEGIN, 0, 0x100),
            more(request(500, 4)),
            head(RESIZE_END, 0, 0),
            head(FREE, 0, 0x100),
        ]);
        assert_eq!(
            events(&loaded).iter().map(|e| e.0).collect::<Vec<_>>(),
            [Op::Alloc, Op::Free]
        );
    }

    #[test]
    fn blocks_from_before_are_counted() {
        let loaded = load(&[
            head(FREE, 0, 0x100),
            head(RESIZE_BEGIN, 0, 0x200),
            more(request(500, 4)),
            head(RESIZE_END, 0, 0x300),
        ]);
        assert_eq!((loaded.unknown_frees, loaded.unknown_resizes), (1, 1));
        assert_eq!(events(&loaded), [(Op::Alloc, 0, 500, 0, 0)]);
    }

    #[test]
    fn records_not_finished_are_passed_over() {
        let loaded = load(&[
            0,                     // a free reserved, not written
            PENDING,               // a free that was begun
            head(ALLOC, 0, 0x100), // its second word is missing
            0,
            PADDING,
            more(request(7, 4)), // its head is missing
            head(ALLOC, 0, 0x400),
            more(request(9, 6)),
        ]);
        assert_eq!(events(&loaded), [(Op::Alloc, 0, 9, 0, 0)]);
        assert_eq!(loaded.trace.align(0), 64);
        assert_eq!(loaded.unfinished, 3);
    }

    #[test]
    fn times_are_whole_again() {
        let mark = |time| [head(MARK, time, 0), more(time)];
        let mut one = mark(1_000_000).to_vec();
        one.extend([head(ALLOC, 1_000_003, 0x100), more(request(1, 4))]);
        one.push(head(FREE, 1_001_000, 0x100));
        let mut other = mark(5_000_000).to_vec();
        other.extend([head(ALLOC, 5_000_002, 0x100), more(request(1, 4))]);
        // A handler came before it, and read the clock later.
        other.push(head(FREE, 5_000_001, 0x100));
        let loaded = load_threads(&[&one, &other], None);
        let expected = [
            (Op::Alloc, 0, 1, 0, 1_000_003),
            (Op::Free, 0, 0, 0, 1_001_000),
            (Op::Alloc, 1, 1, 1, 5_000_002),
            (Op::Free, 1, 0, 1, 5_000_002),
        ];
        assert_eq!(events(&loaded), expected);
        assert_eq!(loaded.unfinished, 0);
    }

    #[test]
    fn times_between_two_looks_at_the_clocks_are_of_those() {
        let mut clock = Clock::new(1, (100, 0), (200, 1000));
        assert_eq!(clock.nanoseconds(75), 500);
        clock.look(300, 1100);
        assert_eq!(clock.nanoseconds(150), 1100);
        clock.look(400, 1200);
        assert_eq!(clock.nanoseconds(150), 1100);
        assert_eq!(clock.nanoseconds(0), 1000);
    }

    /// What is read while it grows: nothing that an earlier record of another thread could come before.
    #[test]
    fn while_it_grows_nothing_is_read_too_early() {
        let mut memory = Segments::default();
        memory.add(
            1,
            1,
            &[
                head(ALLOC, 10, 0x100),
                more(request(1, 4)),
                head(ALLOC, 30, 0x200),
                more(request(2, 4)),
            ],
        );
        memory.add(
            2,
            1,
            &[head(ALLOC, 20, 0x300), more(request(3, 4)), PENDING],
        );
        let mut reading = Reading::new(memory, clock(), None, TraceBuilder::new());
        reading.read(Some(15)).unwrap();
        assert_eq!(reading.requests.blocks.sink.len(), 1, "before the horizon");
        reading.read(Some(1000)).unwrap();
        assert_eq!(
            reading.requests.blocks.sink.len(),
            2,
            "the second thread may yet be at 25"
        );
        // It was.
        let words = &reading.merge.memory.segments[1];
        words[3].store(head(FREE, 25, 0x300), std::sync::atomic::Ordering::Relaxed);
        reading.merge.memory.add(2, 2, &[head(FREE, 40, 0x100)]);
        reading.read(Some(1000)).unwrap();
        reading.read(None).unwrap();
        let loaded = reading.finish(Provenance::default());
        let ops: Vec<(Op, u64)> = events(&loaded).iter().map(|e| (e.0, e.1)).collect();
        let expected = [
            (Op::Alloc, 0),
            (Op::Alloc, 1),
            (Op::Free, 1),
            (Op::Alloc, 2),
            (Op::Free, 0),
        ];
        assert_eq!(ops, expected);
        assert_eq!(loaded.unfinished, 0);
    }

    /// As [`load`], where call stacks were recorded.
    fn sited(words: &[u64]) -> Loaded {
        load_threads(&[words], Some(Tables::new("/bin/own".into())))
    }

    #[test]
    fn requests_name_stacks_that_stand_before_them() {
        let mut words = vec![entry(MODULE, 5)];
        words.extend([0, 0x1000, 0x2000, 0x1000, 0].map(more));
        words.push(entry(STACK, 3));
        words.extend([1, 0x1010, 0x9000].map(more));
        words.extend([head(ALLOC, 0, 0x100), more(request(5, 4)), more(2)]);
        words.extend([head(ALLOC, 0, 0x200), more(request(5, 4)), more(0)]);
        words.extend([head(RESIZE_BEGIN, 0, 0x200), more(request(9, 4)), more(2)]);
        words.push(head(RESIZE_END, 0, 0x300));
        // A number that no stack has.
        words.extend([head(ALLOC, 0, 0x400), more(request(5, 4)), more(7)]);
        let loaded = sited(&words);
        let sites: Vec<u64> = loaded.trace.iter().map(|event| event.site).collect();
        assert_eq!(sites, [1, 0, 1, 0]);
        assert_eq!(loaded.unfinished, 0);
        let stacks = &loaded.trace.stacks;
        let calls: Vec<u32> = stacks.calls(1).collect();
        let named = calls
            .iter()
            .map(|&call| stacks.plain(stacks.nodes()[call as usize].place));
        assert_eq!(named.collect::<Vec<_>>(), ["own+0x10", "0x9000"]);
    }

    #[test]
    fn entries_are_taken_by_their_numbers() {
        // The stack is met before the module that it lies in, which another thread wrote.
        let stack = [
            entry(STACK, 2),
            more(1),
            more(0x1010),
            head(ALLOC, 5, 0x100),
            more(request(5, 4)),
            more(2),
        ];
        let module = [entry(MODULE, 5), more(0), more(0x1000), more(0x2000)];
        let mut module = module.to_vec();
        module.extend([0x1000, 0].map(more));
        let loaded = load_threads(&[&stack, &module], Some(Tables::new("/bin/own".into())));
        assert_eq!(loaded.trace.site(0), 1);
        let stacks = &loaded.trace.stacks;
        let call = stacks.calls(1).next().unwrap();
        assert_eq!(
            stacks.plain(stacks.nodes()[call as usize].place),
            "own+0x10"
        );
    }

    #[test]
    fn a_stack_that_was_not_finished_is_none() {
        let words = [
            entry(STACK, 3),
            more(0),
            more(0x1010),
            head(ALLOC, 0, 0x100),
            more(request(5, 4)),
            more(1),
        ];
        let loaded = sited(&words);
        assert_eq!(loaded.trace.site(0), 0);
        assert_eq!(loaded.unfinished, 1);
        assert!(loaded.trace.stacks.is_empty());
    }

    proptest! {
        #[test]
        fn any_words_give_a_consistent_trace(
            words in prop::collection::vec(
                prop_oneof![
                    any::<u64>(),
                    (0u64..8, any::<u64>(), 0u64..8)
                        .prop_map(|(kind, time, place)| head(kind, time, place * 16)),
                    (0u64..100, 0u32..64).prop_map(|(size, align)| more(request(size, align))),
                    (0u64..8, 0usize..8).prop_map(|(what, words)| entry(what, words)),
                ],
                0..200,
            )
        ) {
            // The builder refuses inconsistent events: these would panic.
            let (one, other) = words.split_at(words.len() / 2);
            load_threads(&[one, other], None);
            sited(&words);
        }
    }
}
