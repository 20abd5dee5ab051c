//! Free blocks filed by size class and by the streams that may still use them.
//!
//! There is a set of class lists for every stream, with the blocks that wait for that stream
//! alone; one for those that are *ready*, which wait for nobody; and one for those that wait
//! for several. A request of a stream is served from its own set or the ready one. Blocks that
//! wait stand in a queue besides, so that those whose streams came far enough are found
//! without a search.
//!
//! What a block waits for is a set of streams and one ticket: when blocks merge, the union of
//! the sets and the greater ticket. That may be later than what either waited for, and takes
//! no more room, however often blocks merge.
//!
//! Invariant: a block is in the list of its set and class, and in its set's queue unless it is
//! ready; a bit of a bitmap is set exactly when its list is not empty.

use metes_heap::index::Index;
use metes_heap::index::classes::{class_below, class_floor};
use metes_heap::store::ledger::{Ledger, LedgerBlock};
use metes_heap::{ByHandle, Geometry, Store, UnitRecord};

use crate::backend::timeline::Ticket;
use crate::heap::PROBES;
use crate::pages::Waits;

/// Streams that can be told apart: bits of a word.
pub(crate) const STREAMS: usize = u64::BITS as usize;
const LOG2: u32 = 5;
const WORDS: usize = 32;
const NONE: u32 = u32::MAX;

/// What a block waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wait {
    /// A bit for every stream; none: the block is ready.
    pub(crate) streams: u64,
    /// That all of them must come to.
    pub(crate) ticket: Ticket,
}

impl Wait {
    /// What the block waits for of these of its streams only.
    pub(crate) fn only(self, streams: u64) -> Wait {
        match self.streams & streams {
            0 => Wait::default(),
            streams => Wait { streams, ..self },
        }
    }
}

impl Waits for Wait {
    fn and(self, other: Wait) -> Wait {
        Wait {
            streams: self.streams | other.streams,
            ticket: self.ticket.max(other.ticket),
        }
    }
}

/// What is known of a record's block beside its record.
#[derive(Clone, Copy, Debug)]
struct Side {
    /// Of a free block; of one in use the streams that use it.
    wait: Wait,
    next: u32,
    previous: u32,
}

/// The class lists of a set.
#[derive(Clone, Debug)]
struct Bits {
    top: u32,
    words: [u32; WORDS],
}

impl Bits {
    /// The first non-empty class above `class`.
    fn first_above(&self, class: usize) -> Option<usize> {
        let (word, bit) = (class >> LOG2, class as u32 & 31);
        let bits = self.words[word] & (u32::MAX - 1) << bit;
        if bits != 0 {
            return Some((word << LOG2) + bits.trailing_zeros() as usize);
        }
        let later = self.top & (u32::MAX - 1) << word;
        if later == 0 {
            return None;
        }
        let word = later.trailing_zeros() as usize;
        Some((word << LOG2) + self.words[word].trailing_zeros() as usize)
    }

    fn set(&mut self, class: usize) {
        self.words[class >> LOG2] |= 1 << (class & 31);
        self.top |= 1 << (class >> LOG2);
    }

