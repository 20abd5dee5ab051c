//! `CompactFit`: a heap whose blocks may move, and which therefore is never fragmented by
//! more than it says.
//!
//! Kirsch and Sokolova's compact-fit ("Explicit, dynamic memory management with temporal and
//! spatial guarantees", ARTIST summer school 2009; Craciunas et al., USENIX ATC 2008): memory
//! is divided into pages, a page into page-blocks of one size class. A free that would leave
//! more than κ pages of its class neither full nor empty moves one block instead, into the
//! page-block that was freed. Programs hold handles, so that a block can move.
//!
//! Invariants, verified by [`CompactFit::check`]: those of the automaton of each class (n is at
//! most κ); every used page-block has an owner, whose handle resolves to it; every move under
//! way leads from a source to a used page-block.

use core::ops::Range;

use super::automaton::{Class, ClassState, Move, Slot, Transition, Unpinning, of, of_mut};
use super::backing::{Backing, Place, RECORD, Record};
use super::handles::{BadHandle, Handle, Handles};
use super::layout::class_by_size;
use super::options::{GRANULE, Options};
use super::table::{Supply, Table};
use crate::statistics::{Counters, Statistics};

/// Most moves under way at once: threads that free at the same time.
pub const MOVES: usize = 16;

/// Why no block was allocated. The heap is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The request exceeds the largest class.
    TooLarge,
    /// No class has page-blocks so aligned.
    Alignment,
    /// No page or no handle is left.
    Exhausted,
}

impl core::fmt::Display for Refused {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            Refused::TooLarge => "the request exceeds the largest size class",
            Refused::Alignment => "no size class is so aligned",
            Refused::Exhausted => "no page or no handle is left",
        })
    }
}

impl core::error::Error for Refused {}

/// A move under way.
#[derive(Clone, Copy, Debug)]
struct Under {
    moved: Move,
    class: u8,
    from: Place,
    to: Place,
    /// Bytes of record and block.
    length: usize,
    /// Bytes carried so far.
    done: usize,
    serial: u32,
}

/// A move that a free began and whose steps are to be made. Dropping it leaves the move to
/// whoever frees, pins or allocates next; nothing is lost but page-blocks meanwhile.
#[derive(Debug)]
#[must_use = "the move takes its steps by `CompactFit::step`"]
pub struct Compaction {
    index: usize,
    serial: u32,
}

impl Compaction {
    /// The move as a number, for other languages; never 0.
    pub const fn to_bits(self) -> u64 {
        (self.serial as u64) << 32 | (self.index as u64 + 1)
    }

    /// The move with this number, if it is that of one. A move that has ended, or of another
    /// heap, has no steps left.
    pub const fn from_bits(bits: u64) -> Option<Self> {
        match (bits as u32 as usize).wrapping_sub(1) {
            index @ 0..MOVES => Some(Compaction {
                index,
                serial: (bits >> 32) as u32,
            }),
            _ => None,
        }
    }
}

/// Where the bytes of the heap go. All in bytes of memory: behind a block table, free
/// page-blocks and sources of moves have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fragmentation {
    /// Requested bytes of the blocks in use.
    pub live: usize,
    /// Used page-blocks beyond requested bytes: the request rounded up to its class, and the
    /// record of the block.
    pub page_block_internal: usize,
    /// Ends of pages in which no page-block fits.
    pub page_internal: usize,
    /// Free page-blocks of pages that have used ones: what κ bounds.
    pub size_class: usize,
    /// Page-blocks that are left by moves under way: what ι costs.
    pub transient: usize,
    /// Pages that no class owns but that were used before.
    pub spare: usize,
    /// The table of handles.
    pub handles: usize,
    /// Records of pages, classes, and of the block table.
    pub records: usize,
}

/// A heap of pages whose blocks move, over a [`Backing`].
#[derive(Debug)]
pub struct CompactFit<B> {
    backing: B,
    table: Table<'static>,
    classes: &'static mut [Class],
    /// Class by size of record and request, in granules.
    by_size: &'static [u8],
    supply: Supply,
    handles: Handles,
    page_log2: u32,
    increment: usize,
    /// Largest request.
    largest: usize,
    /// Most alignment of a block.
    align: usize,
    under: [Option<Under>; MOVES],
    serial: u32,
    counters: Counters,
}

