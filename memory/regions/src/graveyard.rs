//! The graveyard: a window of addresses to which freed regions are moved, page tables and all, and where
//! their frames go back to the system slice by slice, by a thread of its own or by calls.
//!
//! The window and the queue of burials are rings. Burials are made by who holds the heap, and reaped in
//! their order by one other, so two counters are all that both sides write.
//!
//! Invariant: burials between `reaped` and `buried` are disjoint parts of the window; all else of the
//! window has no access and no frames; `waiting` is the sum of what those burials still hold.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::kernel::{self, Range};
use crate::raw::{self, failed};
use crate::{Error, PAGE, TABLE};

/// Most regions that wait at once.
pub(crate) const BURIALS: usize = 1024;
const STACK: usize = 64 << 10;
/// States of the reaper.
const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// A region that was moved to the window.
struct Burial {
    /// First page in the window.
    first: AtomicUsize,
    pages: AtomicUsize,
}

/// What both sides share. Zero bytes are its beginning.
struct Shared {
    /// Regions moved here so far; what the reaper sleeps on.
    buried: AtomicU32,
    /// Of these, those whose frames are all back.
    reaped: AtomicU32,
    /// Pages of the burial in turn that are back.
    done: AtomicUsize,
    waiting: AtomicUsize,
    released: AtomicUsize,
    /// Whether the reaper sleeps, and whether it is to end.
    state: AtomicU32,
    ends: AtomicU32,
    /// The thread's number; the kernel sets it to zero when the thread has ended.
    thread: AtomicU32,
    window: AtomicUsize,
    slice: AtomicUsize,
    burials: [Burial; BURIALS],
}

impl Shared {
    fn burial(&self, number: u32) -> &Burial {
        &self.burials[number as usize % BURIALS]
    }

    /// Gives back the frames of at most `slice` pages of the burial in turn; none waits: zero.
    /// O(slice). Not while another does the same.
    fn reap(&self, slice: usize) -> usize {
        let reaped = self.reaped.load(Ordering::Acquire);
        if reaped == self.buried.load(Ordering::Acquire) {
            return 0;
        }
        let burial = self.burial(reaped);
        let (first, pages) = (
            burial.first.load(Ordering::Relaxed),
            burial.pages.load(Ordering::Relaxed),
        );
        let start = (self.window.load(Ordering::Relaxed)).wrapping_add(first.wrapping_mul(PAGE));
        let done = self.done.load(Ordering::Relaxed);
        let now = slice.min(pages.wrapping_sub(done));
        let place = start.wrapping_add(done.wrapping_mul(PAGE));
        // SAFETY: pages of a burial, whose contents nobody needs. Locked ones are refused, and replaced.
        if failed(unsafe { advise(place, now.wrapping_mul(PAGE)) }) {
            // SAFETY: as above.
            unsafe { replace(place, now.wrapping_mul(PAGE)) };
        }
        self.waiting.fetch_sub(now, Ordering::Relaxed);
        self.released.fetch_add(now, Ordering::Relaxed);
        let done = done.wrapping_add(now);
        if done == pages {
            // Nothing but empty tables is left to go.
            // SAFETY: as above.
            unsafe { replace(start, pages.wrapping_mul(PAGE)) };
            self.done.store(0, Ordering::Relaxed);
            self.reaped.store(reaped.wrapping_add(1), Ordering::Release);
        } else {
            self.done.store(done, Ordering::Relaxed);
        }
        now
    }

    /// What the thread does until it is told to end.
    fn reap_on(&self) {
        while self.ends.load(Ordering::SeqCst) == 0 {
            if self.reap(self.slice.load(Ordering::Relaxed)) != 0 {
                continue;
            }
            self.state.store(ASLEEP, Ordering::SeqCst);
            let buried = self.buried.load(Ordering::SeqCst);
            let nothing = buried == self.reaped.load(Ordering::SeqCst);
            if nothing && self.ends.load(Ordering::SeqCst) == 0 {
                // SAFETY: a word of memory that lasts as long as the thread.
                unsafe { futex(&self.buried, libc::FUTEX_WAIT, buried) };
            }
            self.state.store(AWAKE, Ordering::SeqCst);
        }
    }
}

