//! The lock around the heap: a spin that looks ever more rarely, then a futex.
//!
//! Who holds the lock has the heap in its cache, and each look of another core takes a part of it away. So
//! those that wait look rarely, and a thread that has just given the lock up may well get it again: with
//! two threads that do nothing else, an operation costs nearly what it costs one. Of those that sleep at
//! most one at a time is being woken, as a call of the system costs more than tens of operations.
//!
//! The state is one word: held, a sleeper being woken, and how many sleep. Checked by the model
//! `ffi/preload/models/lock.pml` for exclusion, and that nobody sleeps while the lock is free.
//!
//! Invariants:
//! - a thread counts as a sleeper only from when somebody held the lock, so whoever holds it then sees the
//!   sleeper when giving it up;
//! - who is woken stops counting, and stops being woken, in the same step in which it finds the lock free
//!   and takes it, or held;
//! - while the process has one thread the lock is marked, not fought for (glibc
//!   says so in `__libc_single_threaded`, which cannot change while one thread
//!   is inside);
//! - `fork` happens with the lock held by the forking thread, so that the child
//!   finds a heap that nobody was changing; other fork handlers of that thread
//!   may allocate meanwhile, and pass;
//! - the C library's lock of its list of streams, which a fork takes after the handlers,
//!   is taken before the heap's: who holds it may wait for a stream whose holder waits
//!   for the heap.

use core::ffi::{c_char, c_void};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use core::{mem, ptr};

use crate::process::say;

const FREE: u32 = 0;
const HELD: u32 = 1;
/// A sleeper is being woken, and has not looked yet.
const WAKING: u32 = 2;
/// One sleeper; their number stands above the flags.
const SLEEPER: u32 = 4;
/// Longest pause between two looks, in steps of the processor's own: some microseconds, in which the
/// holder gets tens of operations done.
const LONGEST_PAUSE: u32 = 256;
/// Looks before sleeping.
const LOOKS: u32 = 12;

unsafe extern "C" {
    /// glibc (2.32): not zero while the process has but one thread.
    static __libc_single_threaded: c_char;
}

/// The lock of the heap of the process.
static LOCK: Lock = Lock::new();

struct Lock {
    state: AtomicU32,
    /// How often a sleeper was woken: the word that they sleep on.
    wakes: AtomicU32,
    /// The thread that is forking, zero if none.
    forking: AtomicUsize,
}

/// Holding the lock.
#[repr(transparent)]
pub(crate) struct Held {
    how: How,
}

#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum How {
    /// By the only thread, which only marked it.
    Alone,
    /// Taken from others.
    Taken,
    /// As the thread that forks, which gives it back after the fork.
    Forking,
}

/// Holding the lock as the only thread, which only marked it: known when compiled, so that giving it back
/// is one store.
pub(crate) struct Marked(());

/// The only thread holds the lock already: a handler of a signal has interrupted it there.
/// To go on would be to work on a heap that is being changed.
#[cold]
fn interrupted() -> ! {
    say(
        "metes: a handler of a signal asked for memory, or gave some back, when it had \
         interrupted the heap: POSIX forbids handlers to call malloc and free\n",
    );
    // SAFETY: has no precondition.
    unsafe { libc::abort() }
}

/// The C library's lock of its list of streams. Not in every version of its interface, so
/// it is asked for by name.
struct Streams {
    lock: unsafe extern "C" fn(),
    unlock: unsafe extern "C" fn(),
}

/// Where its two functions are; null before [`Streams::find`], or where there are none.
static STREAMS: [AtomicPtr<c_void>; 2] = [const { AtomicPtr::new(ptr::null_mut()) }; 2];

impl Streams {
    /// Looks for it. Not under the heap's lock: it may allocate.
    fn find() {
        for (name, place) in [c"_IO_list_lock", c"_IO_list_unlock"].iter().zip(&STREAMS) {
            // SAFETY: a string.
            let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
            place.store(found, Ordering::Relaxed);
        }
    }

