//! Call stacks: which calls led to a request, each distinct stack written once.
//!
//! A stack is walked ([`walk`]), hashed and looked up in a table of the process; the first time it
//! is met it is appended to the file, and a request names it by its number there. A file
//! therefore defines what it names before it names it, whatever ends the process.
//!
//! Two stacks are taken for one if 63 bits of their hashes are equal: with half a million stacks that
//! happens in one of 70 million recordings.
//!
//! Fork. The table lies in pages that the kernel wipes in a forked child, which begins a file of its
//! own; what the walk has learned is forgotten there, so that the child's file names its modules.
//!
//! *Invariant:* nothing here allocates, locks, or reads memory that is not there. Who interrupts a
//! walk, a signal handler, say, walks for itself; at worst a stack is written twice.

mod cfi;
mod dlclose;
mod modules;
mod readable;
mod rules;
#[cfg(target_arch = "x86_64")]
mod thunk;
mod walk;

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::kernel;
use crate::layout::{self, BROKEN_STACK, CUT_STACK, Header, MOST_CALLS, STACK};
use crate::store;

/// log2 of the places of the table.
const PLACES_SHIFT: u32 = 20;
/// Places of the table.
const PLACES: usize = 1 << PLACES_SHIFT;
/// Stacks that it takes: of more, requests name none.
const MOST_STACKS: u64 = (PLACES / 4 * 3) as u64;
/// Bytes of the table.
const TABLE_BYTES: usize = size_of::<Table>();

/// One stack.
#[repr(C)]
struct Place {
    /// Hash of the stack; 0 for none.
    hash: AtomicU64,
    /// What requests name it by; 0 while it is being written.
    name: AtomicU64,
}

/// The stacks of a process; zeroes in a forked child.
#[repr(C)]
struct Table {
    stacks: AtomicU64,
    padding: [u64; 7],
    places: [Place; PLACES],
}

static TABLE: AtomicPtr<Table> = AtomicPtr::new(ptr::null_mut());

/// Stacks of which library code has been unmapped hash differently from those after.
static GENERATION: AtomicU64 = AtomicU64::new(0);

/// How the walk of a stack ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// At the outermost call.
    Whole,
    /// After [`MOST_CALLS`] calls.
    Cut,
    /// Where the caller could not be found.
    Broken,
}

/// A stack as it was walked.
struct Stack {
    /// An address in each call, the innermost first.
    calls: [u64; MOST_CALLS],
    count: usize,
    end: End,
}

/// Asks the loader for what will be needed, before any lock is taken.
pub(crate) fn prepare() {
    modules::look_for_finder();
}

/// Makes ready for a file that is begun, in a forked child anew; false if there is no memory, or the
/// C library cannot say where code lies (before 2.35).
pub(crate) fn begin() -> bool {
    rules::forget();
    modules::forget();
    if modules::finder().is_none() {
        return false;
    }
    if TABLE.load(Ordering::Acquire).is_null() {
        let Some(table) = kernel::page_wiped_on_fork(TABLE_BYTES) else {
            return false;
        };
        TABLE.store(table.cast(), Ordering::Release);
    }
    true
}

/// Code is about to be unmapped: what is known of addresses may soon be wrong.
fn renew() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    rules::forget();
    modules::forget();
}

/// What the calling thread's request names its stack by; 0 if there is no room for it.
///
/// # Safety
/// `header` is mapped.
#[inline(never)]
pub(crate) unsafe fn site(header: *mut Header) -> u64 {
    let mut stack = Stack {
        calls: [0; MOST_CALLS],
        count: 0,
        end: End::Whole,
    };
    // SAFETY: the caller's promise.
    unsafe { walk::walk(header, &mut stack) };
    let table = TABLE.load(Ordering::Acquire);
    if stack.count == 0 || table.is_null() {
        return 0;
    }
    // SAFETY: once set, the table is never unmapped, and zeroed bytes are a valid one.
    let table = unsafe { &*table };
    let hash = hash(&stack);
    let first = (hash >> (64 - PLACES_SHIFT)) as usize;
    for further in 0..PLACES {
        let place = &table.places[(first + further) & (PLACES - 1)];
        let known = place.hash.load(Ordering::Acquire);
        if known == hash {
            let name = place.name.load(Ordering::Acquire);
            if name != 0 {
                return name;
            }
            // Another thread, or the one that this handler interrupted, is writing it.
            // SAFETY: the caller's promise.
            return unsafe { write(header, &stack) };
        }
        if known != 0 {
            continue;
        }
        if table.stacks.load(Ordering::Relaxed) >= MOST_STACKS {
            return 0;
        }
        let taken = place
            .hash
            .compare_exchange(0, hash, Ordering::AcqRel, Ordering::Acquire);
        match taken {
            Ok(_) => {
                table.stacks.fetch_add(1, Ordering::Relaxed);
                // SAFETY: the caller's promise.
                let name = unsafe { write(header, &stack) };
                place.name.store(name, Ordering::Release);
                return name;
            }
            // SAFETY: the caller's promise.
            Err(theirs) if theirs == hash => return unsafe { write(header, &stack) },
            Err(_) => {}
        }
    }
    0
}

/// A hash of the calls, never 0.
#[inline(always)]
fn hash(stack: &Stack) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let fold = |number: u64| {
        let product = u128::from(number) * u128::from(FACTOR);
        product as u64 ^ (product >> 64) as u64
    };
    let generation = GENERATION.load(Ordering::Relaxed);
    let mut hash = FACTOR ^ generation << 2 ^ stack.end as u64;
    for &call in stack.calls.iter().take(stack.count) {
        hash = fold(hash ^ call);
    }
    fold(hash ^ stack.count as u64) | 1
}

/// Appends the stack; what requests name it by.
///
/// # Safety
/// `header` is mapped.
#[cold]
unsafe fn write(header: *mut Header, stack: &Stack) -> u64 {
    let what = match stack.end {
        End::Whole => STACK,
        End::Cut => CUT_STACK,
        End::Broken => BROKEN_STACK,
    };
    let mut words = [0; 2 + MOST_CALLS];
    let calls = stack.calls.iter().take(stack.count);
    for (word, &call) in words.iter_mut().skip(2).zip(calls) {
        *word = layout::more(call);
    }
    if let Some(head) = words.first_mut() {
        *head = layout::entry(what, 1 + stack.count);
    }
    let words = words.get(..2 + stack.count).unwrap_or(&[]);
    // SAFETY: the caller's promise.
    unsafe { store::put_entry(header, words) }
}