unsafe fn advise(place: usize, bytes: usize) -> isize {
    let advice = libc::MADV_DONTNEED as usize;
    // SAFETY: the caller's contract.
    unsafe { raw::call(libc::SYS_madvise, [place, bytes, advice, 0, 0, 0]) }
}

unsafe fn replace(place: usize, bytes: usize) -> isize {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
    let arguments = [
        place,
        bytes,
        libc::PROT_NONE as usize,
        flags as usize,
        usize::MAX,
        0,
    ];
    // SAFETY: the caller's contract.
    unsafe { raw::call(libc::SYS_mmap, arguments) }
}

unsafe fn futex(word: &AtomicU32, what: i32, value: u32) -> isize {
    let what = (what | libc::FUTEX_PRIVATE_FLAG) as usize;
    let word = ptr::from_ref(word).addr();
    // SAFETY: the caller's contract.
    unsafe { raw::call(libc::SYS_futex, [word, what, value as usize, 0, 0, 0]) }
}

/// The thread: one of the kernel alone. The C library does not know it, so a program with one thread
/// stays one for it, and nothing of a thread's own memory is there to be used: only this file's system
/// calls and atomics run here. All signals are blocked, and its class is that of idle processors,
/// whatever that of the program's threads is: waking it takes a processor from none of them.
extern "C" fn reaper(shared: *mut libc::c_void) -> libc::c_int {
    let priority = [0_usize];
    // SAFETY: the class of this thread, with a parameter of an int.
    unsafe {
        let parameter = priority.as_ptr().addr();
        let class = libc::SCHED_IDLE as usize;
        raw::call(libc::SYS_sched_setscheduler, [0, class, parameter, 0, 0, 0]);
        let name = c"metes-reaper".as_ptr().addr();
        raw::call(
            libc::SYS_prctl,
            [libc::PR_SET_NAME as usize, name, 0, 0, 0, 0],
        );
    }
    // SAFETY: lasts until the thread has ended: `Graveyard::drop` waits for that.
    unsafe { &*shared.cast::<Shared>() }.reap_on();
    // SAFETY: ends this thread alone.
    unsafe { raw::call(libc::SYS_exit, [0; 6]) };
    0
}

/// The window and who empties it.
#[derive(Debug)]
pub(crate) struct Graveyard {
    window: Range,
    shared: Range,
    /// Stack of the thread, and the process that it was started in.
    stack: Option<Range>,
    process: libc::pid_t,
    /// First page of the window behind the latest burial.
    next: usize,
    threaded: bool,
}

impl Graveyard {
    /// A window of so many bytes; `slice` pages go back at a time. `threaded`: by a thread, which is
    /// started with the first burial.
    pub(crate) fn new(
        bytes: usize,
        wish: usize,
        slice: usize,
        threaded: bool,
    ) -> Result<Self, Error> {
        if !kernel::can_carry()? {
            return Err(Error::Unsupported);
        }
        let graveyard = Graveyard {
            window: Range::reserve(bytes, TABLE * PAGE, wish)?,
            shared: Range::zeros(size_of::<Shared>())?,
            stack: None,
            process: 0,
            next: 0,
            threaded: threaded && raw::PAST_LIBRARY,
        };
        let shared = graveyard.shared();
        let start = graveyard.window.page(0).addr().get();
        shared.window.store(start, Ordering::Relaxed);
        shared.slice.store(slice, Ordering::Relaxed);
        Ok(graveyard)
    }

    fn shared(&self) -> &Shared {
        // SAFETY: zeros with room for it, aligned to a page; all of it is atomic.
        unsafe { self.shared.page(0).cast::<Shared>().as_ref() }
    }

