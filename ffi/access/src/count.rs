//! Counting: which block an access hits, in bytes and in words.
//!
//! Words. How many instructions move a word depends on the machine: a string
//! instruction may store byte by byte, a vector unit sixteen bytes at a time.
//! So a block remembers, for reads and for writes apart, the word it moved last
//! and which of its bytes: further bytes of the same word, each once, belong to
//! the same transfer and count nothing. A byte moved again begins another
//! transfer, and so does any other word.
//!
//! Invariant: while more than one thread runs, a slot is changed only under its
//! lock; before that, only by the one thread. Byte counts are exact.

use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};

use crate::layout::{CPUS, Cpu, HEADER_BYTES, SLOTS_OFFSET, Slot};
use crate::shadow;

/// The state file, mapped; null before the first.
static PLACE: AtomicPtr<u8> = AtomicPtr::new(ptr::null_mut());
/// log2 of the bytes of a word.
static WORD_SHIFT: AtomicU32 = AtomicU32::new(2);
/// More than one thread has run.
static THREADED: AtomicBool = AtomicBool::new(false);

/// Locks that the slots share.
static LOCKS: [AtomicBool; 1024] = [const { AtomicBool::new(false) }; 1024];

/// Begins counting into the mapped state file at `place`, in words of
/// `1 << word_shift` bytes.
pub(crate) fn begin(place: *mut u8, word_shift: u32) {
    WORD_SHIFT.store(word_shift, Ordering::Relaxed);
    PLACE.store(place, Ordering::Release);
}

/// From here on slots are locked. Called before the second thread runs.
pub(crate) fn several_threads() {
    THREADED.store(true, Ordering::SeqCst);
}

/// The state of virtual processor `index`.
#[inline(always)]
pub(crate) fn cpu(index: u32) -> &'static Cpu {
    let place = PLACE.load(Ordering::Relaxed);
    let offset = HEADER_BYTES + (index as usize).min(CPUS - 1) * size_of::<Cpu>();
    // SAFETY: counting has begun, so the file is mapped, and stays; its
    // processors are in front of the slots.
    unsafe { &*place.add(offset).cast::<Cpu>() }
}

/// Slot `slot`, which has room in the file.
#[inline(always)]
pub(crate) fn slot(slot: u32) -> &'static Slot {
    let place = PLACE.load(Ordering::Relaxed);
    let offset = SLOTS_OFFSET + slot as usize * size_of::<Slot>();
    // SAFETY: as for `cpu`; callers have slots that the file has room for.
    unsafe { &*place.add(offset).cast::<Slot>() }
}

/// Adds to a number that nobody else changes meanwhile.
#[inline(always)]
pub(crate) fn add(number: &AtomicU64, more: u64) {
    number.store(
        number.load(Ordering::Relaxed).wrapping_add(more),
        Ordering::Relaxed,
    );
}

/// The lock of a slot, held until dropped; none while there is one thread.
struct Guard(Option<&'static AtomicBool>);

impl Guard {
    #[inline(always)]
    fn take(slot: u32) -> Guard {
        if !THREADED.load(Ordering::Relaxed) {
            return Guard(None);
        }
        let lock = &LOCKS[slot as usize % LOCKS.len()];
        while lock
            .compare_exchange_weak(false, true, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            core::hint::spin_loop();
        }
        Guard(Some(lock))
    }
}

impl Drop for Guard {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(lock) = self.0 {
            lock.store(false, Ordering::Release);
        }
    }
}

/// The part of an access that lies in a block.
#[derive(Clone, Copy)]
pub(crate) struct Hit {
    /// First byte.
    pub(crate) address: u64,
    /// Bytes.
    pub(crate) bytes: u64,
    /// First byte of the block.
    start: u64,
    /// What the shadow has for the block.
    value: u32,
}