    fn get() -> Option<Streams> {
        let [lock, unlock] = [0, 1].map(|number| STREAMS[number].load(Ordering::Relaxed));
        if lock.is_null() || unlock.is_null() {
            return None;
        }
        // SAFETY: both take and give nothing, in every glibc that has them.
        unsafe {
            Some(Streams {
                lock: core::mem::transmute::<*mut c_void, unsafe extern "C" fn()>(lock),
                unlock: core::mem::transmute::<*mut c_void, unsafe extern "C" fn()>(unlock),
            })
        }
    }
}

/// Gets ready for forks. Not under the heap's lock.
pub(crate) fn prepare_for_forks() {
    Streams::find();
}

fn this_thread() -> usize {
    // SAFETY: has no precondition.
    unsafe { libc::pthread_self() as usize }
}

/// Whether the process has but one thread.
#[inline(always)]
fn alone() -> bool {
    // SAFETY: a variable of glibc that is written when threads are created and
    // joined, which does not happen during this read: either this is the only
    // thread, or the value is already zero and stays so while others run.
    // Volatile, as others do write it over time.
    unsafe { (&raw const __libc_single_threaded).read_volatile() != 0 }
}

/// Holds the lock, if the process has but one thread, which does not hold it.
#[inline(always)]
pub(crate) fn mark() -> Option<Marked> {
    if !alone() || LOCK.state.load(Ordering::Relaxed) != FREE {
        return None;
    }
    LOCK.state.store(HELD, Ordering::Relaxed);
    Some(Marked(()))
}

/// Holds the lock.
pub(crate) fn hold() -> Held {
    match mark() {
        Some(marked) => {
            mem::forget(marked);
            Held { how: How::Alone }
        }
        None => hold_among_others(),
    }
}

/// Takes the lock where there are other threads, or the only one is inside.
#[inline(always)]
pub(crate) fn hold_among_others() -> Held {
    let how = match LOCK.take() {
        true => How::Taken,
        false => How::Forking,
    };
    Held { how }
}

/// Holds the lock if it is free now: also for a signal handler that may have
/// interrupted its own thread inside.
pub(crate) fn try_hold() -> Option<Held> {
    LOCK.try_take().then_some(Held { how: How::Taken })
}

/// Holds the lock for a thread that ends the process, which may have been interrupted inside by
/// the handler that ends it: the only thread does not wait for itself.
pub(crate) fn hold_at_exit() -> Option<Held> {
    match alone() {
        true => try_hold(),
        false => Some(hold()),
    }
}

/// Before a fork: see [`Lock::before_fork`].
pub(crate) extern "C" fn before_fork() {
    LOCK.before_fork();
}

/// After a fork, in the parent.
pub(crate) extern "C" fn after_fork() {
    LOCK.after_fork();
}

/// After a fork, in the child.
pub(crate) extern "C" fn after_fork_in_child() {
    LOCK.after_fork_in_child();
}

impl Lock {
    const fn new() -> Self {
        Lock {
            state: AtomicU32::new(FREE),
            wakes: AtomicU32::new(0),
            forking: AtomicUsize::new(0),
        }
    }

    fn try_take(&self) -> bool {
        let mut state = self.state.load(Ordering::Relaxed);
        // Others may sleep though it is free; a change of theirs is no reason not to take it.
        while state & HELD == 0 {
            match self.state.compare_exchange(
                state,
                state | HELD,
                Ordering::Acquire,
                Ordering::Relaxed,
            ) {
                Ok(_) => return true,
                Err(now) => state = now,
            }
        }
        false
    }

