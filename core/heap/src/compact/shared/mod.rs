//! `SharedCompactFit`: one compact-fit heap for several threads, 1-CF(κ, ι) of the slides.
//!
//! What is shared is guarded by three kinds of locks:
//!
//! - a *class* lock: the automaton of a size class, that is its counts, its lists of pages, and
//!   the records and bitmaps of its pages. Every transition is one critical section under it;
//! - what guards the *contents* of a page: bytes and records of the blocks in it, the entries
//!   of their handles, and the moves whose sources lie in it. That is the class lock again, or
//!   a lock of the page, as [`Granularity`] says;
//! - the *reserve*: pages of no class, spare handles, spare slots for moves, statistics.
//!
//! Lock order: class, then page, then reserve. Two class locks are held only to resize a block
//! from one class to another, the smaller class first; two page locks never. So nobody waits in
//! a circle.
//!
//! Invariants, beside those of [`CompactFit`](super::CompactFit): while no class lock is held,
//! every source of the class has its slot among the moves; a handle that resolves to a place
//! keeps doing so while the contents there are held; a page's class changes only while both its
//! old and its new class count nothing in it.
//!
//! A thread reads a handle's place, and the class of the place, without a lock; then locks; then
//! verifies both, and starts over if they have changed meanwhile.

mod access;
#[cfg(all(test, loom))]
mod interleavings;
mod locks;
mod moves;
mod resize;
#[cfg(all(test, not(loom)))]
mod tests;
mod verify;

use super::automaton::{Class, Slot, Transition};
use super::backing::{Backing, Place, RECORD, Record};
use super::cells::AtomicU32;
use super::entries::{Entries, Spare};
use super::handles::{BadHandle, Handle};
use super::layout::{Cursor, Tables};
use super::moving::{Copying, unique_identities};
use super::options::{GRANULE, Options, Unfit};
use super::refusal::Refused;
use super::table::{Supply, Table};
use crate::lock::Lock;
use crate::statistics::{Counters, Statistics};
use crate::store::tagged::Memory;
use locks::{Apart, Classes, Guarded};
use moves::{Moves, Under};

pub use moves::Compaction;

/// What a lock for the contents of blocks guards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Granularity {
    /// All blocks of a size class, with its automaton: one lock for an operation.
    Class,
    /// The blocks of one page: bytes are read, written and carried without the lock of the
    /// class, whose critical sections are then O(1) whatever ι is.
    Page,
}

/// How a heap is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sharing {
    /// What a lock for contents guards.
    pub granularity: Granularity,
    /// Threads that free at the same time: as many moves may be under way. A thread more
    /// carries whole page-blocks instead of increments, which is right but slow.
    pub threads: usize,
}

/// A block whose handle has ended.
struct Withdrawn {
    /// Its requested bytes.
    size: usize,
    /// The move of it that has ended, and its slot.
    under: Option<(u32, Under)>,
}

/// What all classes draw from.
#[derive(Debug)]
struct Reserve {
    supply: Supply,
    spare: Spare,
    /// First spare slot for a move.
    slot: u32,
    counters: Counters,
}

impl Reserve {
    /// What a new block takes: an entry, and a page if it `opens` one. O(1).
    fn take(
        &mut self,
        heap: &SharedCompactFit<impl Lock + 'static>,
        opens: bool,
    ) -> Option<(u32, Option<u32>)> {
        let Reserve { supply, spare, .. } = self;
        let entry = spare.take(&heap.entries, |bytes| {
            let limit = heap.backing.room(bytes);
            let fits = limit >= supply.extent;
            if fits {
                supply.limit = supply.limit.min(limit);
            }
            fits
        })?;
        if !opens {
            return Some((entry, None));
        }
        let page = supply.take(&heap.table);
        if page.is_none() {
            spare.put(&heap.entries, entry);
        }
        page.map(|page| (entry, Some(page)))
    }
}