    fn clear(&mut self, class: usize) {
        let word = &mut self.words[class >> LOG2];
        *word &= !(1 << (class & 31));
        if *word == 0 {
            self.top &= !(1 << (class >> LOG2));
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Queue {
    first: u32,
    last: u32,
}

/// The store of such a heap.
pub(crate) type Records = Ledger<'static, ByHandle, UnitRecord>;

/// The index of a heap whose blocks wait for streams.
#[derive(Debug)]
pub(crate) struct StreamLists {
    streams: usize,
    /// Lists of a set.
    classes: usize,
    /// By stream, then the ready one, then that of several.
    bits: Box<[Bits]>,
    queues: Box<[Queue]>,
    sides: Box<[Side]>,
    /// The stream that allocates.
    current: usize,
    /// What the blocks that are taken, removed and inserted wait for, together.
    merging: Wait,
}

impl StreamLists {
    /// Lists of a heap of so many granules and records beside the heads, whose blocks wait for
    /// up to `streams` streams.
    pub(crate) fn new(granules: usize, records: usize, streams: usize) -> Self {
        debug_assert!(streams <= STREAMS);
        let classes = class_floor(granules, LOG2) + 1;
        let sets = streams + 2;
        let none = Bits {
            top: 0,
            words: [0; WORDS],
        };
        let empty = Queue {
            first: NONE,
            last: NONE,
        };
        let side = Side {
            wait: Wait::default(),
            next: NONE,
            previous: NONE,
        };
        StreamLists {
            streams,
            classes,
            bits: vec![none; sets].into_boxed_slice(),
            queues: vec![empty; sets].into_boxed_slice(),
            sides: vec![side; sets * classes + records].into_boxed_slice(),
            current: 0,
            merging: Wait::default(),
        }
    }

    fn ready(&self) -> usize {
        self.streams
    }

    fn several(&self) -> usize {
        self.streams + 1
    }

    /// The set of a block that waits for these streams.
    fn set_of(&self, streams: u64) -> usize {
        match streams.count_ones() {
            0 => self.ready(),
            1 => streams.trailing_zeros() as usize,
            _ => self.several(),
        }
    }

    /// Before an allocation: for which stream.
    pub(crate) fn allocate_for(&mut self, stream: usize) {
        self.current = stream;
        self.merging = Wait::default();
    }

    /// After an allocation: for whom.
    pub(crate) fn owned_by(&mut self, record: usize, owner: usize) {
        self.sides[record].wait = Wait {
            streams: 1 << owner,
            // Waits for no ticket while it is in use.
            ticket: owner as u64,
        };
    }

    /// Another stream uses a block in use.
    pub(crate) fn use_by(&mut self, record: usize, stream: usize) {
        self.sides[record].wait.streams |= 1 << stream;
    }

    /// The streams that use a block in use.
    pub(crate) fn users(&self, record: usize) -> u64 {
        self.sides[record].wait.streams
    }

    /// For whom a block in use was allocated.
    pub(crate) fn owner(&self, record: usize) -> usize {
        self.sides[record].wait.ticket as usize
    }

    /// Before a free: what the block will wait for.
    pub(crate) fn free_with(&mut self, wait: Wait) {
        self.merging = wait;
    }

    /// Sets of lists.
    pub(crate) fn sets(&self) -> usize {
        self.queues.len()
    }

    /// What the longest waiting block of a set waits for.
    pub(crate) fn front(&self, set: usize) -> Option<Wait> {
        let side = self.sides.get(self.queues[set].first as usize)?;
        Some(side.wait)
    }

    /// Files the longest waiting block of a set anew, for what it waits for instead; without
    /// that it moves one of several streams to the end of the queue, so that it does not hold
    /// up the others. O(1).
    pub(crate) fn advance(&mut self, store: &mut Records, set: usize, instead: Option<Wait>) {
        let record = self.queues[set].first as usize;
        let Some(block) = store.free_block(record) else {
            debug_assert_eq!(self.queues[set].first, NONE, "what waits is free");
            return;
        };
        let Some(wait) = instead else {
            if set == self.several() {
                self.leave_queue(record, set);
                self.enter_queue(record, set);
            }
            return;
        };
        let size = store.header(block).size;
        self.remove(store, block, size);
        self.merging = wait;
        self.insert(store, block, size);
    }

    /// Waits for the streams no longer: blocks that wait for nobody else are ready. Linear.
    pub(crate) fn forget(&mut self, store: &mut Records, streams: u64) {
        for set in [streams.trailing_zeros() as usize, self.several()] {
            // What waits on stands at the end of the queue afterwards.
            for _ in 0..self.queued(set) {
                let wait = self.front(set).map(|wait| wait.only(!streams));
                self.advance(store, set, wait);
            }
        }
    }

    fn queued(&self, set: usize) -> usize {
        let mut record = self.queues[set].first;
        let mut count = 0;
        while record != NONE {
            count += 1;
            record = self.sides[record as usize].next;
        }
        count
    }

    fn enter_queue(&mut self, record: usize, set: usize) {
        let last = self.queues[set].last;
        self.sides[record].next = NONE;
        self.sides[record].previous = last;
        match last {
            NONE => self.queues[set].first = record as u32,
            last => self.sides[last as usize].next = record as u32,
        }
        self.queues[set].last = record as u32;
    }

    fn leave_queue(&mut self, record: usize, set: usize) {
        let Side { next, previous, .. } = self.sides[record];
        match previous {
            NONE => self.queues[set].first = next,
            previous => self.sides[previous as usize].next = next,
        }
        match next {
            NONE => self.queues[set].last = previous,
            next => self.sides[next as usize].previous = previous,
        }
    }

    /// A block of the set that serves, still in its list.
    fn search(
        &self,
        store: &Records,
        set: usize,
        granules: usize,
        need: usize,
    ) -> Option<LedgerBlock> {
        let head = store.head(set * self.classes + class_floor(granules, LOG2));
        let mut block = store.next(head);
        for _ in 0..PROBES {
            if block == head {
                break;
            }
            if store.header(block).size >= need {
                return Some(block);
            }
            block = store.next(block);
        }
        let class = self.bits[set].first_above(class_below(granules, LOG2))?;
        Some(store.next(store.head(set * self.classes + class)))
    }

    /// Whether every queue is linked both ways and has blocks of its set alone. Linear.
    pub(crate) fn queues_are_sound(&self) -> bool {
        self.queues.iter().enumerate().all(|(set, queue)| {
            let (mut record, mut previous) = (queue.first, NONE);
            while record != NONE {
                let side = &self.sides[record as usize];
                if side.previous != previous || self.set_of(side.wait.streams) != set {
                    return false;
                }
                previous = record;
                record = side.next;
            }
            queue.last == previous && (set != self.ready() || queue.first == NONE)
        })
    }
}

// SAFETY: lists are changed in `insert`, `remove` and `take` only, with the block that the heap
// passed or the first of a list that its bitmap says is not empty; `advance` removes and
// inserts the same block.
unsafe impl Index<Records> for StreamLists {
    fn heads(&mut self, span: usize, geometry: Geometry) -> Option<usize> {
        let classes = class_floor(geometry.granules(span), LOG2) + 1;
        (classes <= self.classes).then_some(self.bits.len() * self.classes)
    }

    fn insert(&mut self, store: &mut Records, block: LedgerBlock, size: usize) {
        let wait = self.merging;
        let set = self.set_of(wait.streams);
        self.sides[block.record()].wait = wait;
        if set != self.ready() {
            self.enter_queue(block.record(), set);
        }
        let class = class_floor(store.geometry().granules(size), LOG2);
        let head = store.head(set * self.classes + class);
        let next = store.next(head);
        store.set_next(block, next);
        store.set_previous(block, head);
        store.set_previous(next, block);
        store.set_next(head, block);
        self.bits[set].set(class);
    }

    fn remove(&mut self, store: &mut Records, block: LedgerBlock, _size: usize) {
        let wait = self.sides[block.record()].wait;
        let set = self.set_of(wait.streams);
        self.merging = self.merging.and(wait);
        if set != self.ready() {
            self.leave_queue(block.record(), set);
        }
        let (next, previous) = (store.next(block), store.previous(block));
        store.set_previous(next, previous);
        store.set_next(previous, next);
        if next == previous {
            // Both are the head: the list is empty.
            let class = store.head_number(previous) - set * self.classes;
            self.bits[set].clear(class);
        }
    }

    fn take(&mut self, store: &mut Records, need: usize) -> Option<(LedgerBlock, usize)> {
        let granules = store.geometry().granules(need);
        // Requests are bounded by the span, which has the last of the classes.
        if class_floor(granules, LOG2) >= self.classes {
            return None;
        }
        let block = self
            .search(store, self.current, granules, need)
            .or_else(|| self.search(store, self.ready(), granules, need))?;
        let size = store.header(block).size;
        self.remove(store, block, size);
        Some((block, size))
    }

    fn each(&self, store: &Records, visit: &mut dyn FnMut(LedgerBlock) -> bool) -> bool {
        (0..self.bits.len()).all(|set| {
            (0..self.classes).all(|class| {
                let head = store.head(set * self.classes + class);
                let (mut block, mut before) = (store.next(head), head);
                let bit = self.bits[set].words[class >> LOG2] >> (class & 31) & 1 == 1;
                if bit != (block != head) {
                    return false;
                }
                while block != head {
                    let granules = store.geometry().granules(store.header(block).size);
                    let filed = self.set_of(self.users(block.record())) == set
                        && class_floor(granules, LOG2) == class;
                    if store.previous(block) != before || !filed || !visit(block) {
                        return false;
                    }
                    before = block;
                    block = store.next(block);
                }
                store.previous(head) == before
            })
        })
    }
}