/// What [`CompactFit`] is made of.
pub(super) struct Parts<B> {
    pub(super) backing: B,
    pub(super) table: Table<'static>,
    pub(super) classes: &'static mut [Class],
    pub(super) by_size: &'static [u8],
    pub(super) handles: Handles,
    /// Alignment that the first block has.
    pub(super) align: usize,
}

impl<B: Backing> CompactFit<B> {
    pub(super) fn from_parts(options: &Options, parts: Parts<B>) -> Self {
        let mut backing = parts.backing;
        let limit = backing.pages_beside(0).min(parts.table.count());
        CompactFit {
            backing,
            table: parts.table,
            classes: parts.classes,
            by_size: parts.by_size,
            supply: Supply::new(limit),
            handles: parts.handles,
            page_log2: options.partition.page.trailing_zeros(),
            largest: options.partition.largest,
            align: parts.align,
            increment: options.increment.unwrap_or(usize::MAX),
            under: [None; MOVES],
            serial: 0,
            counters: Counters::NEW,
        }
    }

    #[inline(always)]
    fn place(&self, class: usize, slot: Slot) -> Place {
        let within = slot.block * of(self.classes, class).bytes;
        (slot.page << (self.page_log2 - GRANULE.trailing_zeros())) + within / GRANULE as u32
    }

    /// The class and page-block at a place that a handle resolved to.
    #[inline(always)]
    fn slot(&self, place: Place) -> (usize, Slot) {
        let shift = self.page_log2 - GRANULE.trailing_zeros();
        let page = place >> shift;
        let class = usize::from(self.table.page(page).class.get());
        let offset = (place as usize & ((1 << shift) - 1)) * GRANULE;
        let block = of(self.classes, class).block_at(offset);
        debug_assert!(block.is_some());
        let block = block.unwrap_or(0);
        (class, Slot { page, block })
    }

    /// The class of a request.
    #[inline(always)]
    fn class_for(&self, size: usize, align: usize) -> Result<usize, Refused> {
        if size > self.largest {
            return Err(Refused::TooLarge);
        }
        let mut class = class_by_size(self.by_size, size + RECORD);
        if align > GRANULE {
            if align > self.align {
                return Err(Refused::Alignment);
            }
            while !self.aligned(class, align).ok_or(Refused::Alignment)? {
                class += 1;
            }
        }
        Ok(class)
    }

    /// Whether the page-blocks of a class are multiples of `align`; `None` behind the last.
    fn aligned(&self, class: usize, align: usize) -> Option<bool> {
        let class = self.classes.get(class)?;
        Some((class.bytes as usize).is_multiple_of(align))
    }

    /// Allocates a block of `size` bytes aligned to `align`, a power of two. The bytes are
    /// what they were. O(1) and, with moves under way, O(moves).
    ///
    /// # Errors
    /// [`Refused`]; the heap is unchanged.
    #[inline]
    pub fn allocate(&mut self, size: usize, align: usize) -> Result<Handle, Refused> {
        match self.allocate_traced(size, align) {
            Ok((handle, _)) => Ok(handle),
            Err(refused) => Err(refused),
        }
    }

    /// As [`allocate`](CompactFit::allocate), and the transition of the class.
    ///
    /// # Errors
    /// As [`allocate`](CompactFit::allocate).
    #[inline(always)]
    pub fn allocate_traced(
        &mut self,
        size: usize,
        align: usize,
    ) -> Result<(Handle, Transition), Refused> {
        let taken = self
            .class_for(size, align)
            .and_then(|class| self.take(class, size));
        match taken {
            Ok((handle, transition)) => {
                self.counters.allocated(size);
                Ok((handle, transition))
            }
            Err(refused) => {
                self.counters.failed();
                Err(refused)
            }
        }
    }

