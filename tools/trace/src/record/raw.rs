//! From raw words with addresses to a trace with serial numbers.
//!
//! Invariant: the result is a consistent trace for any input words. The
//! recorder's order makes the table of addresses exact: a block's address is
//! given up before another block can have it. A record may be missing, because
//! the process died while writing it.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

use super::layout::{
    ALLOC, FREE, HEADER_BYTES, MANY, MARK, MORE, RESIZE_BEGIN, RESIZE_END, TABLE, TIMES,
};
use super::process::Loaded;
use super::tables::Tables;
use crate::blocks::{Asked, Blocks, Resizing};
use crate::error::Inconsistency;
use crate::trace::Provenance;

/// Turns ticks into nanoseconds since the start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    pub(super) start: u64,
    pub(super) shift: u32,
    /// From the start to a moment after the end, by the same counter.
    pub(super) elapsed_ticks: u64,
    /// Nanoseconds of that span, from the start to a moment after the end, by the monotonic clock.
    pub(super) elapsed_ns: u64,
}

impl Clock {
    fn nanoseconds(&self, time: u64) -> u64 {
        let ticks = time
            .checked_shl(self.shift)
            .unwrap_or(0)
            .saturating_sub(self.start);
        let ns =
            u128::from(ticks) * u128::from(self.elapsed_ns) / u128::from(self.elapsed_ticks.max(1));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

/// What is known of a thread.
#[derive(Clone, Copy)]
struct Thread {
    /// Number by first appearance.
    number: u32,
    /// Time of its last record.
    time: u64,
    /// What it resizes, and from where.
    resizing: Option<(Resizing, u64)>,
}

/// One record, whole.
struct Record {
    kind: u64,
    thread: u32,
    time_bits: u64,
    address: u64,
    /// The further word of the kinds that have one.
    bits: u64,
    /// What it names its call stack by; 0 for none.
    stack: u64,
}

/// Reads `words` words of `file` into a trace.
pub(super) fn load(
    mut file: File,
    words: u64,
    clock: Clock,
    tables: Option<Tables>,
    provenance: Provenance,
) -> Result<Loaded, String> {
    file.seek(SeekFrom::Start(HEADER_BYTES as u64))
        .map_err(|error| error.to_string())?;
    let bytes = words.checked_mul(8).ok_or("its length is impossible")?;
    let words = Words {
        input: BufReader::with_capacity(1 << 20, file.take(bytes)),
    };
    convert(words, clock, tables, provenance)
}

/// The words of a raw file.
struct Words<R> {
    input: R,
}

impl<R: Read> Iterator for Words<R> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        let mut word = [0u8; 8];
        self.input.read_exact(&mut word).ok()?;
        Some(u64::from_le_bytes(word))
    }
}

fn convert(
    words: impl Iterator<Item = u64>,
    clock: Clock,
    tables: Option<Tables>,
    provenance: Provenance,
) -> Result<Loaded, String> {
    let mut words = (0u64..).zip(words).peekable();
    let mut state = State::new(clock);
    state.tables = tables;
    while let Some((place, head)) = words.next() {
        let kind = head & 7;
        let mut further = || {
            let more = words.next_if(|(_, word)| word & 7 == MORE);
            more.map(|(_, word)| word >> 3)
        };
        if let (TABLE, Some(tables)) = (kind, &mut state.tables) {
            let whole = tables.entry(place, head, &mut further);
            state.unfinished += u64::from(!whole);
            continue;
        }
        if !(ALLOC..=MARK).contains(&kind) {
            // Never written, or the rest of a record whose head was not.
            state.unfinished += 1;
            continue;
        }
        let mut record = Record {
            kind,
            thread: (head >> 3 & 0x7f) as u32,
            time_bits: head >> 10 & (TIMES - 1),
            address: head >> 20 << 4,
            bits: 0,
            stack: 0,
        };
        if matches!(kind, ALLOC | RESIZE_BEGIN | MARK) {
            let Some(bits) = further() else {
                state.unfinished += 1;
                continue;
            };
            record.bits = bits;
        }
        if state.tables.is_some() && matches!(kind, ALLOC | RESIZE_BEGIN) {
            let Some(stack) = further() else {
                state.unfinished += 1;
                continue;
            };
            record.stack = stack;
        }
        if record.thread == MANY {
            let Some(bits) = further() else {
                state.unfinished += 1;
                continue;
            };
            record.thread = bits as u32;
        }
        state.record(&record).map_err(|error| error.to_string())?;
    }
    Ok(state.finish(provenance))
}

