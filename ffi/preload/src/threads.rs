//! A heap for each thread, in front of the heap of the process: blocks up to [`LARGEST`] bytes come from it, larger ones from
//! the one behind, under its lock.
//!
//! Invariant: whether there is one is decided once, with the heap behind it; its lock is that of the heap behind it, so one
//! lock is held while the process forks.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use metes_config::{Config, ThreadHeap};
use metes_heap::lock::Lock;
use metes_heap::{BadFree, Levels, Statistics};
pub(crate) use metes_threads::stays;
use metes_threads::{Ground, LARGEST, NotFreed, PARTS, Part, ThreadHeaps};

use crate::arena::Arena;
use crate::lock;
use crate::process::refuse;
use crate::report::Digest;

/// Most bytes of pages of a kind.
const RESERVE: usize = 1 << 36;

static SERVES: Once = Once(UnsafeCell::new(false));
/// Apart, so that one comparison tells it.
static DIRECTLY: Once = Once(UnsafeCell::new(false));
static HEAPS: ThreadHeaps<OfProcess> = ThreadHeaps::new(OfProcess(UnsafeCell::new(None)));
static COUNTS: Counts = Counts::new();

/// What is written once, while the process has one thread.
struct Once(UnsafeCell<bool>);

// SAFETY: as it says.
unsafe impl Sync for Once {}

/// The memory of pages and nodes, under the lock of the heap.
struct OfProcess(UnsafeCell<Option<Arena>>);

// SAFETY: used under the lock only.
unsafe impl Sync for OfProcess {}

// SAFETY: the lock of the process; who forks holds it meanwhile, and no other thread runs in the child.
unsafe impl Lock for OfProcess {
    fn hold<R>(&self, body: impl FnOnce() -> R) -> R {
        let _held = lock::hold();
        body()
    }
}

// SAFETY: what the arena has opened is fresh memory that stays, and there is no other user of it.
unsafe impl Ground for OfProcess {
    fn open(&self, part: usize, bytes: usize) -> bool {
        // SAFETY: called under the lock.
        let arena = unsafe { &mut *self.0.get() };
        arena.as_mut().is_some_and(|arena| arena.open(part, bytes))
    }

    fn is_direct(&self) -> bool {
        !COUNTS.wanted.load(Ordering::Relaxed)
    }
}

/// Makes the heaps, before there is a second thread. `counts`: each request is counted, for a report.
pub(crate) fn begin(wish: ThreadHeap, config: &Config, counts: bool) {
    let levels = Levels::of(&config.heap, config.level_sizes());
    let increment = config.arena.increment;
    let Some(arena) = Arena::new(PARTS, RESERVE, increment, levels) else {
        refuse("no address space is left for a heap: raise the limit (ulimit -v)");
    };
    let parts = core::array::from_fn(|number| Part {
        start: arena.start(number),
        bytes: arena.limit(number),
    });
    // SAFETY: nobody uses it before `lay`.
    unsafe { *HEAPS.ground().0.get() = Some(arena) };
    COUNTS.wanted.store(counts, Ordering::Relaxed);
    // SAFETY: once, before anything else; the parts are the arena's.
    if !unsafe { HEAPS.lay(parts, wish.threads) } {
        refuse("no memory is left to begin a heap with");
    }
    if !HEAPS.watch_threads() {
        refuse(
            "no key of threads is left (pthread_key_create), which a heap for each thread needs",
        );
    }
    // SAFETY: the process has one thread.
    unsafe {
        *DIRECTLY.0.get() = !counts;
        *SERVES.0.get() = true;
    }
}

/// Whether there are heaps of threads.
#[inline(always)]
pub(crate) fn serve() -> bool {
    // SAFETY: written before there is a second thread.
    unsafe { *SERVES.0.get() }
}

/// Whether there are, and requests may go straight to them.
#[inline(always)]
pub(crate) fn serve_directly() -> bool {
    // SAFETY: as in `serve`.
    unsafe { *DIRECTLY.0.get() }
}

/// A block that the calling thread has at hand; none: ask on, by [`allocate`].
#[inline(always)]
pub(crate) fn at_hand(size: usize) -> Option<NonNull<u8>> {
    HEAPS.allocate_at_hand(size)
}

/// As [`at_hand`], which has found none.
#[inline(always)]
pub(crate) fn at_next(size: usize) -> Option<NonNull<u8>> {
    HEAPS.allocate_next(size)
}

/// A block that was not at hand; `behind` asks the heap behind.
#[inline(always)]
pub(crate) fn allocate(size: usize, align: usize, behind: impl FnOnce() -> *mut u8) -> *mut u8 {
    let own = match size <= LARGEST {
        true => HEAPS.allocate_by_thread(size, align),
        false => None,
    };
    let block = own.map_or_else(behind, NonNull::as_ptr);
    if COUNTS.wanted.load(Ordering::Relaxed) {
        COUNTS.allocated(NonNull::new(block), size);
    }
    block
}

/// Frees a block of a thread's pages, or leaves it to `otherwise`.
///
/// # Safety
/// The program frees it.
#[inline(always)]
pub(crate) unsafe fn free_at_hand(place: *mut u8, otherwise: unsafe extern "C" fn(*mut u8)) {
    // SAFETY: the caller's contract.
    unsafe { HEAPS.free_at_hand(place, otherwise) }
}

