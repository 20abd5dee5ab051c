//! The records of a raw recording in the order of their times, at its end or while it grows.
//!
//! Each thread has segments of its own, in which its records are in order; those of all threads are merged by their
//! times. While the recording grows, a record is given out only when none with an earlier time can follow: a thread
//! that has none under way begins its next one later than it was looked at.
//!
//! *Invariant:* whatever the words are, each is looked at once, and each thread's records are given out in its order.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::layout::{
    ALLOC, FREE, MARK, MORE, PADDING, PENDING, RESIZE_BEGIN, RESIZE_END, SEGMENT_WORDS, TABLE,
    TIMES, address_of, system_thread_of, time_of,
};
use super::tables::Tables;

/// For how long a record may be under way before it is given up: its thread is gone, or stopped.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where segments lie.
pub(super) trait Memory {
    /// The words of a segment; None if there is no such.
    fn words(&mut self, segment: u64) -> Option<&[AtomicU64]>;

    /// The segments that were begun since the last call; once `ended` all of the rest, whole or not.
    fn begun(&mut self, ended: bool) -> Vec<u64>;

    /// Nothing in this segment is wanted any more.
    fn done(&mut self, segment: u64);
}

/// One record, whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) kind: u64,
    /// The recorder's number of the thread.
    pub(super) thread: u32,
    /// In units of the layout.
    pub(super) time: u64,
    pub(super) address: u64,
    /// The further word of the kinds that have one.
    pub(super) bits: u64,
    /// What it names its call stack by; 0 for none.
    pub(super) stack: u64,
}

/// The segments of a thread.
struct Stream {
    thread: u32,
    /// The system's number of it; 0 if it is not known.
    system: u32,
    /// Number of the segment after the one that is read.
    next: u32,
    /// Segments that come after it, by number.
    further: BTreeMap<u32, u64>,
    /// The segment that is read, and how far.
    segment: Option<u64>,
    at: usize,
    /// Time of the last record as written, and as given out.
    written: u64,
    time: u64,
    /// The next record.
    record: Option<Record>,
    /// Since when a record is under way.
    pending: Option<Instant>,
}

/// What comes next in a stream.
enum Next {
    Record(Record),
    /// Nothing yet.
    Nothing,
    /// A record is under way.
    Pending,
}

/// See the module.
pub(super) struct Merge<M> {
    pub(super) memory: M,
    streams: Vec<Stream>,
    by_thread: HashMap<u32, usize>,
    /// Streams of threads that are gone: others take their places.
    vacant: Vec<usize>,
    /// Streams that have a record, the earliest first.
    ready: BinaryHeap<Reverse<(u64, bool, usize)>>,
    /// Records that were begun and are not whole.
    pub(super) unfinished: u64,
}

/// At the same time, those that give a block up go first.
fn order(record: &Record, stream: usize) -> (u64, bool, usize) {
    let gets = matches!(record.kind, ALLOC | RESIZE_END);
    (record.time, gets, stream)
}

impl<M: Memory> Merge<M> {
    pub(super) fn new(memory: M) -> Merge<M> {
        Merge {
            memory,
            streams: Vec::new(),
            by_thread: HashMap::new(),
            vacant: Vec::new(),
            ready: BinaryHeap::new(),
            unfinished: 0,
        }
    }

