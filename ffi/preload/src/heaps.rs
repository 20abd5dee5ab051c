//! The heap of the process: which kind it is, its lock, and how requests reach it.
//!
//! A request is answered by a function compiled for the kind of heap and, apart, for a process with one
//! thread: which of them it is decided once, before the function begins.
//!
//! Invariant: the heap is made once, by the first thread that needs it, and used under its lock only.

use core::cell::UnsafeCell;

use metes_config::{Config, StoreKind, ThreadHeap};
use metes_heap::description::{GENERAL, General};
use metes_heap::index::Index;
use metes_heap::index::classes::{ChosenClasses, SizeClasses};
use metes_heap::store::tagged::TaggedBlock;
use metes_heap::{
    AnyPool, Composite, HalfFit, Hardened, Heap, IndexKind, Limits, SegregatedFit, Sizes, Tagged,
    Tlsf,
};

use crate::host::{Host, Records};
use crate::lock::{self, Held, Marked};
use crate::process::{random, read, reason, refuse, variable};
use crate::report::Report;
use crate::threads;

/// A heap of one general pool.
type One<I, S> = Host<I, S, 1, false>;
/// A heap of any pools.
type Any<S> = Host<AnyPool<TaggedBlock>, S, GENERAL, true>;

/// The kinds of heap. Those of named indexes are compiled for their parameters; they decide what the general
/// kind decides. The tag is a byte of its own, so that one comparison tells the kind.
#[repr(u8)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one, and nothing may be allocated"
)]
pub(crate) enum Heaps {
    /// There is none yet.
    Unmade,
    Tlsf(One<Tlsf<SECOND_LEVEL>, Tagged>),
    HalfFit(One<HalfFit, Tagged>),
    SegregatedFit(One<SegregatedFit, Tagged>),
    /// Size classes of any parameters.
    Classes(One<SizeClasses<ChosenClasses>, Tagged>),
    Any(Any<Tagged>),
    HardenedTlsf(One<Tlsf<SECOND_LEVEL>, Hardened>),
    Hardened(Any<Hardened>),
}

/// The second level of the named TLSF.
const SECOND_LEVEL: usize = 32;

/// Calls the same of whichever kind of heap it is, which was made.
macro_rules! each {
    ($heaps:expr, $host:ident => $call:expr) => {
        match $heaps {
            $crate::heaps::Heaps::Unmade => unreachable!("a heap is made before it is given out"),
            $crate::heaps::Heaps::Tlsf($host) => $call,
            $crate::heaps::Heaps::HalfFit($host) => $call,
            $crate::heaps::Heaps::SegregatedFit($host) => $call,
            $crate::heaps::Heaps::Classes($host) => $call,
            $crate::heaps::Heaps::Any($host) => $call,
            $crate::heaps::Heaps::HardenedTlsf($host) => $call,
            $crate::heaps::Heaps::Hardened($host) => $call,
        }
    };
}
pub(crate) use each;

/// Answers a request by `function(heap, held, arguments…)`, and by `again` once there is a heap. The
/// functions are `extern "C"`, as what cannot unwind may take the place of its caller.
macro_rules! answer {
    ($function:ident($($argument:expr),*), $again:expr) => {
        match $crate::heaps::mark() {
            Some(locked) => $crate::heaps::answer!(@of locked, $function($($argument),*), $again),
            None => $crate::heaps::apart(move || {
                let locked = $crate::heaps::hold_among_others();
                $crate::heaps::answer!(@of locked, $function($($argument),*), $again)
            }),
        }
    };
    // The same without code of its own for a process with one thread: for what is longer or rarer.
    (@any $function:ident($($argument:expr),*), $again:expr) => {
        $crate::heaps::answer!(@of $crate::heaps::hold(), $function($($argument),*), $again)
    };
    (@of $locked:expr, $function:ident($($argument:expr),*), $again:expr) => {{
        let $crate::heaps::Locked { heap, held } = $locked;
        match heap {
            $crate::heaps::Heaps::Unmade => $crate::heaps::first(held, move || $again),
            made => $crate::heaps::each!(made, heap => $function(heap, held, $($argument),*)),
        }
    }};
}
pub(crate) use answer;

