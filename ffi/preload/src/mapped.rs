//! Large blocks as mappings of their own, by the rule of [`metes_heap::mapped`].
//!
//! Records lie outside the blocks, in a hash table by address, so a block begins at a page and nothing
//! that a program writes reaches them; an address is looked up, never read.
//!
//! Invariant: every block in the table is a mapping of whole pages, readable and writable, followed by
//! the spare where the rule says so; what the rule counts is what is mapped.

use core::mem::{offset_of, size_of};
use core::ptr;

use metes_heap::mapped::{ENTRY, FEWEST_ENTRIES, PAGE, pages};
use metes_heap::{BadFree, Mapped, MappedBlock, Overwritten};

use crate::pages::{Pages, map_table, unmap};

/// Addresses freed last that are remembered, to tell a second free from a stray pointer.
const FREED: usize = 64;
/// Most bytes behind a block that a hardened heap guards.
const GUARD: usize = 8;

/// An entry of the table; `start` is 0 where it is empty.
#[derive(Clone, Copy)]
#[repr(C)]
struct Entry {
    start: usize,
    block: MappedBlock,
}

const _: () = assert!(size_of::<Entry>() == ENTRY && offset_of!(Entry, start) == 0);

/// A mapped block of the table.
#[derive(Clone, Copy)]
pub(crate) struct Found {
    place: *mut u8,
    pub(crate) block: MappedBlock,
}

/// The mapped blocks of a heap.
pub(crate) struct Mappings {
    pub(crate) rule: Mapped,
    table: *mut Entry,
    entries: usize,
    /// Where the spare begins, if there is one, and the mapping that it is the end of, or all of.
    spare: *mut u8,
    owner: *mut u8,
    pub(crate) pages: Pages,
    freed: [usize; FREED],
    latest: usize,
    /// The key of the guards of a hardened heap.
    key: Option<u64>,
    /// Most blocks, and most bytes of their pages, that there were at once.
    most: [usize; 2],
}

impl Mappings {
    /// No blocks; those from `threshold` bytes on are to be mapped, to `pages`. `key` is that of the guards
    /// of a hardened heap.
    pub(crate) fn new(threshold: Option<usize>, pages: Pages, key: Option<u64>) -> Self {
        Mappings {
            rule: Mapped::new(threshold),
            table: ptr::null_mut(),
            entries: 0,
            spare: ptr::null_mut(),
            owner: ptr::null_mut(),
            pages,
            freed: [0; FREED],
            latest: 0,
            key,
            most: [0; 2],
        }
    }

    /// The number of the block at an address, for hashes of placements.
    pub(crate) fn number(&self, address: *mut u8) -> Option<u64> {
        self.slot(address.addr())
            .map(|slot| self.at(slot).block.number)
    }

    /// The block at an address, verified as far as it can be.
    #[cold]
    pub(crate) fn find(&self, address: *mut u8) -> Result<Found, BadFree> {
        let Some(slot) = self.slot(address.addr()) else {
            let freed = address.addr() != 0 && self.freed.contains(&address.addr());
            return Err(match freed {
                true => BadFree::NotInUse,
                false => BadFree::Foreign,
            });
        };
        let found = Found {
            place: address,
            block: self.at(slot).block,
        };
        match self.guards(found) {
            true => Ok(found),
            false => Err(BadFree::Overwritten(Overwritten::Slack)),
        }
    }

    /// A new mapping; null when the system refuses.
    #[cold]
    pub(crate) fn allocate(&mut self, size: usize, align: usize) -> *mut u8 {
        if !self.make_room() {
            return ptr::null_mut();
        }
        let place = self.pages.map(pages(size), align);
        if !place.is_null() {
            let block = self.rule.allocate(size);
            self.enter(Found { place, block });
            self.note();
        }
        place
    }