    /// Gives out all records before `horizon`, a time after which any thread that has none under way begins its
    /// next; None once no thread will begin any. Entries of tables go to `tables`. After an error the next call goes
    /// on with the record after the one that was refused.
    pub(super) fn read<E>(
        &mut self,
        horizon: Option<u64>,
        tables: &mut Option<Tables>,
        mut take: impl FnMut(&Option<Tables>, &Record) -> Result<(), E>,
    ) -> Result<(), E> {
        let ended = horizon.is_none();
        self.look(ended);
        let mut bound = horizon.unwrap_or(u64::MAX);
        for index in 0..self.streams.len() {
            if self.streams[index].record.is_none() {
                self.advance(index, ended, tables, &mut bound);
            }
        }
        while let Some(Reverse(first)) = self.ready.peek().copied() {
            if first.0 >= bound && !ended {
                break;
            }
            self.ready.pop();
            let index = first.2;
            let following = self.ready.peek().map(|Reverse(following)| *following);
            // As long as it is this thread's turn.
            while let Some(record) = self.streams[index].record.take() {
                let turn = order(&record, index);
                let before = following.is_none_or(|following| turn <= following);
                if !before || (turn.0 >= bound && !ended) {
                    self.streams[index].record = Some(record);
                    self.ready.push(Reverse(turn));
                    break;
                }
                take(tables, &record)?;
                match self.next(index, ended, tables) {
                    Next::Record(record) => self.streams[index].record = Some(record),
                    Next::Nothing => {}
                    Next::Pending => bound = bound.min(self.streams[index].time),
                }
            }
        }
        Ok(())
    }

    /// Passes over all that there is, of threads that write nothing meanwhile. Call before anything is read.
    pub(super) fn pass(&mut self, tables: &mut Option<Tables>) {
        self.look(false);
        for stream in &mut self.streams {
            // Those before were read by somebody else.
            let first = stream.further.first_key_value();
            stream.next = first.map_or(stream.next, |(&number, _)| number);
        }
        let passed = self.read(Some(u64::MAX), tables, |_, _| {
            Ok::<(), std::convert::Infallible>(())
        });
        passed.unwrap_or_else(|never| match never {});
    }

    /// Hands back the segments of threads that are gone, which hold each one that will never be full; how many. `lives` is
    /// asked of the system's numbers of threads that were met, and was found out after the last [`read`](Self::read).
    pub(super) fn relieve(
        &mut self,
        tables: &mut Option<Tables>,
        lives: impl Fn(u32) -> bool,
    ) -> usize {
        let mut relieved = 0;
        for index in 0..self.streams.len() {
            let stream = &self.streams[index];
            let is_gone = stream.system != 0 && !lives(stream.system);
            if !is_gone || stream.record.is_some() || !stream.further.is_empty() {
                continue;
            }
            // What it wrote since, if anything, was its last.
            let mut bound = u64::MAX;
            self.advance(index, false, tables, &mut bound);
            let stream = &mut self.streams[index];
            if stream.record.is_some() || stream.pending.is_some() {
                continue;
            }
            let thread = stream.thread;
            (stream.system, stream.thread) = (0, 0);
            if let Some(segment) = stream.segment.take() {
                self.memory.done(segment);
                relieved += 1;
            }
            self.by_thread.remove(&thread);
            self.vacant.push(index);
        }
        relieved
    }

    /// Finds the segments that were begun.
    fn look(&mut self, ended: bool) {
        for segment in self.memory.begun(ended) {
            let words = self.memory.words(segment);
            let first = words.and_then(|words| words.first());
            let owner = first.map_or(0, |first| first.load(Ordering::Acquire));
            let (thread, number) = ((owner >> 32) as u32, owner as u32);
            if thread == 0 {
                continue;
            }
            let index = *self.by_thread.entry(thread).or_insert_with(|| {
                let stream = Stream {
                    thread,
                    system: 0,
                    next: 1,
                    further: BTreeMap::new(),
                    segment: None,
                    at: 0,
                    written: 0,
                    time: 0,
                    record: None,
                    pending: None,
                };
                match self.vacant.pop() {
                    Some(index) => {
                        self.streams[index] = stream;
                        index
                    }
                    None => {
                        self.streams.push(stream);
                        self.streams.len() - 1
                    }
                }
            });
            self.streams[index].further.insert(number, segment);
        }
    }

    /// Has the stream's next record wait for its turn.
    fn advance(&mut self, index: usize, ended: bool, tables: &mut Option<Tables>, bound: &mut u64) {
        match self.next(index, ended, tables) {
            Next::Record(record) => {
                self.ready.push(Reverse(order(&record, index)));
                self.streams[index].record = Some(record);
            }
            Next::Nothing => {}
            Next::Pending => *bound = (*bound).min(self.streams[index].time),
        }
    }