    #[inline(always)]
    fn take(&mut self, class: usize, size: usize) -> Result<(Handle, Transition), Refused> {
        let (backing, supply) = (&mut self.backing, &mut self.supply);
        let owner = self
            .handles
            .take(|bytes| {
                let limit = backing.pages_beside(bytes);
                let fits = limit >= supply.extent;
                if fits {
                    supply.limit = supply.limit.min(limit);
                }
                fits
            })
            .ok_or(Refused::Exhausted)?;
        let taken = self.page_block(class);
        let Some((slot, transition)) = taken else {
            self.handles.untake(owner);
            return Err(Refused::Exhausted);
        };
        let place = self.place(class, slot);
        let bytes = of(self.classes, class).bytes as usize;
        if !self.backing.provide(place, bytes) {
            self.vacate(class, slot);
            self.handles.untake(owner);
            return Err(Refused::Exhausted);
        }
        self.backing.set_record(
            place,
            Record {
                owner,
                size: size as u32,
            },
        );
        Ok((self.handles.bind(owner, place), transition))
    }

    #[inline(always)]
    fn page_block(&mut self, class: usize) -> Option<(Slot, Transition)> {
        match of(self.classes, class).open_page() {
            Some(page) => Some(of_mut(self.classes, class).take(&self.table, page)),
            None => self.page_block_elsewhere(class),
        }
    }

    /// A page-block when no page is open: the target of a move under way, or of a page with
    /// pins, or of one of the supply.
    #[inline(never)]
    fn page_block_elsewhere(&mut self, class: usize) -> Option<(Slot, Transition)> {
        let of_class = of_mut(self.classes, class);
        if of_class.sources > 0 && !of_class.has_room() {
            return Some(self.recall(class));
        }
        let (table, supply) = (&self.table, &mut self.supply);
        of_class.take_elsewhere(table, || supply.take(table))
    }

    /// Frees a page-block that holds no block, and makes the move that may follow.
    fn vacate(&mut self, class: usize, slot: Slot) {
        let (_, moved) = of_mut(self.classes, class).free_into(&self.table, slot, &mut self.supply);
        if let Some(moved) = moved {
            self.carry_whole(class, moved);
        }
    }

    /// Gives a request the target of a move under way in its class.
    #[cold]
    fn recall(&mut self, class: usize) -> (Slot, Transition) {
        let table = &self.table;
        let classes = &mut *self.classes;
        let under = self
            .under
            .iter_mut()
            .find(|under| {
                under.is_some_and(|under| {
                    usize::from(under.class) == class
                        && classes[class].recallable(table, under.moved.from)
                })
            })
            .and_then(Option::take)
            .expect("a class with sources and without room has a move that can be taken back");
        let taken = classes[class].recall(table, under.moved);
        let bytes = classes[class].bytes as usize;
        self.backing.forget(under.to, bytes);
        taken
    }

    /// Frees a block and makes every step of the compaction that follows from it.
    /// O(1) without a move, else O(bytes of the page-block).
    ///
    /// # Errors
    /// [`BadHandle`]; the heap is unchanged.
    #[inline]
    pub fn free(&mut self, handle: Handle) -> Result<(), BadHandle> {
        let (_, moved) = self.release(handle)?;
        if let Some((class, moved)) = moved {
            self.carry_whole(class, moved);
        }
        Ok(())
    }

    /// Frees a block; a move that follows from it is made by [`step`](CompactFit::step), so
    /// that other operations may come between its steps. O(1).
    ///
    /// # Errors
    /// [`BadHandle`]; the heap is unchanged.
    pub fn begin_free(
        &mut self,
        handle: Handle,
    ) -> Result<(Transition, Option<Compaction>), BadHandle> {
        let (transition, moved) = self.release(handle)?;
        let compaction = moved.and_then(|(class, moved)| self.begin(class, moved));
        Ok((transition, compaction))
    }

    #[inline(always)]
    fn release(
        &mut self,
        handle: Handle,
    ) -> Result<(Transition, Option<(usize, Move)>), BadHandle> {
        let place = self.handles.unpinned(handle)?;
        self.handles.release(handle);
        let size = self.backing.record(place).size as usize;
        self.counters.freed(size);
        let (class, mut slot) = self.slot(place);
        if of(self.classes, class).sources > 0
            && let Some(to) = self.abandon(class, place)
        {
            slot = to;
        }
        let bytes = of(self.classes, class).bytes as usize;
        self.backing.withdraw(place, bytes);
        let (transition, moved) =
            of_mut(self.classes, class).free_into(&self.table, slot, &mut self.supply);
        Ok((transition, moved.map(|moved| (class, moved))))
    }

