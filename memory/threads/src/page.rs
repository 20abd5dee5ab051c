//! A page: equal slots, a bit each that says whether it is free, and marks of slots that other threads have freed.
//!
//! The description lies apart from the slots, so nothing that a program writes beyond a block reaches it.
//!
//! Invariant: a slot is in use (bit clear), marked as freed by another thread (bit clear, mark set), or free (bit set). All
//! but the marks and `owner` is changed by the owner alone; others read what does not change while a slot is in use.

use core::cell::Cell;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use crate::classes::{CLASSES, slot_of};
use crate::node::Node;
use crate::parked::{Marked, Parked};

/// Words of bits of a page: 64 KiB in slots of 16 bytes.
pub(crate) const WORDS: usize = 64;
/// Bits behind the point of the reciprocal of a slot of the narrowest pages. It is too large by less than a slot in so many
/// bits; so an offset times it has, behind the point, less than a page where it is a multiple of the slot, and 2¹⁹ or more
/// where it is none, as a slot has at most 2¹³ bytes.
const POINT: u32 = 32;
/// What is behind the point where an offset is no multiple.
const BETWEEN: u64 = (1 << POINT) - (1 << KINDS[0].log2);
const _: () = assert!(KINDS[0].largest << KINDS[0].log2 < 1 << POINT);

/// A kind of page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    /// Bytes of a page.
    pub(crate) log2: u32,
    /// The largest slot.
    largest: usize,
}

/// The kinds of page, by the size of their slots.
pub(crate) const KINDS: [Kind; 3] = [
    Kind {
        log2: 16,
        largest: 8 << 10,
    },
    Kind {
        log2: 18,
        largest: 32 << 10,
    },
    Kind {
        log2: 20,
        largest: 128 << 10,
    },
];

impl Kind {
    /// Bytes of a page.
    pub(crate) const fn bytes(&self) -> usize {
        1 << self.log2
    }

    /// The kind of the pages of a class.
    pub(crate) const fn of(class: usize) -> usize {
        let slot = slot_of(class);
        let mut kind = 0;
        while KINDS[kind].largest < slot {
            kind += 1;
        }
        kind
    }
}

/// What a page of a class is like.
#[derive(Clone, Copy, Debug)]
struct Shape {
    slot: u32,
    slots: u32,
    reciprocal: u64,
}

const SHAPES: [Shape; CLASSES] = {
    let mut shapes = [Shape {
        slot: 0,
        slots: 0,
        reciprocal: 0,
    }; CLASSES];
    let mut class = 0;
    while class < CLASSES {
        let slot = slot_of(class);
        let slots = KINDS[Kind::of(class)].bytes() / slot;
        assert!(slots <= 64 * WORDS && slots >= 2);
        shapes[class] = Shape {
            slot: slot as u32,
            slots: slots as u32,
            reciprocal: (1_u64 << POINT).div_ceil(slot as u64),
        };
        class += 1;
    }
    shapes
};

/// The owner of a page that is nobody's. No node lies there, and no thread without a node has it.
pub(crate) const NOBODY: *mut Node = ptr::without_provenance_mut(1);

/// Where its owner has a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Whereabouts {
    /// Apart, without a slot in use, or of nobody.
    Spare = 0,
    /// The page that requests of its class are served from.
    Current,
    /// In the list of its class: it has free slots.
    Listed,
    /// Apart, without a free slot.
    Full,
}

/// A page's description. Zero bytes are one of nobody.
#[derive(Debug)]
#[repr(C, align(128))]
pub(crate) struct Page {
    /// The word of `free` that requests are served from, and where its first slot lies.
    pub(crate) current: Cell<*const AtomicU64>,
    pub(crate) at: Cell<*mut u8>,
    /// Bytes of a slot, and its reciprocal.
    pub(crate) slot: Cell<usize>,
    reciprocal: Cell<u64>,
    pub(crate) owner: AtomicPtr<Node>,
    /// Slots that are not free.
    pub(crate) used: Cell<usize>,
    slots: Cell<usize>,
    /// The words that have free slots, as far as is known, but for those that were not begun.
    open: Cell<u64>,
    // Here a cache line ends.
    start: Cell<*mut u8>,
    pub(crate) next: Cell<*const Page>,
    pub(crate) previous: Cell<*const Page>,
    class: Cell<u8>,
    /// Words that were begun: slots of the others have never been in use, and their memory was maybe never touched.
    begun: Cell<u8>,
    pub(crate) whereabouts: Cell<Whereabouts>,
    /// Whether it is full, for others.
    full: AtomicBool,
    pub(crate) parked: Parked<WORDS>,
    free: [AtomicU64; WORDS],
}