    /// A mapping for what a pool's block holds and more; null when the system refuses.
    #[cold]
    pub(crate) fn take_over(&mut self, size: usize) -> *mut u8 {
        if !self.make_room() {
            return ptr::null_mut();
        }
        let (spare, length) = (self.rule.free_spare(), pages(size));
        let place = match spare {
            0 => self.pages.map(length, 1),
            spare if spare >= length => self.spare,
            spare => self.pages.lengthen(self.spare, spare, length),
        };
        if !place.is_null() {
            let block = self.rule.take_over(size);
            if spare != 0 {
                (self.spare, self.owner) = (place.wrapping_add(length), place);
            }
            self.enter(Found { place, block });
            self.note();
        }
        place
    }

    /// Blocks, bytes of their pages, and the most that there were of either.
    pub(crate) fn figures(&self) -> [usize; 4] {
        let [blocks, bytes] = self.most;
        [self.rule.blocks(), self.rule.bytes(), blocks, bytes]
    }

    fn note(&mut self) {
        let [blocks, bytes] = self.most;
        self.most = [blocks.max(self.rule.blocks()), bytes.max(self.rule.bytes())];
    }

    /// Resizes a mapped block that the rule keeps; null, and the block as it was, when the system
    /// refuses. `beside`: the bytes that all pools have taken.
    #[cold]
    pub(crate) fn resize(&mut self, found: Found, size: usize, beside: usize) -> *mut u8 {
        let Found { place, mut block } = found;
        let spare = self.rule.spare_of(&block);
        let (held, wanted) = (block.pages() + spare, pages(size));
        let new = match wanted > held {
            true => self.pages.lengthen(place, held, wanted),
            false => place,
        };
        if new.is_null() {
            return new;
        }
        self.rule.resize(&mut block, size, beside);
        self.note();
        let left = wanted + self.rule.spare_of(&block);
        self.pages.cut(new, held.max(wanted), left);
        if spare != 0 {
            (self.spare, self.owner) = (new.wrapping_add(wanted), new);
        }
        if new != place {
            self.remove(place);
            self.enter(Found { place: new, block });
        } else {
            self.write(Found { place, block });
        }
        new
    }

    /// Gives a block back to the system, or keeps its pages as the spare.
    #[cold]
    pub(crate) fn free(&mut self, found: Found, beside: usize) {
        let Found { place, block } = found;
        self.settle(|| beside);
        let behind = self.rule.spare_of(&block);
        let elsewhere = self.rule.spare() - behind;
        let held = block.pages() + behind;
        let kept = match self.rule.free(&block, beside) {
            true => {
                self.cut_spare(elsewhere);
                (self.spare, self.owner) = (place, place);
                self.rule.free_spare()
            }
            false => 0,
        };
        self.pages.cut(place, held, kept);
        self.remove(place);
        self.freed[self.latest] = place.addr();
        self.latest = (self.latest + 1) % FREED;
    }

    /// To be called after every request; see [`Mapped::gives_back`].
    #[inline(always)]
    pub(crate) fn settle(&mut self, beside: impl FnOnce() -> usize) {
        let spare = self.rule.spare();
        if self.rule.gives_back(beside) {
            self.cut_spare(spare);
        }
        if self.pages.owes() {
            self.pages.pay();
        }
    }

    /// Whether requests that concern the pools alone have something to do here.
    #[inline(always)]
    pub(crate) fn needs_looks(&self) -> bool {
        self.rule.spare() != 0 || self.pages.owes()
    }

    /// Gives back the spare, of so many bytes.
    #[cold]
    fn cut_spare(&mut self, bytes: usize) {
        let before = self.spare.addr() - self.owner.addr();
        self.pages.cut(self.owner, before + bytes, before);
    }

    /// Gives back the spare, and what waits to be; whether there was anything.
    pub(crate) fn trim(&mut self, beside: usize) -> bool {
        let spare = self.rule.spare();
        self.cut_spare(spare);
        self.rule.drop_spare(beside);
        self.pages.trim() || spare != 0
    }

    // ----------------------------------------------------------------- Guards

