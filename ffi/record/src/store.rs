//! Where the records go: a file grown by chunks, each mapped shared.
//!
//! Order. A record is reserved by one atomic addition to the file's cursor, so
//! the file is one total order over all threads. Who logs an allocation does so
//! after the allocator returned it, who logs a free before the allocator sees
//! it; hence no record of a block's re-use comes before the record of its free.
//!
//! Death. The mapping is shared with the page cache: whatever ends the process
//! (exit, abort, SIGKILL), each record that was written is in the file.
//!
//! Fork. The pointer to the header lies in a page that the kernel wipes in a
//! forked child. The child therefore sees "not started" at its first event and
//! begins a file of its own, however it was forked. A `vfork` child shares the
//! parent's memory, heap and file, as it should.
//!
//! No descriptor stays open: programs close those they do not know, and count
//! on the numbers of those they open.

use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::announce;
use crate::clock;
use crate::kernel::{self, File, Quiet};
use crate::layout::{
    self, ALLOC, CHUNK_BYTES, CHUNK_SHIFT, HEADER_BYTES, Header, MAGIC, MANY, MARK, RESIZE_BEGIN,
    SITES_FILE, TIMES, VERSION,
};
use crate::path::{self, Path};
use crate::sites;
use crate::thread::{self, Thread};

/// Chunks a file may have: 2^33 words.
const CHUNKS: usize = 1 << 18;
/// Bytes of the header that are mapped.
const HEADER_MAPPED: usize = size_of::<Header>();
/// Bytes of the page that a fork wipes.
const PAGE: usize = 4096;

/// What a forked child finds zeroed.
#[repr(C)]
struct Wiped {
    /// The file being written; null before the first event of a process.
    header: AtomicPtr<Header>,
    /// The same in its place where call stacks are recorded, so that who does not record them
    /// need not ask.
    sited: AtomicPtr<Header>,
    /// 1 while a thread begins the file or maps a chunk.
    lock: AtomicU32,
}

static WIPED: AtomicPtr<Wiped> = AtomicPtr::new(ptr::null_mut());
/// Start of each mapped chunk; `REFUSED` if it could not be had.
static MAPPED: [AtomicPtr<u8>; CHUNKS] = [const { AtomicPtr::new(ptr::null_mut()) }; CHUNKS];
/// One more than the highest chunk in `MAPPED`.
static HIGHEST: AtomicUsize = AtomicUsize::new(0);
/// The header last mapped, by this process or by the one it was forked from.
static LAST_HEADER: AtomicPtr<Header> = AtomicPtr::new(ptr::null_mut());

static MODE: AtomicU8 = AtomicU8::new(UNDECIDED);
const UNDECIDED: u8 = 0;
const RECORDING: u8 = 1;
const PASSIVE: u8 = 2;
const ANNOUNCING: u8 = 3;

const REFUSED: *mut u8 = ptr::without_provenance_mut(1);

/// A value that only the holder of the lock touches.
struct Locked<T>(UnsafeCell<T>);

// SAFETY: every access goes through `get`, whose callers hold the one lock.
unsafe impl<T> Sync for Locked<T> {}

impl<T> Locked<T> {
    /// # Safety
    /// The caller holds the lock, and no other reference from here lives.
    #[allow(clippy::mut_from_ref, reason = "exclusive by the lock")]
    unsafe fn get(&self) -> &mut T {
        // SAFETY: the caller's promise.
        unsafe { &mut *self.0.get() }
    }
}

/// Path of the current file.
static FILE: Locked<Path> = Locked(UnsafeCell::new(Path::new()));
/// Directory of the files, found once.
static DIRECTORY: Locked<Path> = Locked(UnsafeCell::new(Path::new()));

unsafe extern "C" {
    /// glibc: not zero while the process has but one thread.
    static __libc_single_threaded: libc::c_char;
}

/// Logs one event of the calling thread.
#[inline(always)]
pub(crate) fn log(kind: u64, address: usize, size: usize, align_log2: u32) {
    let wiped = WIPED.load(Ordering::Acquire);
    if !wiped.is_null() {
        // SAFETY: once set, the page is never unmapped.
        let header = unsafe { (*wiped).header.load(Ordering::Acquire) };
        if !header.is_null() {
            // SAFETY: a header in the page is mapped, and stays so while
            // this process image lives.
            unsafe { write(header, kind, address, size, align_log2) };
            return;
        }
    }
    log_first(kind, address, size, align_log2);
}

