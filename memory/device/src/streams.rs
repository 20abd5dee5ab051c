//! A heap for memory that issued work still uses: what is freed waits for its streams.
//!
//! Whoever issues work to a stream and frees its memory at once frees it *in the order of the
//! stream*: the next request of the same stream gets it at once, since its work runs behind.
//! Another stream gets it once the first has come that far. For that the heap marks streams
//! with [tickets](crate::backend::timeline), one for all the frees of some time, and asks how
//! far they came when a request finds nothing else.
//!
//! At the end of memory it waits for the oldest tickets, one after another and only until the
//! request fits; then it asks the program to give something back; then it says who holds what.
//!
//! **Time.** A request or a free that waits for nobody is O(1): it files at most
//! [`STEPS`] waiting blocks anew. One that waits takes as long as the device.
//!
//! Invariant: a block is given to a stream only if every stream that used it before is that
//! stream itself, or has come to the ticket that was marked after the free.

pub(crate) mod lists;

use core::fmt;

use metes_heap::store::ledger::Handle;
use metes_heap::{BadFree, ByHandle, Corruption};

use crate::backend::timeline::{self, Stream, Ticket, Timeline};
use crate::heap::{Block, Extent, ListHeap, OffsetHeap, Refusal, Span, Unmade};
use crate::sparse::SparseRefusal;

use lists::{Records, STREAMS, StreamLists, Wait};

/// Waiting blocks that one request or free files anew, at most.
pub const STEPS: usize = 4;

/// Gives memory back that the program can do without: called with the bytes that are wanted,
/// it says whether it freed something since, by [`StreamHeap::free`] on the heap it gets.
pub type Reclaim<T> = Box<dyn FnMut(&mut StreamHeap<T>, u64) -> bool + Send>;

/// Why a stream-ordered heap was not made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoStreams {
    /// More streams than can be told apart.
    #[error("the timeline follows {0} streams: make it for 1 to 64")]
    Streams(usize),
    /// The heap was not made.
    #[error(transparent)]
    Heap(#[from] Unmade),
}

/// Why a request was refused, or a free. No block is lost.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamError {
    /// The request can never be served, or not with so many blocks in use.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// No memory is left, after everything was waited for; [`StreamHeap::holders`] says who
    /// has it.
    #[error(
        "no block of {wanted} bytes is left for stream {stream}: of {total} bytes {in_use} are \
         in use, {own} of them by this stream; free some, or make the heap larger"
    )]
    OutOfMemory {
        /// Bytes asked for.
        wanted: u64,
        /// For whom.
        stream: Stream,
        /// Bytes of the heap.
        total: u64,
        /// Requested, of all blocks in use.
        in_use: u64,
        /// Of the stream's own.
        own: u64,
    },
    /// No block in use has the place.
    #[error(transparent)]
    BadFree(#[from] BadFree),
    /// The timeline refused.
    #[error(transparent)]
    Timeline(#[from] timeline::Error),
    /// There is no memory for the pages of the block.
    #[error(transparent)]
    Pages(#[from] SparseRefusal),
}

/// How memory comes from one stream to another that needs it before the first came far enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Crossing {
    /// The host waits for the first.
    Wait,
    /// The device lets the second run behind the first; the host goes on.
    Order,
}

/// How a heap treats its streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Streams {
    /// Streams are marked after so many frees, 1 at least: more makes fewer events and later
    /// reuse.
    pub batch: u32,
    /// What happens when nothing else is left.
    pub crossing: Crossing,
}

/// What a heap has had to do for its streams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Marks of a stream.
    pub marks: u64,
    /// Waits of the host.
    pub waits: u64,
    /// Streams ordered behind another.
    pub orders: u64,
}

/// What is in use of a slot of the timeline.
#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    stream: Option<Stream>,
    /// Requested, of the blocks that were allocated for whom the slot had.
    bytes: u64,
    blocks: u64,
    /// The last ticket that it was marked with.
    marked: Ticket,
}