    /// The bytes behind a block that are guarded, and with what.
    fn guard(&self, found: Found) -> Option<(*mut u8, usize, [u8; GUARD])> {
        let slack = found.block.pages() - found.block.size;
        let key = self.key? ^ (found.block.number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let end = found.place.wrapping_add(found.block.size);
        Some((end, slack.min(GUARD), key.to_ne_bytes()))
    }

    /// Whether the bytes behind a block are as they were left.
    fn guards(&self, found: Found) -> bool {
        let Some((end, length, bytes)) = self.guard(found) else {
            return true;
        };
        let bytes = bytes[..length].iter().enumerate();
        // SAFETY: inside the pages of the block.
        bytes.fold(true, |same, (offset, byte)| unsafe {
            same & (*end.wrapping_add(offset) == *byte)
        })
    }

    fn set_guard(&self, found: Found) {
        if let Some((end, length, bytes)) = self.guard(found) {
            // SAFETY: inside the pages of the block, behind what the program may use.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), end, length) };
        }
    }

    // ------------------------------------------------------------------ Table

    /// Makes the table as long as one block more needs it.
    fn make_room(&mut self) -> bool {
        let wanted = self.rule.entries_for_next();
        if wanted == self.entries {
            return true;
        }
        debug_assert!(wanted >= FEWEST_ENTRIES && wanted.is_power_of_two());
        let table = map_table(wanted * ENTRY).cast::<Entry>();
        if table.is_null() {
            return false;
        }
        let (old, entries) = (self.table, self.entries);
        (self.table, self.entries) = (table, wanted);
        for slot in 0..entries {
            // SAFETY: inside the old table.
            let entry = unsafe { *old.wrapping_add(slot) };
            if entry.start != 0 {
                self.put(entry);
            }
        }
        unmap(old.cast(), entries * ENTRY);
        true
    }

    /// The entry of a slot of the table.
    fn at(&self, slot: usize) -> Entry {
        debug_assert!(slot < self.entries);
        // SAFETY: inside the table; zero bytes are an entry, too.
        unsafe { *self.table.wrapping_add(slot) }
    }

    fn set(&mut self, slot: usize, entry: Entry) {
        debug_assert!(slot < self.entries);
        // SAFETY: inside the table.
        unsafe { *self.table.wrapping_add(slot) = entry };
    }

    /// Where an address is looked for first.
    fn home(&self, start: usize) -> usize {
        let mixed = ((start / PAGE) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed >> 32) as usize & (self.entries - 1)
    }

    /// The slot of the block at an address. The table is at most half full.
    fn slot(&self, start: usize) -> Option<usize> {
        if self.entries == 0 || start == 0 {
            return None;
        }
        let mut slot = self.home(start);
        loop {
            match self.at(slot).start {
                0 => return None,
                own if own == start => return Some(slot),
                _ => slot = (slot + 1) & (self.entries - 1),
            }
        }
    }

    fn put(&mut self, entry: Entry) {
        let mut slot = self.home(entry.start);
        while self.at(slot).start != 0 {
            slot = (slot + 1) & (self.entries - 1);
        }
        self.set(slot, entry);
    }

    fn enter(&mut self, found: Found) {
        self.put(Entry {
            start: found.place.addr(),
            block: found.block,
        });
        self.set_guard(found);
    }

    fn write(&mut self, found: Found) {
        if let Some(slot) = self.slot(found.place.addr()) {
            let start = found.place.addr();
            let block = found.block;
            self.set(slot, Entry { start, block });
            self.set_guard(found);
        }
    }

    /// Takes a block out of the table; what was put behind it for want of room moves up.
    fn remove(&mut self, place: *mut u8) {
        let Some(mut hole) = self.slot(place.addr()) else {
            return;
        };
        let mask = self.entries - 1;
        let mut slot = hole;
        loop {
            slot = (slot + 1) & mask;
            let entry = self.at(slot);
            if entry.start == 0 {
                break;
            }
            let reach = slot.wrapping_sub(self.home(entry.start)) & mask;
            if reach >= slot.wrapping_sub(hole) & mask {
                self.set(hole, entry);
                hole = slot;
            }
        }
        let empty = Entry {
            start: 0,
            ..self.at(hole)
        };
        self.set(hole, empty);
    }
}