#[cold]
#[inline(never)]
fn log_first(kind: u64, address: usize, size: usize, align_log2: u32) {
    let sited = sited();
    if !sited.is_null() {
        // SAFETY: as in `log`.
        unsafe { write_sited(sited, kind, address, size, align_log2) };
        return;
    }
    let mode = MODE.load(Ordering::Relaxed);
    if mode == PASSIVE {
        return;
    }
    if mode == ANNOUNCING || (mode == UNDECIDED && is_announcing()) {
        announce::say(kind, address, size, align_log2);
    } else if let Some(header) = begin() {
        // SAFETY: as in `log`.
        unsafe {
            if (*header).sites != 0 {
                write_sited(header, kind, address, size, align_log2);
            } else {
                write(header, kind, address, size, align_log2);
            }
        }
    }
}

/// The file being written where call stacks are recorded, else null.
#[inline(always)]
fn sited() -> *mut Header {
    let wiped = WIPED.load(Ordering::Acquire);
    if wiped.is_null() {
        return ptr::null_mut();
    }
    // SAFETY: once set, the page is never unmapped.
    unsafe { (*wiped).sited.load(Ordering::Acquire) }
}

/// Whether call stacks are recorded.
pub(crate) fn has_sites() -> bool {
    !sited().is_null()
}

/// Decides whether to announce; threads that ask at the same time find the same.
#[cold]
fn is_announcing() -> bool {
    let _quiet = Quiet::begin();
    let (mut directory, mut file) = (Path::new(), Path::new());
    let recording = path::find_directory(&mut directory);
    if recording && has_sites_file(&directory) {
        sites::prepare();
    }
    let announcing = recording
        && file.set_named(&directory, path::ANNOUNCE_FILE).is_some()
        && exists(file.as_c_str());
    if announcing {
        MODE.store(ANNOUNCING, Ordering::Relaxed);
    }
    announcing
}

/// The allocator begins to work: said only where it is announced.
#[inline(always)]
pub(crate) fn enter() {
    if MODE.load(Ordering::Relaxed) == ANNOUNCING {
        announce::say(announce::ENTER, 0, 0, 0);
    }
}

/// The allocator ends its work without an event that says so.
#[inline(always)]
pub(crate) fn leave() {
    if MODE.load(Ordering::Relaxed) == ANNOUNCING {
        announce::say(announce::LEAVE, 0, 0, 0);
    }
}

/// # Safety
/// `header` is mapped.
#[inline(always)]
unsafe fn write(header: *mut Header, kind: u64, address: usize, size: usize, align_log2: u32) {
    let thread = thread::current();
    let now = clock::now() >> clock::SHIFT;
    // SAFETY: the thread's own state; `header` by the caller's promise.
    unsafe {
        if now.wrapping_sub((*thread).last) >= TIMES {
            mark(header, thread, now);
        }
        (*thread).last = now;
        let number = (*thread).number;
        let head = layout::head(kind, number, now, address as u64);
        let sized = kind == ALLOC || kind == RESIZE_BEGIN;
        let request = layout::more(layout::request(size as u64, align_log2));
        if number >= MANY {
            let number = layout::more(u64::from(number));
            if sized {
                put(header, [head, request, number]);
            } else {
                put(header, [head, number]);
            }
        } else if sized {
            put(header, [head, request]);
        } else {
            put(header, [head]);
        }
    }
}