    pub(crate) fn waiting(&self) -> usize {
        self.shared().waiting.load(Ordering::Relaxed)
    }

    pub(crate) fn released(&self) -> usize {
        self.shared().released.load(Ordering::Relaxed)
    }

    /// Bytes of the queue and of the reaper's stack.
    pub(crate) fn record_bytes(&self) -> usize {
        self.shared.bytes() + self.stack.as_ref().map_or(0, Range::bytes)
    }

    /// Moves own pages to the window; false where there is no room for them now, and they are as they were.
    /// Their addresses stay mapped, empty. In the window they begin as far behind a page table as where
    /// they are, so that all but those at both ends move by tables. O(pages / TABLE + TABLE).
    pub(crate) fn bury(&mut self, from: NonNull<u8>, pages: usize) -> Result<bool, Error> {
        let behind = from.addr().get() / PAGE % TABLE;
        let tables = (behind + pages).next_multiple_of(TABLE);
        let Some(place) = self.place(tables) else {
            return Ok(false);
        };
        let first = place + behind;
        let to = self.window.page(first);
        if let Err(why) = carry(from, pages * PAGE, to) {
            // What was moved before goes at once.
            kernel::close(to, pages * PAGE)?;
            return Err(why);
        }
        self.next = place + tables;
        let shared = self.shared();
        let number = shared.buried.load(Ordering::Relaxed);
        let burial = shared.burial(number);
        burial.first.store(first, Ordering::Relaxed);
        burial.pages.store(pages, Ordering::Relaxed);
        shared.waiting.fetch_add(pages, Ordering::Relaxed);
        shared
            .buried
            .store(number.wrapping_add(1), Ordering::SeqCst);
        Ok(true)
    }

    /// Where so many pages, whole tables, are to lie: a place that no burial has.
    fn place(&self, wanted: usize) -> Option<usize> {
        let shared = self.shared();
        let all = self.window.bytes() / PAGE;
        let (buried, reaped) = (
            shared.buried.load(Ordering::Relaxed),
            shared.reaped.load(Ordering::Acquire),
        );
        let count = buried.wrapping_sub(reaped) as usize;
        if count == 0 {
            return (wanted <= all).then_some(0);
        }
        if count == BURIALS {
            return None;
        }
        let oldest = shared.burial(reaped).first.load(Ordering::Relaxed) / TABLE * TABLE;
        let next = self.next;
        match next > oldest {
            true if all - next >= wanted => Some(next),
            true => (oldest >= wanted).then_some(0),
            false => (oldest - next >= wanted).then_some(next),
        }
    }

    /// Sees that the reaper runs, if there is to be one: a child of a fork has to start its own. To be called
    /// after a burial, when the caller has no system call of its own to make that it could hold up.
    pub(crate) fn wake(&mut self) {
        if !self.threaded {
            return;
        }
        if !self.runs() {
            self.threaded = self.start();
        } else if self.shared().state.load(Ordering::SeqCst) == ASLEEP {
            // SAFETY: a word of memory that the thread waits on.
            unsafe { futex(&self.shared().buried, libc::FUTEX_WAKE, 1) };
        }
    }

    fn runs(&self) -> bool {
        // SAFETY: has no precondition.
        self.stack.is_some() && self.process == unsafe { libc::getpid() }
    }

    /// What waits, after a fork that may have caught the reaper between two words.
    fn recount(&self) {
        let shared = self.shared();
        shared.state.store(AWAKE, Ordering::SeqCst);
        // That thread is not of this process: nobody is to wait for its end.
        shared.thread.store(0, Ordering::SeqCst);
        let [buried, mut reaped] =
            [&shared.buried, &shared.reaped].map(|count| count.load(Ordering::Acquire));
        let mut waiting = 0;
        while reaped != buried {
            waiting += shared.burial(reaped).pages.load(Ordering::Relaxed);
            reaped = reaped.wrapping_add(1);
        }
        let done = shared.done.load(Ordering::Relaxed).min(waiting);
        shared.waiting.store(waiting - done, Ordering::Relaxed);
    }