/// A heap over a range of device memory whose frees are ordered by streams.
pub struct StreamHeap<T: Timeline> {
    heap: ListHeap<ByHandle, StreamLists>,
    timeline: T,
    slots: Box<[Slot]>,
    options: Streams,
    /// The ticket that frees get from now on.
    next: Ticket,
    /// Streams with frees of that ticket, which they are not marked with.
    open: u64,
    /// Frees since the last mark.
    frees: u32,
    reclaim: Option<Reclaim<T>>,
    progress: Progress,
}

impl<T: Timeline> fmt::Debug for StreamHeap<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("StreamHeap")
            .field("heap", &self.heap)
            .field("timeline", &self.timeline)
            .field("next", &self.next)
            .field("open", &self.open)
            .field("progress", &self.progress)
            .finish_non_exhaustive()
    }
}

impl<T: Timeline> StreamHeap<T> {
    /// A heap over `extent` whose streams `timeline` follows. Beside the heap's own it takes 24
    /// bytes for every record, and lists for every stream. O(blocks).
    ///
    /// # Errors
    /// [`NoStreams`].
    pub fn new(extent: Extent, timeline: T, options: Streams) -> Result<Self, NoStreams> {
        let streams = timeline.streams();
        if streams == 0 || streams > STREAMS {
            return Err(NoStreams::Streams(streams));
        }
        let heap = ListHeap::with_index(extent, |records| {
            let granules = (extent.bytes / extent.granule) as usize;
            StreamLists::new(granules, records, streams)
        })?;
        Ok(StreamHeap {
            heap,
            timeline,
            slots: vec![Slot::default(); streams].into_boxed_slice(),
            options,
            next: 1,
            open: 0,
            frees: 0,
            reclaim: None,
            progress: Progress::default(),
        })
    }

    /// Has `reclaim` asked when memory is out, before a request is refused.
    pub fn on_out_of_memory(&mut self, reclaim: Reclaim<T>) {
        self.reclaim = Some(reclaim);
    }

    /// Allocates `bytes` bytes at a multiple of `align` for work of `stream`, and waits for
    /// other streams only if there is no other way.
    ///
    /// # Errors
    /// [`StreamError`]. A stream that is being captured into a graph is refused: the graph
    /// would use the block whenever it runs, whoever has it then. Allocate before the capture.
    pub fn allocate(
        &mut self,
        stream: Stream,
        bytes: u64,
        align: u64,
    ) -> Result<Block<Handle>, StreamError> {
        self.know(stream)?;
        if self.timeline.capturing(stream)? {
            return Err(timeline::Error::Capturing(stream).into());
        }
        loop {
            match self.take(stream, bytes, align) {
                Err(Refusal::NoBlock { .. }) => {}
                done => return Ok(done?),
            }
            self.mark()?;
            if self.poll()? || self.cross(stream)? {
                continue;
            }
            let Some(mut reclaim) = self.reclaim.take() else {
                return Err(self.out_of_memory(stream, bytes));
            };
            let freed = reclaim(self, bytes);
            self.reclaim.get_or_insert(reclaim);
            if !freed {
                return Err(self.out_of_memory(stream, bytes));
            }
        }
    }

    /// Allocates from what is ready or waits for the stream alone.
    fn take(&mut self, stream: Stream, bytes: u64, align: u64) -> Result<Block<Handle>, Refusal> {
        let slot = stream.slot();
        self.file(|index, _| index.allocate_for(slot));
        let block = self.heap.allocate(bytes, align)?;
        if let Ok(record) = self.heap.record(block.place) {
            self.file(|index, _| index.owned_by(record, slot));
        }
        self.slots[slot].bytes += bytes;
        self.slots[slot].blocks += 1;
        Ok(block)
    }

    /// Notes that work of `stream` uses a block beside the stream that it was allocated for:
    /// once it is freed it waits for both. O(1).
    ///
    /// # Errors
    /// [`StreamError::BadFree`] for a place of no block in use, [`StreamError::Timeline`].
    pub fn use_on(&mut self, place: Handle, stream: Stream) -> Result<(), StreamError> {
        self.know(stream)?;
        let record = self.heap.record(place)?;
        self.file(|index, _| index.use_by(record, stream.slot()));
        Ok(())
    }