    /// `false` if this thread holds it already, as the one that forks.
    #[inline(always)]
    fn take(&self) -> bool {
        let free = self
            .state
            .compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed);
        free.is_ok() || self.take_slowly()
    }

    #[cold]
    fn take_slowly(&self) -> bool {
        if alone() {
            interrupted();
        }
        if self.forking.load(Ordering::Relaxed) == this_thread() {
            return false;
        }
        // SAFETY: the address of this thread's errno; a wait must not change it.
        let errno = unsafe { *libc::__errno_location() };
        while !self.spin() && !self.sleep() {}
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = errno };
        true
    }

    /// Looks whether the lock is free, ever more rarely; `true` once it is taken.
    fn spin(&self) -> bool {
        let mut pause = 1;
        for _ in 0..LOOKS {
            let state = self.state.load(Ordering::Relaxed);
            if state & HELD == 0 && self.change(state, state | HELD) {
                return true;
            }
            for _ in 0..pause {
                core::hint::spin_loop();
            }
            pause = LONGEST_PAUSE.min(2 * pause);
        }
        false
    }

    /// Sleeps until woken, or finds the lock free before; `true` if it is taken.
    fn sleep(&self) -> bool {
        // Read before this thread counts as a sleeper: a wake after that is seen by the wait.
        let wakes = self.wakes.load(Ordering::Acquire);
        loop {
            let state = self.state.load(Ordering::Relaxed);
            if state & HELD == 0 {
                if self.change(state, state | HELD) {
                    return true;
                }
            } else if self.change(state, state + SLEEPER) {
                break;
            }
        }
        while self.wakes.load(Ordering::Acquire) == wakes {
            // SAFETY: waits on a word that lives as long as the process.
            unsafe {
                libc::syscall(
                    libc::SYS_futex,
                    self.wakes.as_ptr(),
                    libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG,
                    wakes,
                    core::ptr::null::<libc::timespec>(),
                );
            }
        }
        loop {
            let state = self.state.load(Ordering::Relaxed);
            let awake = (state - SLEEPER) & !WAKING;
            if self.change(state, awake | HELD) {
                return state & HELD == 0;
            }
        }
    }

    fn change(&self, from: u32, to: u32) -> bool {
        (self.state)
            .compare_exchange_weak(from, to, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    #[inline(always)]
    fn give(&self) {
        if self.state.fetch_sub(HELD, Ordering::Release) != HELD {
            self.wake();
        }
    }

    /// Wakes a sleeper, unless somebody holds the lock, who will do it then, or one is being woken.
    #[cold]
    fn wake(&self) {
        loop {
            let state = self.state.load(Ordering::Relaxed);
            if state & (HELD | WAKING) != 0 || state < SLEEPER {
                return;
            }
            if self.change(state, state | WAKING) {
                break;
            }
        }
        self.wakes.fetch_add(1, Ordering::Release);
        // SAFETY: wakes waiters on a word that lives as long as the process;
        // errno is only written on failure, which this call cannot have.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.wakes.as_ptr(),
                libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                1,
            );
        }
    }

    /// Before a fork: takes the lock for the thread that forks. The only thread
    /// of a process need not, and must not: it may fork in a signal handler that
    /// interrupted it inside.
    fn before_fork(&self) {
        if !alone() {
            if let Some(streams) = Streams::get() {
                // SAFETY: has no precondition; it may be taken twice by a thread.
                unsafe { (streams.lock)() };
            }
            self.take();
            self.forking.store(this_thread(), Ordering::Relaxed);
        }
    }

    /// After a fork, in the parent.
    fn after_fork(&self) {
        if self.forking.load(Ordering::Relaxed) == this_thread() {
            self.forking.store(0, Ordering::Relaxed);
            self.give();
            if let Some(streams) = Streams::get() {
                // SAFETY: taken by this thread, before the fork.
                unsafe { (streams.unlock)() };
            }
        }
    }

    /// After a fork, in the child, whose only thread is the one that forked:
    /// those that waited for the lock exist no more. That of the streams the C library
    /// has made anew.
    fn after_fork_in_child(&self) {
        if self.forking.load(Ordering::Relaxed) != 0 {
            self.forking.store(0, Ordering::Relaxed);
            self.state.store(FREE, Ordering::Release);
        }
    }
}

impl Drop for Marked {
    #[inline(always)]
    fn drop(&mut self) {
        LOCK.state.store(FREE, Ordering::Relaxed);
    }
}

impl Drop for Held {
    #[inline(always)]
    fn drop(&mut self) {
        match self.how {
            How::Alone => drop(Marked(())),
            How::Taken => LOCK.give(),
            How::Forking => {}
        }
    }
}