impl Hit {
    /// Whether it touches a slice of `1 << shift` bytes of the block, counted
    /// from the block's first, that none touched before; true once for each
    /// slice, unless the slice begins in a granule that is shared. O(bytes).
    #[inline(always)]
    pub(crate) fn is_first_touch(&self, shift: u32) -> bool {
        let last = (self.address + self.bytes - 1 - self.start) >> shift;
        let mut slice = (self.address - self.start) >> shift;
        let mut first = false;
        while slice <= last {
            first |= shadow::mark(self.start + (slice << shift), self.value);
            slice += 1;
        }
        first
    }
}

/// Counts an access of `bytes` bytes (1 to 64) at `address` for each block it
/// touches, and gives each part to `hit`. O(bytes).
#[inline(always)]
pub(crate) fn access(address: u64, bytes: u64, write: bool, mut hit: impl FnMut(Hit)) {
    let mut at = address;
    let end = address.wrapping_add(bytes);
    let mut last = 0;
    while at < end {
        let next = (at & !(shadow::granule() - 1)) + shadow::granule();
        let value = shadow::at(at);
        // A block has all its granules, so its first shows the whole of it.
        if value != 0 && value != last {
            last = value;
            if let Some(part) = within(value, address, end, write) {
                hit(part);
            }
        }
        at = next;
    }
}

#[inline(always)]
fn within(value: u32, from: u64, to: u64, write: bool) -> Option<Hit> {
    let index = value - 1;
    let slot = slot(index);
    let _guard = Guard::take(index);
    let start = slot.address.load(Ordering::Relaxed);
    let end = start + slot.size.load(Ordering::Relaxed);
    let (from, to) = (from.max(start), to.min(end));
    // A freed slot has no bytes.
    if from >= to {
        return None;
    }
    let way = usize::from(write);
    add(&slot.bytes[way], to - from);
    let words = words(&slot.transfers[way], from, to);
    add(&slot.words[way], words);
    Some(Hit {
        address: from,
        bytes: to - from,
        start,
        value,
    })
}

/// The transfers that moving the bytes `from..to` begins.
#[inline(always)]
fn words(transfer: &AtomicU64, from: u64, to: u64) -> u64 {
    let shift = WORD_SHIFT.load(Ordering::Relaxed);
    let whole = (1u64 << shift) - 1;
    if (from | to) & whole == 0 {
        transfer.store(0, Ordering::Relaxed);
        return (to - from) >> shift;
    }
    let mut begun = 0;
    let mut at = from;
    let mut under_way = transfer.load(Ordering::Relaxed);
    while at < to {
        let word = at >> shift;
        let stop = to.min((word + 1) << shift);
        let bits = ((1u64 << (stop - at)) - 1) << (at & whole);
        let full = (1u64 << (1 << shift)) - 1;
        let same = under_way >> 8 == word && under_way & 0xff != 0 && under_way & bits == 0;
        let moved = if same { under_way & 0xff | bits } else { bits };
        begun += u64::from(!same);
        under_way = if moved == full { 0 } else { word << 8 | moved };
        at = stop;
    }
    transfer.store(under_way, Ordering::Relaxed);
    begun
}

/// Takes the counts of a block out of its slot: words read, written, bytes
/// read, written.
pub(crate) fn take(index: u32) -> [u64; 4] {
    let slot = slot(index);
    let _guard = Guard::take(index);
    let [reads, writes] = &slot.words;
    let [read, written] = &slot.bytes;
    let counts = [reads, writes, read, written].map(|number| number.swap(0, Ordering::Relaxed));
    for transfer in &slot.transfers {
        transfer.store(0, Ordering::Relaxed);
    }
    counts
}

/// Gives a slot to the block at `address`, or with zeroes to none.
pub(crate) fn place(index: u32, address: u64, size: u64) {
    let slot = slot(index);
    let _guard = Guard::take(index);
    slot.address.store(address, Ordering::Relaxed);
    slot.size.store(size, Ordering::Relaxed);
}