    /// Frees a block that work issued until now may still use, on the streams that use it.
    /// O(1), but for the marks of a full batch.
    ///
    /// # Errors
    /// [`StreamError::BadFree`]: nothing happened. [`StreamError::Timeline`]: the block is
    /// freed and waits, and what could not be marked is with the next batch.
    pub fn free(&mut self, place: Handle) -> Result<(), StreamError> {
        self.give_back(place)?;
        self.after_free()
    }

    /// Frees a block; returns where it was and what it waits for.
    pub(crate) fn give_back(&mut self, place: Handle) -> Result<(Span, Wait), BadFree> {
        let record = self.heap.record(place)?;
        let span = self.heap.span(place)?;
        let ticket = self.next;
        let (wait, owner) = self.file(|index, _| {
            let streams = index.users(record);
            let wait = Wait { streams, ticket };
            let owner = index.owner(record);
            index.free_with(wait);
            (wait, owner)
        });
        self.heap.free(place)?;
        self.slots[owner].bytes -= span.requested;
        self.slots[owner].blocks -= 1;
        self.open |= wait.streams;
        self.frees += 1;
        Ok((span, wait))
    }

    /// Marks the streams when a batch is full.
    pub(crate) fn after_free(&mut self) -> Result<(), StreamError> {
        if self.frees >= self.options.batch {
            self.mark()?;
            self.poll()?;
        }
        Ok(())
    }

    /// Waits on the host until nobody is to be waited for any more.
    pub(crate) fn settle(&mut self, wait: Wait) -> Result<(), timeline::Error> {
        let marked = |heap: &Self| bits(wait.streams).all(|slot| heap.is_marked(slot, wait.ticket));
        if !marked(self)
            && let Err(StreamError::Timeline(error)) = self.mark()
        {
            return Err(error);
        }
        for slot in bits(wait.streams) {
            let Slot {
                stream,
                marked: last,
                ..
            } = self.slots[slot];
            let Some(stream) = stream else { continue };
            if !self.is_marked(slot, wait.ticket) {
                return Err(timeline::Error::Capturing(stream));
            }
            self.timeline.wait(stream, wait.ticket.min(last))?;
            self.progress.waits += 1;
        }
        Ok(())
    }

    /// Calls `visit` with every block in use. Linear.
    pub(crate) fn each_used(&self, visit: &mut dyn FnMut(Span)) {
        self.heap.each_used(visit);
    }