    /// Ends the move of a block that is freed meanwhile: its source is free, and the target
    /// is what remains to be freed.
    #[cold]
    fn abandon(&mut self, class: usize, place: Place) -> Option<Slot> {
        let under = self
            .under
            .iter_mut()
            .find(|under| under.is_some_and(|under| under.from == place))?
            .take()?;
        let bytes = of(self.classes, class).bytes as usize;
        self.backing.forget(under.to, bytes);
        self.arrive(class, under.moved.from);
        Some(under.moved.to)
    }

    #[inline(always)]
    fn arrive(&mut self, class: usize, from: Slot) {
        let (table, supply) = (&self.table, &mut self.supply);
        of_mut(self.classes, class).arrive(table, from, |number| supply.give(table, number));
    }

    /// Makes a move at once. O(bytes of the page-block).
    fn carry_whole(&mut self, class: usize, moved: Move) {
        if self.classes[class].sources > 1
            && let Some(Compaction { index, .. }) = self.redirect(class, moved)
        {
            if let Some(under) = self.under[index] {
                self.hasten(under.from);
            }
            return;
        }
        let (from, to) = (self.place(class, moved.from), self.place(class, moved.to));
        let record = self.backing.record(from);
        let length = self.carried(class, record);
        self.backing.carry(from, to, 0..length);
        self.handles.moved(record.owner, to);
        self.backing
            .leave(from, of(self.classes, class).bytes as usize);
        self.arrive(class, moved.from);
    }

    /// Bytes of a page-block that a move carries.
    #[inline(always)]
    fn carried(&self, class: usize, record: Record) -> usize {
        match B::COPIES {
            true => RECORD + record.size as usize,
            false => of(self.classes, class).bytes as usize,
        }
    }

    /// Leads the move that is under way to the page-block that a new one is to leave to the
    /// target of the new one: no block has come to that page-block yet. O(moves).
    #[cold]
    fn redirect(&mut self, class: usize, moved: Move) -> Option<Compaction> {
        let index = self
            .under
            .iter()
            .position(|under| under.is_some_and(|under| under.moved.to == moved.from))?;
        let to = self.place(class, moved.to);
        let bytes = self.classes[class].bytes as usize;
        let under = self.under[index].as_mut()?;
        self.backing.forget(under.to, bytes);
        under.moved.to = moved.to;
        under.to = to;
        under.done = 0;
        let serial = under.serial;
        self.arrive(class, moved.from);
        Some(Compaction { index, serial })
    }

    /// Begins a move whose steps are to be made; makes it at once if too many are under way.
    fn begin(&mut self, class: usize, moved: Move) -> Option<Compaction> {
        if self.classes[class].sources > 1
            && let Some(compaction) = self.redirect(class, moved)
        {
            return Some(compaction);
        }
        let Some(index) = self.under.iter().position(Option::is_none) else {
            self.carry_whole(class, moved);
            return None;
        };
        let (from, to) = (self.place(class, moved.from), self.place(class, moved.to));
        self.serial = self.serial.wrapping_add(1);
        self.under[index] = Some(Under {
            moved,
            class: class as u8,
            from,
            to,
            length: self.carried(class, self.backing.record(from)),
            done: 0,
            serial: self.serial,
        });
        Some(Compaction {
            index,
            serial: self.serial,
        })
    }

    /// Makes one step of a move: at most ι bytes. Gives back the compaction while more steps
    /// remain. O(ι).
    pub fn step(&mut self, compaction: Compaction) -> Option<Compaction> {
        let Compaction { index, serial } = compaction;
        let mut under = self.under[index].filter(|under| under.serial == serial)?;
        let to = under.length.min(under.done.saturating_add(self.increment));
        self.backing.carry(under.from, under.to, under.done..to);
        under.done = to;
        if under.done < under.length {
            self.under[index] = Some(under);
            return Some(compaction);
        }
        self.under[index] = None;
        self.finish(under);
        None
    }