    fn start(&mut self) -> bool {
        let shared = self.shared.page(0);
        self.recount();
        let stack = match self.stack.take().map_or_else(|| Range::zeros(STACK), Ok) {
            Ok(stack) => stack,
            Err(_) => return false,
        };
        let flags = libc::CLONE_VM
            | libc::CLONE_FS
            | libc::CLONE_FILES
            | libc::CLONE_SIGHAND
            | libc::CLONE_THREAD
            | libc::CLONE_SYSVSEM
            | libc::CLONE_PARENT_SETTID
            | libc::CLONE_CHILD_CLEARTID;
        let thread = self.shared().thread.as_ptr();
        // SAFETY: the sets are filled in before they are read; the thread runs `reaper` alone, on a stack of
        // its own, with every signal blocked, and it ends before stack and shared memory do.
        let started = unsafe {
            let mut all = std::mem::zeroed::<libc::sigset_t>();
            let mut before = std::mem::zeroed::<libc::sigset_t>();
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            let started = libc::clone(
                reaper,
                stack.page(STACK / PAGE).as_ptr().cast(),
                flags,
                shared.as_ptr().cast(),
                thread,
                ptr::null_mut::<libc::c_void>(),
                thread,
            );
            libc::pthread_sigmask(libc::SIG_SETMASK, &before, ptr::null_mut());
            started
        };
        self.stack = Some(stack);
        // SAFETY: has no precondition.
        self.process = unsafe { libc::getpid() };
        started > 0
    }

    /// Gives back at most `most` pages, unless the reaper does: how many. O(most).
    pub(crate) fn pay(&mut self, most: usize) -> usize {
        if self.threaded && self.runs() {
            return 0;
        }
        let mut paid = 0;
        while paid < most {
            match self.shared().reap(most - paid) {
                0 => break,
                now => paid += now,
            }
        }
        paid
    }

    /// Whether a thread gives back what waits.
    pub(crate) fn is_threaded(&self) -> bool {
        self.threaded
    }
}

/// Moves pages as a whole or, where the kernel keeps them as several mappings, table by table; the frames
/// of what does not move so, at most [`TABLE`] pages around a boundary, go back at once.
fn carry(from: NonNull<u8>, bytes: usize, to: NonNull<u8>) -> Result<(), Error> {
    const STEP: usize = TABLE * PAGE;
    match kernel::carry(from, bytes, to) {
        Err(Error::System { cause, .. }) if cause.raw_os_error() == Some(libc::EFAULT) => {}
        other => return other,
    }
    for offset in (0..bytes).step_by(STEP) {
        let length = STEP.min(bytes - offset);
        // SAFETY: inside both ranges.
        let (from, to) = unsafe { (from.add(offset), to.add(offset)) };
        if kernel::carry(from, length, to).is_err() {
            kernel::discard(from, length)?;
        }
    }
    Ok(())
}

impl Drop for Graveyard {
    fn drop(&mut self) {
        if !self.runs() {
            return;
        }
        let shared = self.shared();
        shared.ends.store(1, Ordering::SeqCst);
        // Between its look at `ends` and its sleep the thread misses a wake, so it is woken again.
        let patience = [0_usize, 1_000_000];
        loop {
            // SAFETY: a word of memory that lasts.
            unsafe { futex(&shared.buried, libc::FUTEX_WAKE, 1) };
            let thread = shared.thread.load(Ordering::Acquire);
            if thread == 0 {
                return;
            }
            // The kernel wakes who waits for the end of a thread as if it were of another process.
            let (word, how) = (shared.thread.as_ptr().addr(), libc::FUTEX_WAIT as usize);
            let patience = patience.as_ptr().addr();
            // SAFETY: as above, and a timespec.
            unsafe {
                raw::call(
                    libc::SYS_futex,
                    [word, how, thread as usize, patience, 0, 0],
                )
            };
        }
    }
}