    /// Marks the streams that were freed on since they were marked last. A stream that is being
    /// captured cannot be marked, and is with the next batch.
    ///
    /// # Errors
    /// [`StreamError::Timeline`]; streams that could not be marked are with the next batch.
    pub fn mark(&mut self) -> Result<(), StreamError> {
        self.frees = 0;
        if self.open == 0 {
            return Ok(());
        }
        let ticket = self.next;
        // What is not marked now is marked with a greater ticket, which serves as well.
        self.next += 1;
        let mut first = None;
        for slot in bits(self.open) {
            let Some(stream) = self.slots[slot].stream else {
                // It left, after all its work.
                self.open &= !(1 << slot);
                continue;
            };
            match self.timeline.mark(stream, ticket) {
                Ok(()) => {
                    self.slots[slot].marked = ticket;
                    self.open &= !(1 << slot);
                    self.progress.marks += 1;
                }
                Err(timeline::Error::Capturing(_)) => {}
                Err(error) => first = first.or(Some(error)),
            }
        }
        first.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Asks how far the streams came, and files anew up to [`STEPS`] blocks of every stream, and
    /// of several, that have fewer to wait for. Whether there were any.
    ///
    /// # Errors
    /// [`StreamError::Timeline`]; blocks wait on.
    pub fn poll(&mut self) -> Result<bool, StreamError> {
        let mut came = [None; STREAMS];
        let mut any = false;
        for set in 0..self.heap.index().sets() {
            for _ in 0..STEPS {
                let Some(wait) = self.heap.index().front(set) else {
                    break;
                };
                let mut left = wait.streams;
                for slot in bits(wait.streams) {
                    if self.came(slot, wait.ticket, &mut came)? {
                        left &= !(1 << slot);
                    }
                }
                let fewer = left != wait.streams;
                self.advance(set, fewer.then_some(wait.only(left)));
                if !fewer {
                    break;
                }
                any = true;
            }
        }
        Ok(any)
    }

    /// Whether a slot's stream came to a ticket; asks each stream once.
    fn came(
        &mut self,
        slot: usize,
        ticket: Ticket,
        asked: &mut [Option<Ticket>; STREAMS],
    ) -> Result<bool, StreamError> {
        let Slot { stream, marked, .. } = self.slots[slot];
        let Some(stream) = stream else {
            // It left, after all its work.
            return Ok(true);
        };
        if !self.is_marked(slot, ticket) {
            return Ok(false);
        }
        let completed = match asked[slot] {
            Some(completed) => completed,
            None => self.timeline.completed(stream)?,
        };
        asked[slot] = Some(completed);
        Ok(completed >= ticket.min(marked))
    }

    /// Whether the stream was marked after its frees that got tickets up to this one.
    fn is_marked(&self, slot: usize, ticket: Ticket) -> bool {
        ticket <= self.slots[slot].marked || self.open >> slot & 1 == 0
    }

    /// See [`SparseStreamHeap::came`](crate::stream_pages::SparseStreamHeap::came).
    pub(crate) fn came_to(&self, slot: usize, known: Ticket) -> Ticket {
        let Some(Slot {
            stream: Some(_),
            marked,
            ..
        }) = self.slots.get(slot)
        else {
            // It left, after all its work.
            return Ticket::MAX;
        };
        match known >= *marked {
            true if self.is_marked(slot, Ticket::MAX) => Ticket::MAX,
            true => *marked,
            false => known,
        }
    }

    /// Gets `stream` the block that has waited longest for others. Whether there was one.
    fn cross(&mut self, stream: Stream) -> Result<bool, StreamError> {
        let own = 1 << stream.slot();
        let index = self.heap.index();
        let oldest = (0..index.sets())
            .filter_map(|set| Some((set, index.front(set)?)))
            // What waits for the stream itself serves it already, and what cannot be marked
            // cannot be waited for.
            .filter(|(_, wait)| wait.streams != own)
            .filter(|(_, wait)| {
                bits(wait.streams & !own).all(|slot| {
                    self.slots[slot].stream.is_none() || self.is_marked(slot, wait.ticket)
                })
            })
            .min_by_key(|(_, wait)| wait.ticket);
        let Some((set, wait)) = oldest else {
            return Ok(false);
        };
        for slot in bits(wait.streams & !own) {
            let Slot {
                stream: other,
                marked,
                ..
            } = self.slots[slot];
            let Some(other) = other else { continue };
            let ticket = wait.ticket.min(marked);
            match self.options.crossing {
                Crossing::Wait => {
                    self.timeline.wait(other, ticket)?;
                    self.progress.waits += 1;
                }
                Crossing::Order => {
                    self.timeline.order(stream, other, ticket)?;
                    self.progress.orders += 1;
                }
            }
        }
        let instead = match self.options.crossing {
            Crossing::Wait => wait.only(own),
            Crossing::Order => {
                // Whoever comes later waits for the stream that now runs behind them all.
                self.open |= own;
                Wait {
                    streams: own,
                    ticket: self.next,
                }
            }
        };
        self.advance(set, Some(instead));
        Ok(true)
    }

    /// Files the longest waiting block of a set anew.
    fn advance(&mut self, set: usize, instead: Option<Wait>) {
        self.file(|index, store| index.advance(store, set, instead));
    }

    /// Tells the index of streams, or has it file blocks anew.
    fn file<R>(&mut self, file: impl FnOnce(&mut StreamLists, &mut Records) -> R) -> R {
        // SAFETY: the methods of the index that are called here move blocks between its lists,
        // or change none.
        unsafe { self.heap.refile(file) }
    }

    /// Follows a stream from its first use on.
    fn know(&mut self, stream: Stream) -> Result<(), StreamError> {
        let slot = stream.slot();
        match self.slots.get(slot).map(|slot| slot.stream) {
            Some(Some(known)) if known == stream => Ok(()),
            None => Err(timeline::Error::NoStream(stream).into()),
            Some(before) => {
                // Does the timeline know it?
                self.timeline.completed(stream)?;
                let slots = &mut self.slots[slot];
                slots.stream = Some(stream);
                slots.marked = 0;
                if before.is_some() {
                    // It left without us: what waits for it waits for its successor.
                    self.open |= 1 << slot;
                }
                Ok(())
            }
        }
    }

    /// Waits for the work that frees on the stream wait for, and follows it no longer: to be
    /// called before the stream is destroyed. Linear in the blocks that wait for it.
    ///
    /// # Errors
    /// [`StreamError::Timeline`]: the stream is followed still. Where the device knows it no
    /// more, [`forget`](Self::forget) it.
    pub fn leave(&mut self, stream: Stream) -> Result<(), StreamError> {
        self.know(stream)?;
        self.mark()?;
        if self.open >> stream.slot() & 1 == 1 {
            return Err(timeline::Error::Capturing(stream).into());
        }
        self.timeline.leave(stream)?;
        self.forget(stream);
        Ok(())
    }

    /// Waits no more for a stream whose work is known to be over, for instance because it was
    /// destroyed after the device was idle. Linear in the blocks that wait for it.
    pub fn forget(&mut self, stream: Stream) {
        let slot = stream.slot();
        if self
            .slots
            .get(slot)
            .is_none_or(|slot| slot.stream != Some(stream))
        {
            return;
        }
        self.slots[slot].stream = None;
        self.open &= !(1 << slot);
        self.file(|index, store| index.forget(store, 1 << slot));
    }

    #[cold]
    fn out_of_memory(&self, stream: Stream, wanted: u64) -> StreamError {
        StreamError::OutOfMemory {
            wanted,
            stream,
            total: self.heap.extent().bytes,
            in_use: self.slots.iter().map(|slot| slot.bytes).sum(),
            own: self.slots[stream.slot()].bytes,
        }
    }

    /// Who holds the memory: streams, the bytes that were requested for them and are in use,
    /// and in how many blocks. No stream: whose stream left.
    pub fn holders(&self) -> impl Iterator<Item = (Option<Stream>, u64, u64)> + '_ {
        self.slots
            .iter()
            .filter(|slot| slot.blocks > 0)
            .map(|slot| (slot.stream, slot.bytes, slot.blocks))
    }