/// Where a page-block of `bytes` begins.
fn place_of(page_log2: u32, bytes: u32, slot: Slot) -> Place {
    let page = slot.page << (page_log2 - GRANULE.trailing_zeros());
    page + slot.block * bytes / GRANULE as u32
}

/// A compact-fit heap that several threads use at once; see the [module](self) for its locks.
///
/// Every operation takes `&self`. Each increment of a move, at most ι bytes, is a critical
/// section of its own, so that others get in between.
///
/// *The rule of access*: [`read`](SharedCompactFit::read) and
/// [`write`](SharedCompactFit::write) by handle are atomic with respect to each other, to moves
/// and to frees, for any threads. For longer use, [`pin`](SharedCompactFit::pin) a block: its
/// address then stays good until it is unpinned as often; who accesses bytes behind the address
/// while others read or write them by handle or address has to exclude them.
///
/// ```
/// use core::mem::MaybeUninit;
/// use metes_heap::Memory;
/// use metes_heap::compact::{Granularity, Options, SharedCompactFit, Sharing};
/// use metes_heap::lock::Spin;
///
/// let memory: &'static mut [MaybeUninit<u8>] = Box::leak(Box::new_uninit_slice(1 << 20));
/// let sharing = Sharing { granularity: Granularity::Class, threads: 2 };
/// let memory = Memory::from_static(memory);
/// let heap = SharedCompactFit::new(&Options::DEFAULT, sharing, memory, Spin::new).unwrap();
/// std::thread::scope(|scope| {
///     let block = heap.allocate(5, 1).unwrap();
///     heap.write(block, 0, b"metes").unwrap();
///     scope.spawn(move || heap.free(block).unwrap());
/// });
/// ```
#[derive(Debug)]
pub struct SharedCompactFit<L: 'static> {
    backing: Copying,
    table: Table<'static>,
    classes: Classes<L>,
    /// Locks of pages; none where classes guard the contents.
    pages: &'static [L],
    /// Class by size of record and request, in granules.
    by_size: &'static [u8],
    reserve: Guarded<L, Reserve>,
    entries: Entries<AtomicU32>,
    moves: Moves,
    page_log2: u32,
    increment: usize,
    align: usize,
}

// SAFETY: what the cells and the memory hold is accessed as the module says: under the lock of
// a class, of a page, or of the reserve, or by `&mut self`. What is read without a lock is
// atomic, or written by nobody after construction (`by_size`).
unsafe impl<L: Lock + Sync + 'static> Sync for SharedCompactFit<L> {}
// SAFETY: the memory is the heap's alone (contract of `Memory`), and bound to no thread.
unsafe impl<L: Lock + Send + 'static> Send for SharedCompactFit<L> {}