impl Heaps {
    fn new(config: &Config, report: Option<Report>) -> Self {
        let heap = &config.heap;
        let hardened = config.store == StoreKind::Hardened;
        let alone = heap.general.len() == 1 && heap.dedicated.is_empty() && heap.slabs().is_empty();
        let only = heap.general.iter().next().filter(|_| alone);
        let classes = only.and_then(|General { index, limits, .. }| match index {
            IndexKind::Classes {
                second_level,
                probes,
            } => Some(ChosenClasses {
                second_level_log2: second_level.trailing_zeros(),
                probes,
                limits,
            }),
            _ => None,
        });
        let named = classes.filter(|classes| classes.limits == Limits::NONE);
        let named = named.map(|classes| (1_usize << classes.second_level_log2, classes.probes));
        match (hardened, named, classes) {
            (false, Some((SECOND_LEVEL, 0)), _) => {
                Heaps::Tlsf(one(config, report, Tlsf::new(), Tagged::new()))
            }
            (false, Some((1, 0)), _) => {
                Heaps::HalfFit(one(config, report, HalfFit::new(), Tagged::new()))
            }
            (false, Some((1, usize::MAX)), _) => {
                let index = SegregatedFit::new();
                Heaps::SegregatedFit(one(config, report, index, Tagged::new()))
            }
            (false, None | Some(_), Some(classes)) => {
                let index = SizeClasses::with(classes);
                Heaps::Classes(one(config, report, index, Tagged::new()))
            }
            (false, _, None) => Heaps::Any(Host::new(config, report, |objects| {
                Composite::describe(heap, |_| Tagged::new(), objects)
            })),
            (true, Some((SECOND_LEVEL, 0)), _) => {
                let store = Hardened::new(random());
                Heaps::HardenedTlsf(one(config, report, Tlsf::new(), store))
            }
            (true, ..) => Heaps::Hardened(Host::new(config, report, |objects| {
                Composite::describe(heap, |_| Hardened::new(random()), objects)
            })),
        }
    }

    /// The heap that the environment asks for, and whether heaps of threads stand in front of it, which are yet to be made.
    fn of_environment() -> (Self, Option<Front>) {
        let mut threads = None;
        let config = match variable("METES_HEAP") {
            None => metes_config::spec_on_host("tlsf"),
            Some(text) => {
                let Ok(text) = String::from_utf8(text) else {
                    refuse("METES_HEAP is not UTF-8 text");
                };
                if metes_config::is_path(&text) {
                    metes_config::parse(&read_text(&text), &text)
                } else if let Some(found) = metes_config::thread_heap(&text) {
                    found.and_then(|found| {
                        threads = Some(found);
                        metes_config::spec_on_host("tlsf")
                    })
                } else {
                    metes_config::spec_on_host(&text)
                }
            }
        };
        let config = match config {
            Ok(config) => config,
            Err(error) => refuse(&format!("METES_HEAP: {}", error.one_line())),
        };
        if matches!(config.store, StoreKind::Moving(_)) {
            refuse("METES_HEAP: this compact-fit moves blocks, which malloc cannot: say moving=no");
        }
        if !config.store.inside() {
            let name = config.name();
            refuse(&format!(
                "METES_HEAP: {name} keeps its records outside the memory, which malloc cannot: \
                 leave out the `store`"
            ));
        }
        let report = variable("METES_REPORT").filter(|pattern| !pattern.is_empty());
        let counts = report.is_some();
        let heaps = Self::new(&config, report.map(Report::new));
        let front = threads.map(|wish| Front {
            wish,
            config,
            counts,
        });
        (heaps, front)
    }
}

/// Heaps of threads that are wanted.
struct Front {
    wish: ThreadHeap,
    config: Config,
    counts: bool,
}

/// A heap of one general pool.
fn one<I: Index<S>, S: Records>(
    config: &Config,
    report: Option<Report>,
    index: I,
    store: S,
) -> One<I, S> {
    Host::new(config, report, |objects| {
        Composite::new([Some(Heap::new(index, store))], [Sizes::ALL], objects)
    })
}