/// As [`write`], with the call stack of a request for memory.
///
/// # Safety
/// `header` is mapped, and its call stacks are recorded.
#[inline(never)]
unsafe fn write_sited(
    header: *mut Header,
    kind: u64,
    address: usize,
    size: usize,
    align_log2: u32,
) {
    if kind != ALLOC && kind != RESIZE_BEGIN {
        // SAFETY: the caller's promise.
        unsafe { write(header, kind, address, size, align_log2) };
        return;
    }
    // SAFETY: the caller's promise.
    let site = layout::more(unsafe { sites::site(header) });
    let thread = thread::current();
    let now = clock::now() >> clock::SHIFT;
    // SAFETY: as in `write`.
    unsafe {
        if now.wrapping_sub((*thread).last) >= TIMES {
            mark(header, thread, now);
        }
        (*thread).last = now;
        let number = (*thread).number;
        let head = layout::head(kind, number, now, address as u64);
        let request = layout::more(layout::request(size as u64, align_log2));
        if number >= MANY {
            put(
                header,
                [head, request, site, layout::more(u64::from(number))],
            );
        } else {
            put(header, [head, request, site]);
        }
    }
}

/// Writes the full time of the thread, and gives a new thread its number.
///
/// # Safety
/// `header` is mapped, `thread` the calling thread's.
#[cold]
#[inline(never)]
unsafe fn mark(header: *mut Header, thread: *mut Thread, now: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        if (*thread).number == 0 {
            (*thread).number = thread::new_number();
        }
        let number = (*thread).number;
        let head = layout::head(MARK, number, now, 0);
        if number >= MANY {
            put(
                header,
                [head, layout::more(now), layout::more(u64::from(number))],
            );
        } else {
            put(header, [head, layout::more(now)]);
        }
    }
}

/// Appends the words of one record.
///
/// # Safety
/// `header` is mapped.
#[inline(always)]
unsafe fn put<const WORDS: usize>(header: *mut Header, words: [u64; WORDS]) {
    // SAFETY: the caller's promise.
    let index = unsafe { reserve(header, WORDS as u64) };
    let within = index & MASK;
    if within + (WORDS as u64) > MASK + 1 {
        // The record lies in two chunks.
        for (more, word) in words.into_iter().enumerate() {
            let index = index + more as u64;
            match place(index >> CHUNK_SHIFT) {
                // SAFETY: as below.
                Some(chunk) => unsafe { set(chunk.add((index & MASK) as usize), word) },
                // SAFETY: the caller's promise.
                None => unsafe { lose(header) },
            }
        }
        return;
    }
    match place(index >> CHUNK_SHIFT) {
        Some(chunk) => {
            for (more, word) in words.into_iter().enumerate() {
                // SAFETY: the chunk is mapped for MASK + 1 words, of which
                // these were reserved for this call alone.
                unsafe { set(chunk.add(within as usize + more), word) };
            }
        }
        // SAFETY: the caller's promise.
        None => unsafe { lose(header) },
    }
}

/// Appends the words of one record, however many; the place of the first.
///
/// # Safety
/// `header` is mapped.
pub(crate) unsafe fn put_all(header: *mut Header, words: &[u64]) -> u64 {
    // SAFETY: the caller's promise.
    let index = unsafe { reserve(header, words.len() as u64) };
    for (place_of, &word) in (index..).zip(words) {
        match place(place_of >> CHUNK_SHIFT) {
            // SAFETY: the chunk is mapped for MASK + 1 words, of which this was reserved for this
            // call alone.
            Some(chunk) => unsafe { set(chunk.add((place_of & MASK) as usize), word) },
            // SAFETY: the caller's promise.
            None => unsafe { lose(header) },
        }
    }
    index
}

/// Words of a chunk, less one.
const MASK: u64 = (1 << CHUNK_SHIFT) - 1;

/// # Safety
/// `place` is mapped and the caller's alone to write.
#[inline(always)]
unsafe fn set(place: *mut u64, word: u64) {
    // SAFETY: the caller's promise. Atomic, so that the word is never torn.
    unsafe { AtomicU64::from_ptr(place).store(word, Ordering::Relaxed) };
}

/// # Safety
/// `header` is mapped.
#[cold]
unsafe fn lose(header: *mut Header) {
    // SAFETY: the caller's promise.
    unsafe { (*header).lost.fetch_add(1, Ordering::Relaxed) };
}

/// Where chunk `chunk` is mapped; None if it cannot be.
#[inline(always)]
fn place(chunk: u64) -> Option<*mut u64> {
    let place = MAPPED.get(chunk as usize)?.load(Ordering::Acquire);
    let place = if place.is_null() {
        map_chunk(chunk as usize)
    } else {
        place
    };
    (place != REFUSED).then_some(place.cast())
}