    /// The next record of a stream.
    fn next(&mut self, index: usize, ended: bool, tables: &mut Option<Tables>) -> Next {
        let stream = &mut self.streams[index];
        loop {
            let Some(segment) = stream.segment else {
                let wanted = stream.further.remove(&stream.next);
                let Some(segment) = wanted.or_else(|| {
                    let (&number, _) = stream.further.first_key_value().filter(|_| ended)?;
                    stream.next = number;
                    stream.further.remove(&number)
                }) else {
                    return Next::Nothing;
                };
                stream.next += 1;
                stream.segment = Some(segment);
                stream.at = 1;
                continue;
            };
            let words = self.memory.words(segment).unwrap_or(&[]);
            let Some(head) = words.get(stream.at) else {
                self.memory.done(segment);
                stream.segment = None;
                continue;
            };
            let head = head.load(Ordering::Acquire);
            let kind = head & 7;
            if let Some(system) = system_thread_of(head) {
                stream.system = system;
                stream.at += 1;
                continue;
            }
            let length = match kind {
                0 if head == 0 => {
                    // The rest of a segment that the thread has left behind.
                    if ended || stream.further.contains_key(&stream.next) {
                        stream.at += 1;
                        continue;
                    }
                    return Next::Nothing;
                }
                0 if head == PENDING => {
                    let since = *stream.pending.get_or_insert_with(Instant::now);
                    if !ended && since.elapsed() < PATIENCE {
                        return Next::Pending;
                    }
                    stream.pending = None;
                    self.unfinished += 1;
                    stream.at += 1;
                    // It may have been an entry, for which all others would wait.
                    if let Some(tables) = tables {
                        tables.close();
                    }
                    continue;
                }
                ALLOC | RESIZE_BEGIN => 1 + usize::from(tables.is_some()),
                FREE | RESIZE_END => 0,
                MARK => 1,
                TABLE => (head >> 10) as usize,
                _ => {
                    // The rest of a record whose head was not written.
                    self.unfinished += u64::from(head != PADDING);
                    stream.at += 1;
                    continue;
                }
            };
            stream.pending = None;
            let (mut short, mut long) = ([0; 2], Vec::new());
            let further: &mut [u64] = match length {
                0..=2 => &mut short,
                _ => {
                    long.resize(length.min(SEGMENT_WORDS), 0);
                    &mut long
                }
            };
            let behind = words.get(stream.at + 1..).unwrap_or(&[]);
            let mut found = 0;
            for (place, word) in further.iter_mut().zip(behind).take(length) {
                let word = word.load(Ordering::Relaxed);
                if word & 7 != MORE {
                    break;
                }
                *place = word >> 3;
                found += 1;
            }
            stream.at += 1 + found;
            if found < length {
                self.unfinished += 1;
                continue;
            }
            match kind {
                MARK => {
                    stream.written = further.first().copied().unwrap_or(0);
                    continue;
                }
                TABLE => {
                    let whole = tables
                        .as_mut()
                        .is_some_and(|tables| tables.entry(head, &further[..found]));
                    self.unfinished += u64::from(!whole);
                    continue;
                }
                _ => {}
            }
            let passed = time_of(head).wrapping_sub(stream.written) & (TIMES - 1);
            // A handler that came before the record of the thread may have read the clock later.
            let passed = passed.wrapping_sub(if passed < TIMES / 2 { 0 } else { TIMES });
            stream.written = stream.written.wrapping_add(passed);
            stream.time = stream.time.max(stream.written);
            return Next::Record(Record {
                kind,
                thread: stream.thread,
                time: stream.time,
                address: address_of(head),
                bits: further.first().copied().unwrap_or(0),
                stack: further.get(1).copied().unwrap_or(0),
            });
        }
    }
}