    /// The last step of a move: from here on the handle resolves to the target.
    fn finish(&mut self, under: Under) {
        let class = usize::from(under.class);
        let owner = self.backing.record(under.to).owner;
        self.handles.moved(owner, under.to);
        let bytes = of(self.classes, class).bytes as usize;
        self.backing.leave(under.from, bytes);
        self.arrive(class, under.moved.from);
    }

    /// Makes all remaining steps of the move of the block at `place`, if it is being moved.
    fn hasten(&mut self, place: Place) -> Place {
        let under = self
            .under
            .iter_mut()
            .find(|under| under.is_some_and(|under| under.from == place));
        let Some(under) = under.and_then(Option::take) else {
            return place;
        };
        self.backing
            .carry(under.from, under.to, under.done..under.length);
        self.finish(under);
        under.to
    }

    /// Makes all steps of all moves under way.
    pub fn finish_all(&mut self) {
        for index in 0..MOVES {
            if let Some(under) = self.under[index] {
                self.hasten(under.from);
            }
        }
    }

    /// Moves under way.
    pub fn moves(&self) -> usize {
        self.under.iter().flatten().count()
    }

    /// Requested bytes of a block. O(1).
    ///
    /// # Errors
    /// [`BadHandle`].
    pub fn size(&self, handle: Handle) -> Result<usize, BadHandle> {
        Ok(self.backing.record(self.handles.place(handle)?).size as usize)
    }

    /// Where a block is now: its byte offset in the space of pages. O(1).
    ///
    /// # Errors
    /// [`BadHandle`].
    pub fn offset(&self, handle: Handle) -> Result<usize, BadHandle> {
        Ok(self.handles.place(handle)? as usize * GRANULE + RECORD)
    }

    fn within(&self, handle: Handle, offset: usize, length: usize) -> Result<Place, BadHandle> {
        let place = self.handles.place(handle)?;
        let size = self.backing.record(place).size as usize;
        match offset.checked_add(length) {
            Some(end) if end <= size => Ok(place),
            _ => Err(BadHandle::Outside),
        }
    }

    /// Copies bytes of a block out; the right ones, also while it moves. O(bytes).
    ///
    /// # Errors
    /// [`BadHandle`], also when the range is not within the block.
    pub fn read(&self, handle: Handle, offset: usize, bytes: &mut [u8]) -> Result<(), BadHandle> {
        // Handles resolve to the source until the last step, and the source is kept whole.
        let place = self.within(handle, offset, bytes.len())?;
        self.backing.read(place, offset, bytes);
        Ok(())
    }

    /// Copies bytes into a block, also while it moves. O(bytes + moves).
    ///
    /// # Errors
    /// [`BadHandle`], also when the range is not within the block.
    pub fn write(&mut self, handle: Handle, offset: usize, bytes: &[u8]) -> Result<(), BadHandle> {
        let place = self.within(handle, offset, bytes.len())?;
        self.backing.write(place, offset, bytes);
        if B::COPIES
            && let Some(under) = self
                .under
                .iter()
                .flatten()
                .find(|under| under.from == place)
        {
            let carried = (under.done.saturating_sub(RECORD + offset)).min(bytes.len());
            self.backing.write(under.to, offset, &bytes[..carried]);
        }
        Ok(())
    }

    /// Resizes a block within its class, or moves it to another; the handle stays good.
    /// O(1) within the class, else O(bytes of the page-block). A pinned block is resized
    /// only within its class.
    ///
    /// # Errors
    /// [`Resize`]; the block is as it was.
    pub fn resize(&mut self, handle: Handle, size: usize, align: usize) -> Result<(), Resize> {
        let place = self.handles.place(handle)?;
        let place = self.hasten(place);
        let (class, slot) = self.slot(place);
        let wanted = self
            .class_for(size, align)
            .inspect_err(|_| self.counters.failed())?;
        let record = self.backing.record(place);
        if wanted != class {
            self.handles.unpinned(handle)?;
            let taken = self.page_block(wanted).and_then(|(taken, _)| {
                let to = self.place(wanted, taken);
                let bytes = of(self.classes, wanted).bytes as usize;
                let provided = self.backing.provide(to, bytes);
                if !provided {
                    self.vacate(wanted, taken);
                }
                provided.then_some(to)
            });
            let Some(to) = taken else {
                self.counters.failed();
                return Err(Resize::Refused(Refused::Exhausted));
            };
            let kept = RECORD + size.min(record.size as usize);
            self.copy(place, to, 0..kept);
            self.backing.set_record(
                to,
                Record {
                    owner: record.owner,
                    size: size as u32,
                },
            );
            self.handles.moved(record.owner, to);
            let bytes = of(self.classes, class).bytes as usize;
            self.backing.withdraw(place, bytes);
            self.vacate(class, slot);
        } else {
            self.backing.set_record(
                place,
                Record {
                    owner: record.owner,
                    size: size as u32,
                },
            );
        }
        self.counters.resized(record.size as usize, size);
        Ok(())
    }

