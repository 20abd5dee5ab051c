//! The compact form of a trace that replays stream: 16 bytes an event.
//!
//! A trace names blocks by serial number; a replay needs a small table of what
//! each live block holds. So serials become *slots* here, once: a slot is free
//! again when its block is, and the table stays as small as the peak of live
//! blocks.
//!
//! What the program did to its blocks does not concern an allocator, but it
//! does the memory that they lie in. It is kept beside the events, where it was
//! recorded: with the event that ends a block's stay at its place. Rows of
//! accesses in between are added to that event, for a block has not moved since.
//!
//! Invariant: every free and resize names a slot that is live at that event,
//! every allocation one that is not.

use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};

/// What an event does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// A block is requested.
    Allocate,
    /// A block is given back.
    Free,
    /// A block changes its size, and perhaps its place.
    Resize,
}

/// One event: an operation on the block in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    size: u64,
    slot: u32,
    /// Operation in the low 8 bits, log2 of the alignment above.
    code: u32,
}

impl Event {
    /// What happens.
    #[inline(always)]
    pub const fn operation(self) -> Operation {
        match self.code & 0xff {
            0 => Operation::Allocate,
            1 => Operation::Free,
            _ => Operation::Resize,
        }
    }

    /// Which entry of the table of live blocks it concerns.
    #[inline(always)]
    pub const fn slot(self) -> u32 {
        self.slot
    }

    /// Requested bytes, never zero but for a free.
    #[inline(always)]
    pub const fn size(self) -> usize {
        self.size as usize
    }

    /// Requested alignment in bytes, a power of two.
    #[inline(always)]
    pub const fn align(self) -> usize {
        1 << (self.code >> 8)
    }
}

/// What the program did to a block, in words of the trace's `access_word`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accesses {
    /// Words read.
    pub reads: u64,
    /// Words written.
    pub writes: u64,
}

impl Accesses {
    /// Neither read nor written.
    pub const NONE: Accesses = Accesses {
        reads: 0,
        writes: 0,
    };

    fn add(&mut self, other: Accesses) {
        self.reads += other.reads;
        self.writes += other.writes;
    }
}

/// Why rows are not a trace of a heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventError {
    /// A free or resize of a block that is not live.
    NotLive {
        /// The event's position, counted from zero.
        event: u64,
        /// The block's serial number.
        block: u64,
    },
    /// An allocation of a block that is live already.
    StillLive {
        /// The event's position, counted from zero.
        event: u64,
        /// The block's serial number.
        block: u64,
    },
    /// An alignment that is no power of two.
    Alignment {
        /// The event's position, counted from zero.
        event: u64,
        /// The alignment.
        align: u64,
    },
    /// More than 2³² blocks are live at once.
    TooManyLive,
}

impl fmt::Display for EventError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            EventError::NotLive { event, block } => write!(
                f,
                "event {event} frees or resizes block {block}, which is not allocated; \
                 is the beginning of the trace missing?"
            ),
            EventError::StillLive { event, block } => write!(
                f,
                "event {event} allocates block {block}, which is still allocated; \
                 blocks need serial numbers, not addresses"
            ),
            EventError::Alignment { event, align } => {
                write!(
                    f,
                    "event {event} asks for alignment {align}, which is no power of two"
                )
            }
            EventError::TooManyLive => f.write_str("more than 2^32 blocks are live at once"),
        }
    }
}

impl std::error::Error for EventError {}

/// A trace ready to be replayed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Events {
    events: Vec<Event>,
    slots: usize,
    peak_live: u64,
    allocations: u64,
    frees: u64,
    resizes: u64,
    /// By event; empty unless some were recorded.
    accesses: Vec<Accesses>,
    /// Those of blocks that the trace does not free, by slot.
    left: Vec<(u32, Accesses)>,
    application: Accesses,
    access_word: u32,
    instructions: u64,
    /// Events before those whose cost counts.
    counted: usize,
}

impl Events {
    /// No events, and a table for so many live blocks.
    pub(crate) fn room_for(slots: usize) -> Self {
        Events {
            slots,
            ..Events::default()
        }
    }

