//! Large blocks as mappings of their own, by the rule of [`metes_heap::mapped`].
//!
//! Records lie outside the blocks, in a hash table by address, so a block begins at a page and nothing
//! that a program writes reaches them; an address is looked up, never read. Mappings are asked for one
//! behind the other in a range of addresses far from those of the program, each with as much room
//! behind it as it has, so that it mostly grows where it is.
//!
//! Invariant: every block in the table is a mapping of whole pages, readable and writable, followed by
//! the spare where the rule says so; what the rule counts is what is mapped.

use core::mem::{offset_of, size_of};
use core::ptr;

use metes_heap::mapped::{ENTRY, FEWEST_ENTRIES, PAGE, pages};
use metes_heap::{BadFree, Mapped, MappedBlock, Overwritten};

use crate::process::{errno, set_errno};

/// Distance of the first mapping from the arena, and addresses used before they are used again.
const FAR: usize = 1 << 43;
const RANGE: usize = 1 << 43;
/// Wishes beyond it would get addresses of more bits than programs expect, where there are some.
const LAST: usize = 1 << 47;
/// Mappings of at least so many bytes begin at a multiple of it: whole page tables move.
const TABLE_ALIGN: usize = 2 << 20;
/// Addresses freed last that are remembered, to tell a second free from a stray pointer.
const FREED: usize = 64;
/// Most bytes behind a block that a hardened heap guards.
const GUARD: usize = 8;
const ACCESS: i32 = libc::PROT_READ | libc::PROT_WRITE;

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
    /// Where the spare begins, if there is one.
    spare: *mut u8,
    /// Where the next mapping is asked for, from where on, and up to where.
    next: usize,
    first: usize,
    freed: [usize; FREED],
    latest: usize,
    /// The key of the guards of a hardened heap.
    key: Option<u64>,
    /// Most blocks, and most bytes of their pages, that there were at once.
    most: [usize; 2],
}