    /// Copies bytes between page-blocks of different classes, which both keep their memory.
    fn copy(&mut self, from: Place, to: Place, range: Range<usize>) {
        let mut buffer = [0u8; 64];
        let mut offset = RECORD;
        while offset < range.end {
            let length = buffer.len().min(range.end - offset);
            self.backing
                .read(from, offset - RECORD, &mut buffer[..length]);
            self.backing.write(to, offset - RECORD, &buffer[..length]);
            offset += length;
        }
    }

    /// Counts a pin of a block, which then does not move; the block's place. A move of it is
    /// ended first. O(bytes of the page-block).
    pub(super) fn pin_place(&mut self, handle: Handle) -> Result<Place, BadHandle> {
        let first = self.handles.pin(handle)?;
        let place = self.handles.place(handle)?;
        let place = self.hasten(place);
        if first {
            let (class, slot) = self.slot(place);
            self.classes[class].pin(&self.table, slot.page);
        }
        Ok(place)
    }

    /// Takes a pin back. When it was the last of its page and κ pages are not full already,
    /// blocks move into the page until it is full or fewer are: O(π β).
    ///
    /// # Errors
    /// [`BadHandle`].
    pub fn unpin(&mut self, handle: Handle) -> Result<(), BadHandle> {
        if !self.handles.unpin(handle)? {
            return Ok(());
        }
        let (class, slot) = self.slot(self.handles.place(handle)?);
        loop {
            let (table, supply) = (&self.table, &mut self.supply);
            let give = |number| supply.give(table, number);
            match self.classes[class].unpin(table, slot.page, give) {
                Unpinning::Done => return Ok(()),
                Unpinning::Moves(moved) => self.carry_whole(class, moved),
                Unpinning::Waits => self.hasten_from(slot.page),
            }
        }
    }

    /// Makes all remaining steps of the moves that leave a page.
    fn hasten_from(&mut self, page: u32) {
        for index in 0..MOVES {
            if let Some(under) = self.under[index]
                && under.moved.from.page == page
            {
                self.hasten(under.from);
            }
        }
    }

    /// What the page-blocks are made of.
    pub fn backing(&self) -> &B {
        &self.backing
    }

    pub(super) fn handle_place(&self, handle: Handle) -> Result<Place, BadHandle> {
        self.handles.place(handle)
    }

    /// Ends the move of a block, if it is being moved; its place.
    pub(super) fn settled_place(&mut self, handle: Handle) -> Result<Place, BadHandle> {
        let place = self.handles.place(handle)?;
        Ok(self.hasten(place))
    }