struct State {
    clock: Clock,
    /// Where call stacks were recorded.
    tables: Option<Tables>,
    blocks: Blocks,
    threads: HashMap<u32, Thread>,
    /// Threads that made a request.
    numbered: u32,
    last_time: u64,
    unfinished: u64,
}

/// Alignment that malloc promises.
const MALLOC_ALIGN: u32 = 16;

/// Thread number before a thread's first request.
const UNNUMBERED: u32 = u32::MAX;

impl State {
    fn new(clock: Clock) -> State {
        State {
            clock,
            tables: None,
            blocks: Blocks::default(),
            threads: HashMap::new(),
            numbered: 0,
            last_time: 0,
            unfinished: 0,
        }
    }

    fn record(&mut self, record: &Record) -> Result<(), Inconsistency> {
        let start = self.clock.start >> self.clock.shift.min(63);
        let thread = self.threads.entry(record.thread).or_insert(Thread {
            number: UNNUMBERED,
            time: start,
            resizing: None,
        });
        if record.kind == MARK {
            thread.time = record.bits;
            return Ok(());
        }
        let passed = record.time_bits.wrapping_sub(thread.time) & (TIMES - 1);
        thread.time = thread.time.wrapping_add(passed);
        if thread.number == UNNUMBERED {
            thread.number = self.numbered;
            self.numbered += 1;
        }
        let number = thread.number;
        // Threads read the clock before they take their place in the order.
        let time = self.clock.nanoseconds(thread.time).max(self.last_time);
        self.last_time = time;
        let size = record.bits & 0xffff_ffff_ffff;
        let align = 1u32
            .checked_shl((record.bits >> 48 & 0x3f) as u32)
            .unwrap_or(1 << 31);
        let tables = self.tables.as_ref();
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

    fn finish(self, provenance: Provenance) -> Loaded {
        let blocks = self.blocks;
        let mut loaded = Loaded {
            unknown_frees: blocks.unknown_frees,
            unknown_resizes: blocks.unknown_resizes,
            unfinished: self.unfinished + blocks.replaced,
            trace: blocks.finish(Provenance {
                threads: self.numbered,
                ..provenance
            }),
        };
        if let Some(tables) = self.tables {
            loaded.trace.stacks = tables.finish();
        }
        loaded
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::layout::{MODULE, STACK, entry, head, more, request};
    use super::*;
    use crate::event::Op;

    const CLOCK: Clock = Clock {
        start: 0,
        shift: 0,
        elapsed_ticks: 1,
        elapsed_ns: 1,
    };

    fn load(words: &[u64]) -> Loaded {
        convert(words.iter().copied(), CLOCK, None, Provenance::default()).unwrap()
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
        let loaded = load(&[
            head(ALLOC, 1, 10, 0x100),
            more(request(5, 4)),
            head(RESIZE_BEGIN, 1, 20, 0x100),
            more(request(500, 4)),
            head(ALLOC, 2, 30, 0x100),
            more(request(6, 4)),
            head(RESIZE_END, 1, 40, 0x200),
            head(FREE, 2, 50, 0x200),
            head(FREE, 1, 60, 0x100),
        ]);
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
    fn a_failed_resize_changes_nothing() {
        let loaded = load(&[
            head(ALLOC, 1, 0, 0x100),
            more(request(5, 4)),
            head(RESIZE_BEGIN, 1, 0, 0x100),
            more(request(500, 4)),
            head(RESIZE_END, 1, 0, 0),
            head(FREE, 1, 0, 0x100),
        ]);
        assert_eq!(
            events(&loaded).iter().map(|e| e.0).collect::<Vec<_>>(),
            [Op::Alloc, Op::Free]
        );
    }

    #[test]
    fn blocks_from_before_are_counted() {
        let loaded = load(&[
            head(FREE, 1, 0, 0x100),
            head(RESIZE_BEGIN, 1, 0, 0x200),
            more(request(500, 4)),
            head(RESIZE_END, 1, 0, 0x300),
        ]);
        assert_eq!((loaded.unknown_frees, loaded.unknown_resizes), (1, 1));
        assert_eq!(events(&loaded), [(Op::Alloc, 0, 500, 0, 0)]);
    }

    #[test]
    fn records_not_finished_are_passed_over() {
        let loaded = load(&[
            0,                        // a free reserved, not written
            head(ALLOC, 1, 0, 0x100), // its second word is missing
            0,
            more(request(7, 4)), // its head is missing
            head(ALLOC, 1, 0, 0x400),
            more(request(9, 6)),
        ]);
        assert_eq!(events(&loaded), [(Op::Alloc, 0, 9, 0, 0)]);
        assert_eq!(loaded.trace.align(0), 64);
        assert_eq!(loaded.unfinished, 4);
    }

    #[test]
    fn times_are_whole_again() {
        let mark = |thread, time| [head(MARK, thread, time, 0), more(time)];
        let mut words = mark(1, 1_000_000).to_vec();
        words.extend([head(ALLOC, 1, 1_000_003, 0x100), more(request(1, 4))]);
        words.push(head(FREE, 1, 1_001_000, 0x100));
        // A thread whose number does not fit the head.
        words.extend(mark(4000, 5_000_000));
        words.push(more(4000));
        words.extend([
            head(ALLOC, 4000, 5_000_001, 0x100),
            more(request(1, 4)),
            more(4000),
        ]);
        let loaded = load(&words);
        let expected = [
            (Op::Alloc, 0, 1, 0, 1_000_003),
            (Op::Free, 0, 0, 0, 1_001_000),
            (Op::Alloc, 1, 1, 1, 5_000_001),
        ];
        assert_eq!(events(&loaded), expected);
        assert_eq!(loaded.unfinished, 0);
    }

    /// As [`load`], where call stacks were recorded.
    fn sited(words: &[u64]) -> Loaded {
        let tables = Some(Tables::new("/bin/own".into()));
        convert(words.iter().copied(), CLOCK, tables, Provenance::default()).unwrap()
    }

    #[test]
    fn requests_name_stacks_that_stand_before_them() {
        let mut words = vec![entry(MODULE, 4)];
        words.extend([0x1000, 0x2000, 0x1000, 0].map(more));
        words.push(entry(STACK, 2));
        words.extend([0x1010, 0x9000].map(more));
        words.extend([head(ALLOC, 1, 0, 0x100), more(request(5, 4)), more(6)]);
        words.extend([head(ALLOC, 1, 0, 0x200), more(request(5, 4)), more(0)]);
        words.extend([
            head(RESIZE_BEGIN, 1, 0, 0x200),
            more(request(9, 4)),
            more(6),
        ]);
        words.push(head(RESIZE_END, 1, 0, 0x300));
        // A place where no stack is.
        words.extend([head(ALLOC, 1, 0, 0x400), more(request(5, 4)), more(7)]);
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
    fn a_stack_that_was_not_finished_is_none() {
        let words = [
            entry(STACK, 3),
            more(0x1010),
            head(ALLOC, 1, 0, 0x100),
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
                    (0u64..8, 0u32..4, any::<u64>(), 0u64..8)
                        .prop_map(|(kind, thread, time, place)| head(kind, thread, time, place * 16)),
                    (0u64..100, 0u32..64).prop_map(|(size, align)| more(request(size, align))),
                    (0u64..8, 0usize..8).prop_map(|(what, words)| entry(what, words)),
                ],
                0..200,
            )
        ) {
            // The builder refuses inconsistent events: these would panic.
            load(&words);
            sited(&words);
        }
    }
}