impl Page {
    /// The slot at an offset of a page of the narrowest kind; nothing if none begins there.
    #[inline(always)]
    pub(crate) fn narrow_slot_at(&self, offset: usize) -> Option<usize> {
        let product = (offset as u64).wrapping_mul(self.reciprocal.get());
        let index = (product >> POINT) as usize;
        (product & BETWEEN == 0 && index < self.slots.get()).then_some(index)
    }

    /// The slot at an offset of the page; nothing if none begins there.
    pub(crate) fn slot_at(&self, offset: usize) -> Option<usize> {
        let index = offset.checked_div(self.slot.get())?;
        (index * self.slot.get() == offset && index < self.slots.get()).then_some(index)
    }

    /// Frees a slot, of a page of its own; what its word was before, or nothing if it is free already.
    #[inline(always)]
    pub(crate) fn give(&self, slot: usize) -> Option<u64> {
        let (word, bit) = (self.word(slot / 64), 1 << (slot % 64));
        let before = word.load(Ordering::Relaxed);
        // Another thread may have freed it before.
        if (before | self.parked.marks(slot / 64)) & bit != 0 {
            return None;
        }
        word.store(before | bit, Ordering::Relaxed);
        self.used.set(self.used.get() - 1);
        Some(before)
    }

    #[inline(always)]
    pub(crate) fn word(&self, word: usize) -> &AtomicU64 {
        &self.free[word % WORDS]
    }

    /// Frees a slot of another's page; false if it is free already. While a slot is in use its page does not change hands.
    #[inline(always)]
    pub(crate) fn free_for_owner(&self, slot: usize) -> bool {
        let owner = self.owner.load(Ordering::Relaxed);
        if ptr::eq(owner, NOBODY) || self.is_free(slot) {
            return false;
        }
        match self.parked.mark(slot) {
            Marked::Twice => return false,
            Marked::Told => {}
            Marked::First => self.tell(owner),
        }
        true
    }

    #[cold]
    #[inline(never)]
    fn tell(&self, owner: *const Node) {
        let address = ptr::from_ref(self).expose_provenance();
        // SAFETY: nodes stay, and a page with slots has an owner.
        unsafe { (*owner).chain.0.push(address, &self.parked) };
    }

    /// Whether a slot is free, as far as its owner knows; of another's page that may be over soon.
    #[inline(always)]
    pub(crate) fn is_free(&self, slot: usize) -> bool {
        self.word(slot / 64).load(Ordering::Relaxed) & (1 << (slot % 64)) != 0
    }

    /// The class of its slots.
    pub(crate) fn class(&self) -> usize {
        usize::from(self.class.get())
    }

    /// The kind that it is of.
    pub(crate) fn kind(&self) -> usize {
        Kind::of(self.class() % CLASSES)
    }

    /// Words that have slots.
    fn words(&self) -> usize {
        self.slots.get().div_ceil(64)
    }

    /// The slots that each word has, of so many.
    fn masks(slots: usize) -> impl Iterator<Item = u64> {
        (0..slots.div_ceil(64)).map(move |word| match slots - 64 * word {
            64.. => u64::MAX,
            rest => (1 << rest) - 1,
        })
    }

    /// Makes a page of nobody, which begins at `start`, one of `owner` with free slots of a class. A step for each word, 64
    /// at most.
    pub(crate) fn begin(&self, start: *mut u8, class: usize, owner: *mut Node) {
        debug_assert!(self.used.get() == 0, "nobody has a slot of it");
        let shape = SHAPES[class];
        let slots = shape.slots as usize;
        for (word, mask) in self.free.iter().zip(Page::masks(slots)) {
            word.store(mask, Ordering::Relaxed);
        }
        let words = slots.div_ceil(64);
        self.parked.clear(words);
        self.open.set(1);
        self.begun.set(1);
        self.slot.set(shape.slot as usize);
        self.reciprocal.set(shape.reciprocal);
        self.slots.set(slots);
        self.class.set(class as u8);
        self.start.set(start);
        self.full.store(false, Ordering::Relaxed);
        self.owner.store(owner, Ordering::Relaxed);
        self.turn_to(0);
    }

    fn turn_to(&self, word: usize) {
        self.current.set(self.word(word));
        self.at
            .set(self.start.get().wrapping_add(64 * word * self.slot.get()));
    }