impl<L: Lock + 'static> SharedCompactFit<L> {
    /// A heap in `memory`, with locks made by `lock`.
    ///
    /// # Errors
    /// [`Unfit`] when options contradict each other, or the memory is too small.
    pub fn new(
        options: &Options,
        sharing: Sharing,
        memory: Memory,
        lock: impl Fn() -> L,
    ) -> Result<Self, Unfit> {
        let identity = unique_identities(1).ok_or(Unfit::Identities)?;
        Self::with_identity(options, sharing, memory, lock, identity)
    }

    /// A heap whose handles name `identity`, which no other heap of the program has.
    pub(super) fn with_identity(
        options: &Options,
        sharing: Sharing,
        memory: Memory,
        lock: impl Fn() -> L,
        identity: u16,
    ) -> Result<Self, Unfit> {
        options.validate(RECORD)?;
        if sharing.threads == 0 {
            return Err(Unfit::Threads);
        }
        let partition = &options.partition;
        let count = partition.classes(RECORD).count();
        let mut cursor = Cursor::new(memory);
        let mut sizes = partition.classes(RECORD);
        let locks = cursor.slice(count, |_| Apart {
            lock: lock(),
            bytes: sizes.next().unwrap_or(0) as u32,
        })?;
        let pages = match sharing.granularity {
            Granularity::Class => 0,
            Granularity::Page => memory.bytes() / partition.page,
        };
        let pages = cursor.slice(pages, |_| lock())?;
        let moves = Moves::new(&mut cursor, sharing.threads)?;
        let mut tables = Tables::new(options, cursor.rest(), RECORD, partition.page)?;
        let page_log2 = partition.page.trailing_zeros();
        let backing = Copying {
            base: tables.base,
            space: tables.space,
            page_log2,
        };
        let limit = backing.room(0).min(tables.table.count());
        // SAFETY: the end of the memory; what lies before it is granted by `Reserve::take`.
        let entries = unsafe { Entries::new(tables.base.add(tables.space), identity) };
        let reserve = Reserve {
            supply: Supply::new(limit),
            spare: Spare::NONE,
            slot: 0,
            counters: Counters::NEW,
        };
        Ok(SharedCompactFit {
            backing,
            table: tables.table,
            classes: Classes::new(locks, &mut tables),
            pages,
            by_size: tables.by_size,
            reserve: Guarded::new(lock(), reserve),
            entries,
            moves,
            page_log2,
            increment: options.increment.unwrap_or(usize::MAX),
            align: tables.align,
        })
    }

    /// Where a page-block of a class begins.
    fn place(&self, class: &Class, slot: Slot) -> Place {
        place_of(self.page_log2, class.bytes, slot)
    }

    fn page_of(&self, place: Place) -> u32 {
        place >> (self.page_log2 - GRANULE.trailing_zeros())
    }

    /// The page-block at a place of a page of this class.
    fn slot(&self, class: &Class, place: Place) -> Slot {
        let page = self.page_of(place);
        let offset = (place as usize * GRANULE) & ((1 << self.page_log2) - 1);
        let block = class.block_at(offset);
        debug_assert!(block.is_some());
        Slot {
            page,
            block: block.unwrap_or(0),
        }
    }

    /// The class of a request.
    fn class_for(&self, size: usize, align: usize) -> Result<usize, Refused> {
        let granules = size.saturating_add(RECORD + GRANULE - 1) / GRANULE;
        let class = *self.by_size.get(granules).ok_or(Refused::TooLarge)?;
        if align <= GRANULE {
            return Ok(usize::from(class));
        }
        if align > self.align {
            return Err(Refused::Alignment);
        }
        (usize::from(class)..self.classes.count())
            .find(|&class| self.classes.bytes(class).is_multiple_of(align))
            .ok_or(Refused::Alignment)
    }

    /// Gives a page back.
    fn give(&self, number: u32) {
        self.reserve
            .hold(|reserve| reserve.supply.give(&self.table, number));
    }

    /// Allocates a block of `size` bytes aligned to `align`, a power of two. The bytes are
    /// what they were. O(1), O(moves) while moves of its class are under way, and the threads
    /// that wait for the same class.
    ///
    /// # Errors
    /// [`Refused`]; the heap is unchanged.
    pub fn allocate(&self, size: usize, align: usize) -> Result<Handle, Refused> {
        Ok(self.allocate_traced(size, align)?.0)
    }

    /// As [`allocate`](SharedCompactFit::allocate), and the transition of the class.
    ///
    /// # Errors
    /// As [`allocate`](SharedCompactFit::allocate).
    pub fn allocate_traced(
        &self,
        size: usize,
        align: usize,
    ) -> Result<(Handle, Transition), Refused> {
        self.class_for(size, align)
            .and_then(|index| {
                self.classes
                    .hold(index, |class| self.take(class, index, size))
                    .ok_or(Refused::Exhausted)
            })
            .inspect_err(|_| self.reserve.hold(|reserve| reserve.counters.failed()))
    }

    /// Makes a block in a page-block of a class that is held.
    fn take(&self, class: &mut Class, index: usize, size: usize) -> Option<(Handle, Transition)> {
        let recalled = self.recallable(class, index);
        let opens = !class.has_room() && recalled.is_none();
        let (entry, page) = self.reserve.hold(|reserve| {
            let taken = reserve.take(self, opens)?;
            reserve.counters.allocated(size);
            Some(taken)
        })?;
        let (slot, transition) = match recalled {
            Some(number) => self.recall(class, number),
            None => class.allocate(&self.table, || page)?,
        };
        let place = self.place(class, slot);
        // Nobody reads the record before the handle is known, or a move that needs the class.
        let mut backing = self.backing;
        backing.set_record(
            place,
            Record {
                owner: entry,
                size: size as u32,
            },
        );
        Some((self.entries.bind(entry, place), transition))
    }

    /// Frees a block and makes every step of the compaction that follows from it, each in a
    /// critical section of its own. O(1) without a move, else O(bytes of the page-block).
    ///
    /// # Errors
    /// [`BadHandle`]; the heap is unchanged.
    pub fn free(&self, handle: Handle) -> Result<(), BadHandle> {
        let (_, compaction) = self.begin_free(handle)?;
        self.complete(compaction);
        Ok(())
    }

    /// Frees a block; a move that follows from it is made by
    /// [`step`](SharedCompactFit::step), by any thread. O(moves).
    ///
    /// # Errors
    /// [`BadHandle`]; the heap is unchanged.
    pub fn begin_free(
        &self,
        handle: Handle,
    ) -> Result<(Transition, Option<Compaction>), BadHandle> {
        self.in_class(handle, |class, index, place| {
            let Some(Withdrawn { size, under }) =
                self.in_contents_of(place, || self.withdraw(handle, place))?
            else {
                return Ok(None);
            };
            self.reserve.hold(|reserve| {
                reserve.spare.put(&self.entries, handle.index());
                reserve.counters.freed(size);
            });
            let slot = match under {
                None => self.slot(class, place),
                // The source is free, and the target is what remains to be freed.
                Some((number, under)) => {
                    self.retire(number);
                    class.arrive(&self.table, under.moved.from, |page| self.give(page));
                    under.moved.to
                }
            };
            Ok(Some(self.vacate(class, index, slot)))
        })
    }

    /// Ends the handle of the block at `place`, whose contents are held, and the move of it, if
    /// there is one; its size. `None` when the block is elsewhere.
    fn withdraw(&self, handle: Handle, place: Place) -> Result<Option<Withdrawn>, BadHandle> {
        if !self.entries.stands(handle, place)? {
            return Ok(None);
        }
        self.entries.unpinned(handle)?;
        let size = self.backing.record(place).size as usize;
        self.entries.close(handle);
        let under = self.moves.find(place).map(|slot| self.moves.end(slot));
        Ok(Some(Withdrawn { size, under }))
    }

    /// Frees a page-block of a class that is held, and begins the move that may follow.
    fn vacate(
        &self,
        class: &mut Class,
        index: usize,
        slot: Slot,
    ) -> (Transition, Option<Compaction>) {
        let (transition, moved) = class.free(&self.table, slot, |page| self.give(page));
        let compaction = moved.and_then(|moved| self.begin(class, index, moved));
        (transition, compaction)
    }

    /// What the heap holds and has held: counts, and bytes of what was ever used. O(1).
    pub fn statistics(&self) -> Statistics {
        self.reserve.hold(|reserve| {
            let records = self.records(reserve.supply.extent);
            let footprint =
                self.backing.bytes(reserve.supply.extent) + records + self.entries.bytes();
            let spare = reserve.supply.extent - reserve.supply.owned;
            reserve.counters.report(
                footprint,
                self.classes.largest().saturating_sub(RECORD),
                spare as usize,
                (spare as usize) << self.page_log2,
                records + self.entries.bytes(),
            )
        })
    }

    /// Bytes of the records of as many pages, of classes, locks and moves.
    fn records(&self, pages: u32) -> usize {
        pages as usize * self.table.stride()
            + self.classes.bytes_of_records()
            + size_of_val(self.pages)
            + self.moves.bytes()
            + self.by_size.len()
    }
}