/// Reserves the next `words` words.
///
/// # Safety
/// `header` is mapped.
#[inline(always)]
unsafe fn reserve(header: *mut Header, words: u64) -> u64 {
    // SAFETY: the caller's promise.
    let cursor = unsafe { &(*header).cursor };
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: glibc's variable is one readable byte, changed only by this
        // thread while it is the only one.
        let alone = unsafe { (&raw const __libc_single_threaded).read_volatile() } != 0;
        if alone {
            let mut index = words;
            // SAFETY: with one thread nobody else touches the cursor, and one
            // instruction cannot be torn by a signal handler. Without the bus
            // lock it costs a third.
            unsafe {
                core::arch::asm!(
                    "xadd qword ptr [{cursor}], {index}",
                    cursor = in(reg) cursor.as_ptr(),
                    index = inout(reg) index,
                    options(nostack),
                );
            }
            return index;
        }
    }
    cursor.fetch_add(words, Ordering::Relaxed)
}

/// Holds the lock of the page and keeps signals away.
struct Guard<'a>(
    &'a Wiped,
    #[allow(dead_code, reason = "restores mask and errno")] Quiet,
);

impl<'a> Guard<'a> {
    fn take(wiped: &'a Wiped) -> Self {
        let quiet = Quiet::begin();
        while wiped
            .lock
            .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            kernel::yield_now();
        }
        Guard(wiped, quiet)
    }
}

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.lock.store(0, Ordering::Release);
    }
}

/// The header of this process's file, begun if need be; None if nothing is
/// recorded here.
fn begin() -> Option<*mut Header> {
    let wiped = wiped_page()?;
    let _guard = Guard::take(wiped);
    for known in [&wiped.header, &wiped.sited] {
        let header = known.load(Ordering::Acquire);
        if !header.is_null() {
            return Some(header);
        }
    }
    if !decide() {
        return None;
    }
    let forked = !LAST_HEADER.load(Ordering::Relaxed).is_null();
    forget_parent();
    let Some(header) = begin_file(forked) else {
        MODE.store(PASSIVE, Ordering::Relaxed);
        return None;
    };
    LAST_HEADER.store(header, Ordering::Relaxed);
    // SAFETY: mapped, and only read from here on.
    let place = match unsafe { (*header).sites } {
        0 => &wiped.header,
        _ => &wiped.sited,
    };
    place.store(header, Ordering::Release);
    Some(header)
}

/// The page that fork wipes, made at the first call.
fn wiped_page() -> Option<&'static Wiped> {
    let mut page = WIPED.load(Ordering::Acquire);
    if page.is_null() {
        let _quiet = Quiet::begin();
        let Some(fresh) = kernel::page_wiped_on_fork(PAGE) else {
            MODE.store(PASSIVE, Ordering::Relaxed);
            return None;
        };
        let fresh = fresh.cast::<Wiped>();
        page = match WIPED.compare_exchange(
            ptr::null_mut(),
            fresh,
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            Ok(_) => fresh,
            Err(theirs) => {
                // SAFETY: nobody else has seen the page.
                unsafe { kernel::unmap(fresh.cast(), PAGE) };
                theirs
            }
        };
    }
    // SAFETY: zeroed bytes are a valid `Wiped`, and the page stays mapped.
    Some(unsafe { &*page })
}

/// Whether to record: decided once, by the environment. Call under the lock.
fn decide() -> bool {
    match MODE.load(Ordering::Relaxed) {
        RECORDING => true,
        PASSIVE => false,
        _ => {
            // SAFETY: the lock is held, and this is the only reference.
            let found = unsafe { path::find_directory(DIRECTORY.get()) };
            MODE.store(if found { RECORDING } else { PASSIVE }, Ordering::Relaxed);
            found
        }
    }
}