impl Mappings {
    /// No blocks; those from `threshold` bytes on are to be mapped. `arena` is where the arena lies,
    /// `key` that of the guards of a hardened heap.
    pub(crate) fn new(threshold: Option<usize>, arena: *mut u8, key: Option<u64>) -> Self {
        let first = arena.addr().wrapping_add(FAR) / TABLE_ALIGN * TABLE_ALIGN;
        Mappings {
            rule: Mapped::new(threshold),
            table: ptr::null_mut(),
            entries: 0,
            spare: ptr::null_mut(),
            next: first,
            first,
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
        let place = keep_errno(|| self.map(pages(size), align));
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
        let place = keep_errno(|| match spare {
            0 => self.map(length, 1),
            spare if spare >= length => self.spare,
            spare => self.lengthen(self.spare, spare, length),
        });
        if !place.is_null() {
            let block = self.rule.take_over(size);
            if spare != 0 {
                self.spare = place.wrapping_add(length);
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
            true => keep_errno(|| self.lengthen(place, held, wanted)),
            false => place,
        };
        if new.is_null() {
            return new;
        }
        self.rule.resize(&mut block, size, beside);
        self.note();
        let left = wanted + self.rule.spare_of(&block);
        unmap(new.wrapping_add(left), held.max(wanted) - left);
        if spare != 0 {
            self.spare = new.wrapping_add(wanted);
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
                unmap(self.spare, elsewhere);
                self.spare = place;
                self.rule.free_spare()
            }
            false => 0,
        };
        unmap(place.wrapping_add(kept), held - kept);
        self.remove(place);
        self.freed[self.latest] = place.addr();
        self.latest = (self.latest + 1) % FREED;
    }

    /// To be called after every request; see [`Mapped::gives_back`].
    #[inline(always)]
    pub(crate) fn settle(&mut self, beside: impl FnOnce() -> usize) {
        let spare = self.rule.spare();
        if self.rule.gives_back(beside) {
            unmap(self.spare, spare);
        }
    }

    /// Gives the spare back; whether there was one.
    pub(crate) fn trim(&mut self, beside: usize) -> bool {
        let spare = self.rule.spare();
        unmap(self.spare, spare);
        self.rule.drop_spare(beside);
        spare != 0
    }

    // ------------------------------------------------------------------ Pages

    /// New pages, all zero; null when the system refuses. Alignments above a page take more
    /// addresses for a moment.
    fn map(&mut self, length: usize, align: usize) -> *mut u8 {
        let more = align.max(PAGE) - PAGE;
        let Some(whole) = length.checked_add(more) else {
            return ptr::null_mut();
        };
        let wish = self.wish(whole);
        let mapped = map_at(wish, whole, ACCESS);
        if mapped.is_null() || more == 0 {
            return mapped;
        }
        let place = mapped.wrapping_add(mapped.addr().wrapping_neg() & (align - 1));
        let before = place.addr() - mapped.addr();
        unmap(mapped, before);
        unmap(place.wrapping_add(length), more - before);
        place
    }

    /// Where a mapping of so many bytes is asked for: as much again is left free behind it; 0 for
    /// anywhere.
    fn wish(&mut self, length: usize) -> usize {
        let step = (2 * length).next_power_of_two().max(TABLE_ALIGN / 8);
        if length >= TABLE_ALIGN {
            self.next = self.next.next_multiple_of(TABLE_ALIGN);
        }
        if self.next - self.first + step > RANGE {
            self.next = self.first;
        }
        if self.next.saturating_add(step) > LAST {
            return 0;
        }
        let wish = self.next;
        self.next += step;
        wish
    }

    /// Makes a mapping longer, in place or by moving its pages; null, and all as it was, when the
    /// system refuses.
    fn lengthen(&mut self, place: *mut u8, held: usize, wanted: usize) -> *mut u8 {
        // SAFETY: a mapping of this heap's, of `held` bytes; what is behind it stays as it is.
        let grown = unsafe { libc::mremap(place.cast(), held, wanted, 0) };
        if grown != libc::MAP_FAILED {
            return grown.cast();
        }
        // The place is taken first, so that nothing else is replaced by what moves there.
        let wish = self.wish(wanted);
        let target = map_at(wish, wanted, libc::PROT_NONE);
        let moved = match target.is_null() {
            // SAFETY: as above; without a fixed place nothing is replaced.
            true => unsafe { libc::mremap(place.cast(), held, wanted, libc::MREMAP_MAYMOVE) },
            // SAFETY: as above; what is replaced was just mapped, and nothing uses it.
            false => unsafe {
                let flags = libc::MREMAP_MAYMOVE | libc::MREMAP_FIXED;
                let target = target.cast::<libc::c_void>();
                libc::mremap(place.cast(), held, wanted, flags, target)
            },
        };
        if moved != libc::MAP_FAILED {
            return moved.cast();
        }
        unmap(target, if target.is_null() { 0 } else { wanted });
        ptr::null_mut()
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
        let table = keep_errno(|| map_at(0, wanted * ENTRY, ACCESS)).cast::<Entry>();
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

/// Private anonymous pages at an address or elsewhere; null when the system refuses.
fn map_at(wish: usize, length: usize, access: i32) -> *mut u8 {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    let flags = match access {
        libc::PROT_NONE => flags | libc::MAP_NORESERVE,
        _ => flags,
    };
    let wish = ptr::without_provenance_mut::<libc::c_void>(wish);
    // SAFETY: without MAP_FIXED the place is a wish, and nothing that is mapped there is replaced.
    let mapped = unsafe { libc::mmap(wish, length, access, flags, -1, 0) };
    match mapped == libc::MAP_FAILED {
        true => ptr::null_mut(),
        false => mapped.cast(),
    }
}

/// Gives pages back. Where the system refuses, because a mapping too many would be left, at least
/// their contents.
fn unmap(place: *mut u8, length: usize) {
    if length == 0 {
        return;
    }
    keep_errno(|| {
        // SAFETY: pages of this heap's that nothing uses any more.
        unsafe {
            if libc::munmap(place.cast(), length) != 0 {
                libc::madvise(place.cast(), length, libc::MADV_DONTNEED);
            }
        }
    });
}

/// What fails here may be served otherwise.
fn keep_errno<R>(call: impl FnOnce() -> R) -> R {
    let before = errno();
    let result = call();
    set_errno(before);
    result
}