/// What is to be done with a block.
pub(crate) enum Freed {
    Done,
    /// It is the heap's behind.
    Behind,
    Bad(BadFree),
}

/// Frees a block, if it is a thread's.
///
/// # Safety
/// The program frees it.
#[inline(always)]
pub(crate) unsafe fn free(place: NonNull<u8>, size_behind: impl FnOnce() -> usize) -> Freed {
    let counts = COUNTS.wanted.load(Ordering::Relaxed);
    let size = counts.then(|| HEAPS.usable(place));
    // SAFETY: the caller's contract.
    let freed = match unsafe { HEAPS.free_by_thread(place) } {
        Ok(()) => Freed::Done,
        Err(NotFreed::Elsewhere) => Freed::Behind,
        Err(NotFreed::Bad(why)) => Freed::Bad(why),
    };
    match (&freed, size) {
        (Freed::Done, Some(Ok(size))) => COUNTS.freed(size),
        (Freed::Behind, Some(_)) => COUNTS.freed(size_behind()),
        _ => {}
    }
    freed
}

/// Bytes that a block of a thread holds; nothing if it is none, or the heap's behind.
pub(crate) fn usable(place: NonNull<u8>) -> Result<Option<usize>, BadFree> {
    match HEAPS.usable(place) {
        Ok(size) => Ok(Some(size)),
        Err(NotFreed::Elsewhere) => Ok(None),
        Err(NotFreed::Bad(why)) => Err(why),
    }
}

/// Bytes that a block of the heap behind holds, if they are counted.
pub(crate) fn usable_behind(size: impl FnOnce() -> usize) -> usize {
    match COUNTS.wanted.load(Ordering::Relaxed) {
        true => size(),
        false => 0,
    }
}

/// Counts a block that the heap behind gave.
pub(crate) fn noted(block: *mut c_void, size: usize) -> *mut c_void {
    if COUNTS.wanted.load(Ordering::Relaxed) {
        COUNTS.allocated(NonNull::new(block.cast()), size);
    }
    block
}

/// Counts that a block was resized where it was, or that one of the heap behind was.
pub(crate) fn resized(before: usize, after: usize) {
    if COUNTS.wanted.load(Ordering::Relaxed) {
        COUNTS.resized(before, after);
    }
}

/// What all heaps together have, where `behind` is what the one behind has.
pub(crate) fn statistics(behind: Statistics) -> Statistics {
    if !serve() {
        return behind;
    }
    let own = HEAPS.footprint();
    let mut all = Statistics {
        live: behind.live + own.used,
        blocks: behind.blocks + own.slots,
        footprint: behind.footprint + own.pages + own.records,
        record_bytes: behind.record_bytes + own.records,
        ..behind
    };
    all.peak_live = all.peak_live.max(all.live);
    if COUNTS.wanted.load(Ordering::Relaxed) {
        COUNTS.tell(&mut all);
    }
    all
}

/// As [`statistics`], for the report at the end.
pub(crate) fn report(behind: Statistics) -> (Statistics, Digest) {
    let all = statistics(behind);
    let events = all.allocations + all.frees + all.resizes;
    (all, Digest::of_number(events))
}

/// What was asked for, counted at each request where a report is wanted. Bytes are those of slots: a page does not know what was
/// requested.
struct Counts {
    wanted: AtomicBool,
    allocations: AtomicU64,
    frees: AtomicU64,
    resizes: AtomicU64,
    failures: AtomicU64,
    live: AtomicUsize,
    peak_live: AtomicUsize,
}

impl Counts {
    const fn new() -> Self {
        Counts {
            wanted: AtomicBool::new(false),
            allocations: AtomicU64::new(0),
            frees: AtomicU64::new(0),
            resizes: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            live: AtomicUsize::new(0),
            peak_live: AtomicUsize::new(0),
        }
    }

    fn allocated(&self, block: Option<NonNull<u8>>, size: usize) {
        let Some(place) = block else {
            self.failures.fetch_add(1, Ordering::Relaxed);
            return;
        };
        self.allocations.fetch_add(1, Ordering::Relaxed);
        self.grows(HEAPS.usable(place).unwrap_or(size.max(1)));
    }

    fn grows(&self, bytes: usize) {
        let live = self.live.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak_live.fetch_max(live, Ordering::Relaxed);
    }

    fn freed(&self, size: usize) {
        self.frees.fetch_add(1, Ordering::Relaxed);
        self.live.fetch_sub(size, Ordering::Relaxed);
    }

    fn resized(&self, before: usize, after: usize) {
        self.resizes.fetch_add(1, Ordering::Relaxed);
        self.grows(after);
        self.live.fetch_sub(before, Ordering::Relaxed);
    }

    fn tell(&self, statistics: &mut Statistics) {
        statistics.allocations = self.allocations.load(Ordering::Relaxed);
        statistics.frees = self.frees.load(Ordering::Relaxed);
        statistics.resizes = self.resizes.load(Ordering::Relaxed);
        statistics.failures = self.failures.load(Ordering::Relaxed);
        statistics.live = self.live.load(Ordering::Relaxed);
        statistics.peak_live = self.peak_live.load(Ordering::Relaxed);
    }
}