    /// Turns to the next word that has free slots, around; false if none has. So a word that slots are freed in has got more
    /// of them when it is its turn. Before it begins again it begins another word if half of the slots are in use. O(1).
    pub(crate) fn turn(&self) -> bool {
        let behind = self.open.get() & (u64::MAX << self.current_word());
        if behind == 0 {
            self.begin_word();
        }
        let next = if behind == 0 { self.open.get() } else { behind };
        if next == 0 {
            return false;
        }
        self.turn_to(next.trailing_zeros() as usize);
        true
    }

    /// Begins another word, if there is one, and less than half of the slots of those begun is free.
    fn begin_word(&self) {
        let begun = usize::from(self.begun.get());
        if begun < self.words() && self.used.get() >= 32 * begun {
            self.open_word(begun);
            self.begun.set(begun as u8 + 1);
        }
    }

    fn current_word(&self) -> usize {
        let first: *const AtomicU64 = self.free.as_ptr();
        (self.current.get().addr() - first.addr()) / size_of::<AtomicU64>()
    }

    /// Turns away from the word that requests were served from, which has no free slot.
    pub(crate) fn close_word(&self) {
        let word = self.current_word();
        debug_assert_eq!(self.word(word).load(Ordering::Relaxed), 0);
        self.open.set(self.open.get() & !(1 << word));
    }

    /// Says that a word has free slots.
    pub(crate) fn open_word(&self, word: usize) {
        self.open.set(self.open.get() | 1 << word);
    }

    /// Says whether it has no free slot.
    pub(crate) fn set_full(&self, full: bool) {
        self.full.store(full, Ordering::Release);
    }

    /// Frees the slots of a word that were marked; which were free before.
    pub(crate) fn merge(&self, word: usize) -> u64 {
        let marked = self.parked.take_word(word);
        let own = self.word(word);
        let before = own.load(Ordering::Relaxed);
        // What the program freed twice, here and there, is free already.
        own.store(before | marked, Ordering::Relaxed);
        let freed = (marked & !before).count_ones() as usize;
        self.used.set(self.used.get() - freed);
        if marked != 0 {
            self.open_word(word);
        }
        before
    }

    /// Takes a page off its owner whose slots were all freed by others, where `some` was taken of its marks: its owner has
    /// it nowhere, as it is full, and nobody will free any of it. Steps for each word, 64 at most.
    pub(crate) fn take_over(&self, some: u64) -> bool {
        let whole = self.full.load(Ordering::Acquire)
            && self.parked.is_whole(some, Page::masks(self.slots.get()));
        if whole {
            self.parked.clear(self.words());
            self.used.set(0);
            self.disown();
        }
        whole
    }

    /// Makes it one of nobody; it has no slot in use.
    pub(crate) fn disown(&self) {
        debug_assert_eq!(self.used.get(), 0);
        self.whereabouts.set(Whereabouts::Spare);
        self.owner.store(NOBODY, Ordering::Relaxed);
    }

    /// Slots that are not free, of which some may be marked; counted while its owner may be at work.
    pub(crate) fn slots_in_use(&self) -> usize {
        let free: u32 = (self.free.iter().zip(Page::masks(self.slots.get())))
            .map(|(word, mask)| (word.load(Ordering::Relaxed) & mask).count_ones())
            .sum();
        self.slots.get().saturating_sub(free as usize)
    }
}

/// A page without slots: the current one of a class that has none.
struct Empty(Page);

// SAFETY: nobody changes it: it has no slot that could be taken or freed, and is in no list.
unsafe impl Sync for Empty {}

static ZERO: AtomicU64 = AtomicU64::new(0);
static EMPTY: Empty = Empty(Page {
    current: Cell::new(&raw const ZERO),
    at: Cell::new(ptr::null_mut()),
    slot: Cell::new(0),
    reciprocal: Cell::new(0),
    owner: AtomicPtr::new(ptr::null_mut()),
    used: Cell::new(0),
    slots: Cell::new(0),
    open: Cell::new(0),
    start: Cell::new(ptr::null_mut()),
    next: Cell::new(ptr::null()),
    previous: Cell::new(ptr::null()),
    class: Cell::new(0),
    begun: Cell::new(0),
    whereabouts: Cell::new(Whereabouts::Current),
    full: AtomicBool::new(false),
    parked: Parked::new(),
    free: [const { AtomicU64::new(0) }; WORDS],
});

/// The page without slots.
pub(crate) const fn empty() -> *const Page {
    &raw const EMPTY.0
}