    /// Where a block in use is, and what was requested. O(1).
    ///
    /// # Errors
    /// [`BadFree`] for a place of no block in use.
    pub fn span(&self, place: Handle) -> Result<Span, BadFree> {
        self.heap.span(place)
    }

    /// The blocks that are still in use, in no order: what was leaked, when nothing should be.
    /// Linear.
    pub fn in_use(&self) -> Vec<Span> {
        let mut spans = Vec::new();
        self.each_used(&mut |span| spans.push(span));
        spans
    }

    /// What the heap manages.
    pub fn extent(&self) -> Extent {
        self.heap.extent()
    }

    /// Blocks in use.
    pub fn used(&self) -> usize {
        self.heap.used()
    }

    /// The timeline, to follow streams and to look at.
    pub fn timeline(&mut self) -> &mut T {
        &mut self.timeline
    }

    /// What the heap has had to do for its streams.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// Verifies every invariant. Linear.
    ///
    /// # Errors
    /// What is wrong with the heap.
    ///
    /// # Panics
    /// When the books of streams are wrong: an error of ours.
    pub fn check(&self) -> Result<(), Corruption> {
        self.heap.check()?;
        assert!(
            self.heap.index().queues_are_sound(),
            "queues of blocks that wait"
        );
        let blocks: u64 = self.slots.iter().map(|slot| slot.blocks).sum();
        assert_eq!(blocks, self.heap.used() as u64, "blocks in use");
        Ok(())
    }
}

/// The numbers of the bits that are set.
fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let bit = word.trailing_zeros();
        word &= word.wrapping_sub(1);
        (bit < u64::BITS).then_some(bit as usize)
    })
}