/// In a forked child: gives back the mappings of the parent's file.
fn forget_parent() {
    let highest = HIGHEST.swap(0, Ordering::Relaxed);
    for place in MAPPED.iter().take(highest) {
        let chunk = place.swap(ptr::null_mut(), Ordering::Relaxed);
        if !chunk.is_null() && chunk != REFUSED {
            // SAFETY: the child's own mapping, which nobody uses any more: it
            // has one thread, here, and its header is not set.
            unsafe { kernel::unmap(chunk, CHUNK_BYTES) };
        }
    }
    let header = LAST_HEADER.swap(ptr::null_mut(), Ordering::Relaxed);
    if !header.is_null() {
        // SAFETY: as above.
        unsafe { kernel::unmap(header.cast(), HEADER_MAPPED) };
    }
}

/// Makes the file `<directory>/<pid>.<n>.raw` and writes its header.
fn begin_file(forked: bool) -> Option<*mut Header> {
    let (pid, parent) = kernel::process();
    // SAFETY: the lock is held, and these are the only references.
    let (file_path, directory) = unsafe { (FILE.get(), DIRECTORY.get()) };
    let mut generation = 0;
    let file = loop {
        // The name is new for each image of a process: exec keeps the number.
        file_path.set_file(directory, pid, generation)?;
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL;
        match File::open(file_path.as_c_str(), flags) {
            Some(file) => break file,
            None if generation < 10_000 && exists(file_path.as_c_str()) => generation += 1,
            None => return None,
        }
    };
    if !file.reserve(0, HEADER_BYTES + CHUNK_BYTES) {
        return None;
    }
    let header = file.map(0, HEADER_MAPPED, false)?.cast::<Header>();
    let chunk = file.map(HEADER_BYTES, CHUNK_BYTES, false)?;
    // SAFETY: freshly mapped zeroes, a valid header, seen by nobody yet.
    let fields = unsafe { &mut *header };
    fields.version = VERSION;
    fields.clock_shift = clock::SHIFT;
    fields.pid = pid;
    fields.parent = parent;
    fields.forked = u32::from(forked);
    fields.sites = u32::from(has_sites_file(directory) && sites::begin());
    fields.clock_start = clock::now();
    fields.monotonic_start = clock::monotonic();
    if let Some(command) = File::open(c"/proc/self/cmdline", libc::O_RDONLY) {
        fields.command_length = command.read(&mut fields.command) as u32;
    }
    fields.program_length = kernel::read_link(c"/proc/self/exe", &mut fields.program) as u32;
    fields.magic = MAGIC;
    if let Some(first) = MAPPED.first() {
        first.store(chunk, Ordering::Release);
    }
    HIGHEST.store(1, Ordering::Relaxed);
    Some(header)
}

/// Whether call stacks are asked for.
fn has_sites_file(directory: &Path) -> bool {
    let mut file = Path::new();
    file.set_named(directory, SITES_FILE).is_some() && exists(file.as_c_str())
}

fn exists(path: &CStr) -> bool {
    File::open(path, libc::O_RDONLY).is_some()
}

/// Maps chunk `chunk` of the file, or finds it mapped by another thread.
#[cold]
#[inline(never)]
fn map_chunk(chunk: usize) -> *mut u8 {
    let (Some(place), Some(wiped)) = (MAPPED.get(chunk), wiped_page()) else {
        return REFUSED;
    };
    let _guard = Guard::take(wiped);
    let known = place.load(Ordering::Acquire);
    if !known.is_null() {
        return known;
    }
    // SAFETY: the lock is held, and this is the only reference.
    let path = unsafe { FILE.get() };
    let offset = HEADER_BYTES + chunk * CHUNK_BYTES;
    let mapped = File::open(path.as_c_str(), libc::O_RDWR)
        .filter(|file| file.reserve(offset, CHUNK_BYTES))
        .and_then(|file| file.map(offset, CHUNK_BYTES, true))
        .unwrap_or(REFUSED);
    place.store(mapped, Ordering::Release);
    HIGHEST.fetch_max(chunk + 1, Ordering::Relaxed);
    // A thread may still be about to write an old chunk: keep it mapped, but
    // out of the resident set.
    if let Some(old) = chunk.checked_sub(2).and_then(|old| MAPPED.get(old)) {
        let old = old.load(Ordering::Acquire);
        if !old.is_null() && old != REFUSED {
            // SAFETY: a mapped chunk, shared and file-backed.
            unsafe { kernel::let_go(old, CHUNK_BYTES) };
        }
    }
    mapped
}