fn read_text(path: &str) -> String {
    let Ok(name) = std::ffi::CString::new(path) else {
        refuse("METES_HEAP is a path with a zero byte");
    };
    let bytes = match read(&name) {
        Ok(bytes) => bytes,
        Err(errno) => refuse(&format!(
            "METES_HEAP: cannot read {path}: {}",
            reason(errno)
        )),
    };
    match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(_) => refuse(&format!("METES_HEAP: {path} is not UTF-8 text")),
    }
}

struct Shared(UnsafeCell<Heaps>);

// SAFETY: used by the holder of the lock only.
unsafe impl Sync for Shared {}

static SHARED: Shared = Shared(UnsafeCell::new(Heaps::Unmade));

/// A heap, or whichever there is, and what says that it is this thread's.
pub(crate) struct Locked<T: 'static, H> {
    pub(crate) heap: &'static mut T,
    pub(crate) held: H,
}

impl<H> Locked<Heaps, H> {
    /// The heap under a lock that is held.
    ///
    /// # Safety
    /// `held` says that the lock of the heap is this thread's.
    #[inline(always)]
    unsafe fn by(held: H) -> Self {
        // SAFETY: the caller's contract; the reference ends before what is held is given back.
        let heap = unsafe { &mut *SHARED.0.get() };
        Locked { heap, held }
    }
}

/// The heap of the only thread of a process, maybe not made yet; `None` where there are more threads.
#[inline(always)]
pub(crate) fn mark() -> Option<Locked<Heaps, Marked>> {
    // SAFETY: the mark was just made.
    lock::mark().map(|held| unsafe { Locked::by(held) })
}

/// Locks the heap, which may not be made yet, where there are other threads.
#[inline(always)]
pub(crate) fn hold_among_others() -> Locked<Heaps, Held> {
    // SAFETY: the lock was just taken.
    unsafe { Locked::by(lock::hold_among_others()) }
}

/// Locks the heap, which may not be made yet.
pub(crate) fn hold() -> Locked<Heaps, Held> {
    // SAFETY: the lock was just taken.
    unsafe { Locked::by(lock::hold()) }
}

/// Locks the heap; makes it first, if this is its first use.
pub(crate) fn lock() -> Locked<Heaps, Held> {
    let locked = hold();
    if !matches!(locked.heap, Heaps::Unmade) {
        return locked;
    }
    drop(locked.held);
    begin();
    hold()
}

/// Locks the heap if nobody holds it, and it was made.
pub(crate) fn try_lock() -> Option<Locked<Heaps, Held>> {
    // SAFETY: the lock was just taken.
    made(unsafe { Locked::by(lock::try_hold()?) })
}

/// Locks the heap at the end of the process, if it was made.
pub(crate) fn lock_at_exit() -> Option<Locked<Heaps, Held>> {
    // SAFETY: the lock was just taken.
    made(unsafe { Locked::by(lock::hold_at_exit()?) })
}

fn made(locked: Locked<Heaps, Held>) -> Option<Locked<Heaps, Held>> {
    (!matches!(locked.heap, Heaps::Unmade)).then_some(locked)
}

/// Calls what is no part of its caller's code.
#[inline(never)]
pub(crate) extern "C" fn apart<R>(call: impl FnOnce() -> R) -> R {
    call()
}

/// Answers the first request.
#[cold]
#[inline(never)]
pub(crate) extern "C" fn first<H, R>(held: H, again: impl FnOnce() -> R) -> R {
    drop(held);
    begin();
    again()
}

/// Makes the heap, and watches for forks from then on: not from this library's
/// constructor on, as those of other libraries may come first, start threads
/// and fork. Now the process has one thread, because to start one allocates.
#[cold]
fn begin() {
    let Locked { heap, held } = hold();
    if !matches!(heap, Heaps::Unmade) {
        return;
    }
    let (made, front) = Heaps::of_environment();
    *heap = made;
    drop(held);
    if let Some(front) = front {
        threads::begin(front.wish, &front.config, front.counts);
    }
    lock::prepare_for_forks();
    // SAFETY: three functions without arguments, for as long as this library is
    // loaded. If it allocates, it allocates here: the lock is free.
    let watched = unsafe {
        libc::pthread_atfork(
            Some(lock::before_fork),
            Some(lock::after_fork),
            Some(lock::after_fork_in_child),
        )
    };
    if watched != 0 {
        refuse("no memory is left to watch for forks");
    }
}