    /// Class sizes in bytes, smallest first.
    pub fn class_sizes(&self) -> impl Iterator<Item = usize> + '_ {
        self.classes.iter().map(|class| class.bytes as usize)
    }

    /// The states of the classes' automata, smallest class first. O(classes × pages).
    pub fn states(&self) -> impl Iterator<Item = ClassState> + '_ {
        self.classes.iter().map(|class| class.state(&self.table))
    }

    /// Pages in use, and pages that were ever used.
    pub fn pages(&self) -> (u32, u32) {
        (self.supply.owned, self.supply.extent)
    }

    /// Bytes that the heap has taken: pages that were ever used, their records, handles,
    /// classes.
    pub fn footprint(&self) -> usize {
        self.backing.bytes(self.supply.extent) + self.records() + self.handles.bytes()
    }

    fn records(&self) -> usize {
        self.supply.extent as usize * self.table.stride()
            + self.backing.record_bytes(self.supply.extent)
            + size_of_val(self.classes)
            + self.by_size.len()
    }

    /// Where the bytes go. O(classes × pages).
    pub fn fragmentation(&self) -> Fragmentation {
        let page = 1usize << self.page_log2;
        let mut found = Fragmentation {
            live: self.counters.live(),
            handles: self.handles.bytes(),
            records: self.records(),
            ..Fragmentation::default()
        };
        let mut used = 0;
        for class in self.states() {
            let (pages, blocks) = (class.pages as usize, class.blocks as usize);
            let free = pages * blocks - (class.used + class.sources) as usize;
            used += class.used as usize * class.block;
            if self.backing.spare().is_none() {
                found.page_internal += pages * (page - blocks * class.block);
                found.transient += class.sources as usize * class.block;
                found.size_class += free * class.block;
            }
        }
        found.page_block_internal = used - found.live;
        found.spare = match self.backing.spare() {
            Some(spare) => spare,
            None => (self.supply.extent - self.supply.owned) as usize * page,
        };
        found
    }

    /// What the heap holds and has held. O(classes × pages).
    pub fn statistics(&self) -> Statistics {
        let found = self.fragmentation();
        let free = self
            .states()
            .map(|class| (class.pages * class.blocks - class.used - class.sources) as usize)
            .sum();
        let largest = self.classes.last().map_or(0, |class| class.bytes as usize);
        self.counters.report(
            self.footprint(),
            largest.saturating_sub(RECORD),
            free,
            found.size_class,
            found.handles + found.records,
        )
    }

    /// Verifies every invariant. Linear in pages × classes and in blocks.
    ///
    /// # Errors
    /// [`Corruption::List`](crate::Corruption::List) when a page, class or list disagrees,
    /// [`Corruption::Statistics`](crate::Corruption::Statistics) when a count does.
    pub fn check(&self) -> Result<(), crate::Corruption> {
        let broken = crate::Corruption::List;
        let owned: u32 = self.classes.iter().map(|class| class.pages).sum();
        let spare = self.supply.spare(&self.table).ok_or(broken)?;
        let classes = self.classes.iter().all(|class| class.check(&self.table));
        if !classes || owned != self.supply.owned || owned + spare != self.supply.extent {
            return Err(broken);
        }
        let (mut live, mut blocks) = (0, 0);
        for (number, page) in self.table.pages() {
            if page.place.get() == super::table::Place::Unowned {
                continue;
            }
            let class = usize::from(page.class.get());
            for block in 0..self.classes[class].blocks {
                let slot = Slot {
                    page: number,
                    block,
                };
                if !self.occupied(slot) {
                    continue;
                }
                let place = self.place(class, slot);
                let record = self.backing.record(place);
                if self.handles.place_at(record.owner) != Some(place) {
                    return Err(broken);
                }
                live += record.size as usize;
                blocks += 1;
            }
        }
        let handles = self.handles.in_use().ok_or(broken)?;
        match handles as usize == blocks && self.counters.agree(live, blocks) {
            true => Ok(()),
            false => Err(crate::Corruption::Statistics),
        }
    }

    /// Whether a block lies in the page-block: it is used and no target, or a source.
    fn occupied(&self, slot: Slot) -> bool {
        let bits = self.table.bits(slot.page);
        let target = self
            .under
            .iter()
            .flatten()
            .any(|under| under.moved.to == slot);
        !bits.free(slot.block as usize) && !target
    }
}

/// Why a block was not resized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resize {
    /// The handle is bad, or its block pinned.
    Handle(BadHandle),
    /// There is no block of the new size.
    Refused(Refused),
}

impl From<BadHandle> for Resize {
    fn from(bad: BadHandle) -> Self {
        Resize::Handle(bad)
    }
}

impl From<Refused> for Resize {
    fn from(refused: Refused) -> Self {
        Resize::Refused(refused)
    }
}

impl core::fmt::Display for Resize {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Resize::Handle(bad) => bad.fmt(f),
            Resize::Refused(refused) => refused.fmt(f),
        }
    }
}

impl core::error::Error for Resize {}
