//! `libmetes_preload.so`: the malloc family of any dynamically linked program,
//! on a heap of Metes.
//!
//! ```text
//! METES_HEAP=tlsf LD_PRELOAD=libmetes_preload.so program
//! ```
//!
//! `METES_HEAP` is a spec or the path of a `heap.toml` (default `tlsf`);
//! `METES_REPORT` a path for a line of JSON written at exit, where `%p` stands
//! for the process.
//!
//! Invariants:
//! - nothing here calls malloc: the library's own code allocates in
//!   [`Scratch`], and no function of the C library that might allocate is
//!   called while the lock is held;
//! - it serves from the first call on, whenever that comes.

mod abi;
mod arena;
mod heaps;
mod host;
mod lock;
mod mapped;
mod pages;
mod process;
mod report;
mod threads;

pub use abi::*;

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use metes_ffi::Scratch;

use heaps::{Heaps, Locked, each};
use lock::Held;

#[global_allocator]
static SCRATCH: Scratch = Scratch::new();

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;

/// Before main: the heap is made, or the process refused, even if nothing has
/// been allocated yet.
extern "C" fn begin() {
    static BEGUN: AtomicBool = AtomicBool::new(false);
    drop(heaps::lock().held);
    if !BEGUN.swap(true, Ordering::Relaxed) {
        // A panic means that a program wrote where it must not. The usual hook
        // might allocate, with the lock held.
        std::panic::set_hook(Box::new(|info| {
            process::say(&format!("metes: the heap was overwritten: {info}\n"));
            // SAFETY: has no precondition.
            unsafe { libc::abort() }
        }));
    }
}

/// At exit: the report.
extern "C" fn end() {
    // A handler of a signal may be what exits.
    leave_report(heaps::lock_at_exit());
}

/// See _exit(2). Programs that leave this way (shells do) report too, unless
/// they are inside the heap: it may be a signal handler that leaves.
#[unsafe(no_mangle)]
pub extern "C" fn _exit(status: c_int) -> ! {
    leave_report(heaps::try_lock());
    process::leave(status)
}

/// See _exit(2).
#[unsafe(no_mangle)]
pub extern "C" fn _Exit(status: c_int) -> ! {
    _exit(status)
}

/// Writes the report, if one is wanted; once for each process.
fn leave_report(locked: Option<Locked<Heaps, Held>>) {
    static LEFT_BY: AtomicI32 = AtomicI32::new(0);
    let Some(Locked { heap, held }) = locked else {
        return;
    };
    let Some(digest) = each!(heap, heap => heap.digest()) else {
        return;
    };
    // SAFETY: has no precondition.
    let pid = unsafe { libc::getpid() };
    if LEFT_BY.swap(pid, Ordering::Relaxed) == pid {
        return;
    }
    let (statistics, (levels, count), managed, path) = each!(heap, heap => {
        let path = heap.report.as_ref().map(|report| report.path(pid));
        (heap.statistics(), heap.footprints(), heap.managed(), path)
    });
    drop(held);
    let (statistics, digest) = match threads::serve() {
        true => threads::report(statistics),
        false => (statistics, digest),
    };
    if let Some(path) = path {
        report::write(path, pid, &statistics, &levels[..count], managed, &digest);
    }
}