    /// The events in order.
    pub fn as_slice(&self) -> &[Event] {
        &self.events
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.events.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Entries that a table of live blocks needs: the most blocks live at once.
    pub fn slots(&self) -> usize {
        self.slots
    }

    /// Largest sum of requested bytes of live blocks.
    pub fn peak_live(&self) -> u64 {
        self.peak_live
    }

    /// These events, of which the first `counted` only bring a heap into a state: what they cost is
    /// not counted.
    pub(crate) fn counted_from(mut self, counted: usize) -> Self {
        self.counted = counted;
        self
    }

    /// Position of the first event whose cost counts.
    pub(crate) fn counted(&self) -> usize {
        self.counted
    }

    /// Number of allocations.
    pub fn allocations(&self) -> u64 {
        self.allocations
    }

    /// Number of frees.
    pub fn frees(&self) -> u64 {
        self.frees
    }

    /// Number of resizes.
    pub fn resizes(&self) -> u64 {
        self.resizes
    }

    /// What the program did to the block of each event since its last
    /// allocation or resize; empty where the trace has none.
    pub fn accesses(&self) -> &[Accesses] {
        &self.accesses
    }

    /// What it did to blocks that the trace does not free, by rising slot.
    pub fn left(&self) -> &[(u32, Accesses)] {
        &self.left
    }

    /// What it did to all blocks together: the same on every heap.
    pub fn application(&self) -> Accesses {
        self.application
    }

    /// Bytes of the words in which accesses are counted; 0 when the trace has
    /// no accesses.
    pub fn access_word(&self) -> u32 {
        self.access_word
    }

    /// Instructions that the program executed outside of the heap's functions;
    /// 0 when not known.
    pub fn instructions(&self) -> u64 {
        self.instructions
    }
}

impl TryFrom<&metes_trace::Trace> for Events {
    type Error = EventError;

    /// The events of a trace; the rows of accesses become part of the next free
    /// or resize of their block. Expected O(events).
    fn try_from(trace: &metes_trace::Trace) -> Result<Self, EventError> {
        let provenance = &trace.provenance;
        let mut builder = EventsBuilder::new();
        builder.recorded(provenance.access_word, provenance.instructions);
        for event in trace.iter() {
            let accesses = Accesses {
                reads: event.reads,
                writes: event.writes,
            };
            let operation = match event.op {
                metes_trace::Op::Alloc => Operation::Allocate,
                metes_trace::Op::Free => Operation::Free,
                metes_trace::Op::Resize => Operation::Resize,
                metes_trace::Op::Access => {
                    builder.access(event.block, accesses)?;
                    continue;
                }
            };
            if operation != Operation::Allocate {
                builder.access(event.block, accesses)?;
            }
            builder.push(operation, event.block, event.size, u64::from(event.align))?;
        }
        Ok(builder.finish())
    }
}

/// Hash of a block's number: one multiplication, whose high bits are the good ones.
#[derive(Clone, Copy, Debug, Default)]
struct BlockHasher(u64);

impl Hasher for BlockHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(self.0 ^ u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = value.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(20);
    }
}

/// Blocks by number.
type Blocks<T> = HashMap<u64, T, BuildHasherDefault<BlockHasher>>;

/// Makes [`Events`] of rows that name blocks by serial number.
#[derive(Debug, Default)]
pub struct EventsBuilder {
    events: Events,
    live: Blocks<(u32, u64)>,
    spare: Vec<u32>,
    live_bytes: u64,
    /// Accesses to live blocks since their last event.
    pending: Blocks<Accesses>,
}

impl EventsBuilder {
    /// No rows yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says how accesses were counted: bytes of a word (0: not at all), and the
    /// instructions of the program (0: not known).
    pub fn recorded(&mut self, access_word: u32, instructions: u64) {
        self.events.access_word = access_word;
        self.events.instructions = instructions;
    }

    /// Adds what the program did to a live block since its last row. Expected
    /// O(1).
    ///
    /// # Errors
    /// [`EventError::NotLive`] when the block is not live.
    pub fn access(&mut self, block: u64, accesses: Accesses) -> Result<(), EventError> {
        if accesses == Accesses::NONE {
            return Ok(());
        }
        if !self.live.contains_key(&block) {
            let event = self.events.events.len() as u64;
            return Err(EventError::NotLive { event, block });
        }
        self.pending.entry(block).or_default().add(accesses);
        self.events.application.add(accesses);
        Ok(())
    }

    /// Adds a row. Size 0 is served as size 1, as malloc layers do; alignment 0
    /// says that the program asked for none. Expected O(1).
    ///
    /// # Errors
    /// [`EventError`] when the row contradicts those before it; it is not added.
    pub fn push(
        &mut self,
        operation: Operation,
        block: u64,
        size: u64,
        align: u64,
    ) -> Result<(), EventError> {
        let event = self.events.events.len() as u64;
        let align = align.max(1);
        if !align.is_power_of_two() {
            return Err(EventError::Alignment { event, align });
        }
        let size = size.max(1);
        let slot = match operation {
            Operation::Allocate => {
                if self.live.contains_key(&block) {
                    return Err(EventError::StillLive { event, block });
                }
                let slot = match self.spare.pop() {
                    Some(slot) => slot,
                    None => {
                        let next = u32::try_from(self.events.slots)
                            .map_err(|_| EventError::TooManyLive)?;
                        self.events.slots += 1;
                        next
                    }
                };
                self.live.insert(block, (slot, size));
                self.live_bytes += size;
                self.events.allocations += 1;
                slot
            }
            Operation::Free => {
                let (slot, held) = self
                    .live
                    .remove(&block)
                    .ok_or(EventError::NotLive { event, block })?;
                self.spare.push(slot);
                self.live_bytes -= held;
                self.events.frees += 1;
                slot
            }
            Operation::Resize => {
                let (slot, held) = self
                    .live
                    .get_mut(&block)
                    .ok_or(EventError::NotLive { event, block })?;
                self.live_bytes = self.live_bytes - *held + size;
                *held = size;
                self.events.resizes += 1;
                *slot
            }
        };
        self.events.peak_live = self.events.peak_live.max(self.live_bytes);
        let size = if operation == Operation::Free {
            0
        } else {
            size
        };
        if !self.pending.is_empty()
            && let Some(accesses) = self.pending.remove(&block)
        {
            // Events since the last one with accesses had none.
            let before = self.events.events.len();
            self.events.accesses.resize(before, Accesses::NONE);
            self.events.accesses.push(accesses);
        }
        self.events.events.push(Event {
            size,
            slot,
            code: operation as u32 | align.trailing_zeros() << 8,
        });
        Ok(())
    }

    /// The events of all rows added.
    pub fn finish(self) -> Events {
        let EventsBuilder {
            mut events,
            live,
            pending,
            ..
        } = self;
        let left = pending
            .into_iter()
            .filter_map(|(block, accesses)| Some((live.get(&block)?.0, accesses)));
        events.left = left.collect();
        events.left.sort_unstable_by_key(|&(slot, _)| slot);
        events
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_used_again_and_contradictions_refused() {
        let mut builder = EventsBuilder::new();
        builder.push(Operation::Allocate, 7, 0, 0).unwrap();
        builder.push(Operation::Allocate, 9, 100, 64).unwrap();
        builder.push(Operation::Free, 7, 0, 0).unwrap();
        builder.push(Operation::Allocate, 8, 5, 1).unwrap();
        builder.push(Operation::Resize, 9, 300, 16).unwrap();
        let refused = builder.push(Operation::Free, 7, 0, 0);
        assert_eq!(refused, Err(EventError::NotLive { event: 5, block: 7 }));
        let refused = builder.push(Operation::Allocate, 9, 1, 1);
        assert_eq!(refused, Err(EventError::StillLive { event: 5, block: 9 }));
        let refused = builder.push(Operation::Allocate, 10, 1, 24);
        assert_eq!(
            refused,
            Err(EventError::Alignment {
                event: 5,
                align: 24
            })
        );
        let events = builder.finish();
        assert_eq!(
            (events.slots(), events.peak_live(), events.len()),
            (2, 305, 5)
        );
        let last = events.as_slice()[4];
        assert_eq!(
            (last.operation(), last.size(), last.align()),
            (Operation::Resize, 300, 16)
        );
        assert_eq!(events.as_slice()[0].size(), 1, "size 0 is served as size 1");
        assert_eq!(events.as_slice()[3].slot(), 0, "the slot of block 7");
        assert_eq!(size_of::<Event>(), 16);
    }
}
