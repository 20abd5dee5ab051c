//! Where the records go: a file of segments, mapped by chunks and shared, each segment written by one
//! thread alone.
//!
//! Order. Each record has a time. Who logs an allocation reads the clock after the allocator returned it, who
//! logs a free before the allocator sees it; hence no record of a block's re-use has an earlier time than the
//! record of its free ([`stamp`]). Threads share nothing but a line that nobody writes.
//!
//! Signals. A thread reserves the words of a record by one instruction, so that a handler that interrupts it
//! writes behind them.
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
    self, ALLOC, CHUNK_BYTES, HEADER_BYTES, Header, MAGIC, MARK, PADDING, PAUSED_FILE, PENDING,
    RESIZE_BEGIN, RING, SEGMENT_BYTES, SEGMENT_WORDS, SEGMENTS_IN_CHUNK, SITES_FILE, TIMES,
    VERSION,
};
use crate::path::{self, Path};
use crate::sites;
use crate::thread::{self, Thread};

/// Chunks a file may have: 2^33 words at a time.
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
            unsafe {
                if (*header).paused.load(Ordering::Relaxed) == 0 {
                    write(header, kind, address, size, align_log2, None);
                }
            }
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
        unsafe {
            if (*sited).paused.load(Ordering::Relaxed) == 0 {
                write_sited(sited, kind, address, size, align_log2);
            }
        }
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
            if (*header).paused.load(Ordering::Relaxed) != 0 {
                return;
            }
            if (*header).sites != 0 {
                write_sited(header, kind, address, size, align_log2);
            } else {
                write(header, kind, address, size, align_log2, None);
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
    if recording && has_file(&directory, SITES_FILE) {
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

/// Writes one record of the calling thread; `site` names its call stack, where those are recorded.
///
/// # Safety
/// `header` is mapped.
#[inline(always)]
unsafe fn write(
    header: *mut Header,
    kind: u64,
    address: usize,
    size: usize,
    align_log2: u32,
    site: Option<u64>,
) {
    let thread = thread::current();
    let sized = kind == ALLOC || kind == RESIZE_BEGIN;
    let words = match (sized, site) {
        (true, Some(_)) => 3,
        (true, None) => 2,
        (false, _) => 1,
    };
    // SAFETY: the thread's own state; `header` by the caller's promise; the words were reserved for this call alone.
    unsafe {
        let Some(mut place) = reserve(header, thread, words) else {
            return;
        };
        set(place, PENDING);
        let mut now = time(header, thread);
        if now.wrapping_sub((*thread).last) >= TIMES / 2 {
            match mark(header, thread, place, words, now) {
                Some(behind) => place = behind,
                None => return,
            }
            // Whoever took the place of this thread meanwhile may have been long at it.
            now = now.max((*thread).last);
        }
        (*thread).last = now;
        if sized {
            set(
                place.add(1),
                layout::more(layout::request(size as u64, align_log2)),
            );
            if let Some(site) = site {
                set(place.add(2), layout::more(site));
            }
        }
        // The head comes last: who reads along finds the rest behind it.
        set(place, layout::head(kind, now, address as u64));
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
    // SAFETY: the caller's promise.
    unsafe {
        let sized = kind == ALLOC || kind == RESIZE_BEGIN;
        let site = if sized {
            Some(sites::site(header))
        } else {
            None
        };
        write(header, kind, address, size, align_log2, site);
    }
}

/// Records of a thread that is alone that may have the time of one before them, if they follow it closely.
const SAME_TIME: u32 = 7;
/// Units of time within which so many records follow each other closely: some 500 ns.
const CLOSELY: u64 = 80;

/// The time of a record of the calling thread. While it is the only one, its records are in order whatever their
/// times are, and reading the clock takes longer than all the rest; so where records come fast, not each reads it.
///
/// # Safety
/// `header` is mapped, `thread` the calling thread's.
#[inline(always)]
unsafe fn time(header: *mut Header, thread: *mut Thread) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        if !is_alone() {
            (*thread).same = 0;
            return stamp(header);
        }
        if (*thread).same > 0 {
            (*thread).same -= 1;
            return (*thread).last;
        }
        let now = stamp(header);
        if now.wrapping_sub((*thread).last) < CLOSELY {
            (*thread).same = SAME_TIME;
        }
        now
    }
}

/// The time, in units of the layout. Of two records of which one has to be before the other, be it that a block
/// was handed on or an address, both times are read in that order: none before what led here was done, and none
/// after what follows, which no processor shows to others before it has read the clock.
///
/// # Safety
/// `header` is mapped.
#[inline(always)]
unsafe fn stamp(header: *mut Header) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        if (*header).shared_clock != 0 {
            return shared(&(*header).clock);
        }
    }
    if is_alone() {
        clock::now() >> clock::SHIFT
    } else {
        clock::now_after_reads() >> clock::SHIFT
    }
}

/// A time that is no less than any that was read before, in whichever thread.
#[cold]
fn shared(last: &AtomicU64) -> u64 {
    let now = clock::now() >> clock::SHIFT;
    let before = last.fetch_max(now, Ordering::AcqRel);
    if before < now {
        now
    } else {
        last.fetch_add(1, Ordering::AcqRel) + 1
    }
}

/// Whether the process has but one thread.
#[inline(always)]
fn is_alone() -> bool {
    // SAFETY: glibc's variable is one readable byte, changed only by this
    // thread while it is the only one.
    unsafe { (&raw const __libc_single_threaded).read_volatile() != 0 }
}

/// Puts the full time of the thread before a record of `words` words, which gets another place: that is returned.
///
/// # Safety
/// `header` is mapped, `thread` the calling thread's, `place` its own to write.
#[cold]
#[inline(never)]
unsafe fn mark(
    header: *mut Header,
    thread: *mut Thread,
    place: *mut u64,
    words: usize,
    now: u64,
) -> Option<*mut u64> {
    // SAFETY: the caller's promise; what is reserved is this call's.
    unsafe {
        let marked = reserve(header, thread, 2 + words);
        if let Some(marked) = marked {
            set(marked, PENDING);
        }
        for word in (0..words).rev() {
            set(place.add(word), PADDING);
        }
        let marked = marked?;
        set(marked.add(2), PENDING);
        set(marked.add(1), layout::more(now));
        set(marked, layout::head(MARK, now, 0));
        Some(marked.add(2))
    }
}

/// Appends an entry of the tables, of which `words` are the head, a place for the number, and the rest; its number
/// plus one, or 0 if there is no room.
///
/// # Safety
/// `header` is mapped.
pub(crate) unsafe fn put_entry(header: *mut Header, words: &[u64]) -> u64 {
    // SAFETY: the caller's promise; what is reserved is this call's.
    unsafe {
        let Some(place) = reserve(header, thread::current(), words.len()) else {
            return 0;
        };
        set(place, PENDING);
        let number = (*header).entries.fetch_add(1, Ordering::AcqRel);
        for (more, &word) in words.iter().enumerate().skip(2) {
            set(place.add(more), word);
        }
        set(place.add(1), layout::more(number));
        set(place, words.first().copied().unwrap_or(PADDING));
        number + 1
    }
}

/// # Safety
/// `place` is mapped and the caller's alone to write.
#[inline(always)]
unsafe fn set(place: *mut u64, word: u64) {
    // SAFETY: the caller's promise. Atomic, so that the word is never torn, and in order.
    unsafe { AtomicU64::from_ptr(place).store(word, Ordering::Release) };
}

/// # Safety
/// `header` is mapped.
#[cold]
unsafe fn lose(header: *mut Header) {
    // SAFETY: the caller's promise.
    unsafe { (*header).lost.fetch_add(1, Ordering::Relaxed) };
}

/// Reserves the next `words` words of the thread: no more than a segment has besides what each begins with. None
/// if there is no room; that is counted.
///
/// # Safety
/// `header` is mapped, `thread` the calling thread's.
#[inline(always)]
unsafe fn reserve(header: *mut Header, thread: *mut Thread, words: usize) -> Option<*mut u64> {
    let bytes = words * 8;
    // SAFETY: the thread's own state.
    let place = unsafe { thread::advance(thread, bytes) };
    // SAFETY: as above.
    if place.wrapping_add(bytes) <= unsafe { (*thread).end } {
        return Some(ptr::with_exposed_provenance_mut(place));
    }
    // SAFETY: the caller's promise.
    unsafe { reserve_anew(header, thread, words) }
}

/// As [`reserve`], in another segment.
#[cold]
#[inline(never)]
unsafe fn reserve_anew(header: *mut Header, thread: *mut Thread, words: usize) -> Option<*mut u64> {
    let wiped = wiped_page()?;
    loop {
        {
            let _guard = Guard::take(wiped);
            // SAFETY: mapped, by the caller's promise; signals are kept away, so nobody else is in the thread's state.
            let (fields, own) = unsafe { (&*header, &mut *thread) };
            match segment(fields) {
                Segment::At(index, place) => {
                    begin_segment(fields, own, index, place);
                    let first = own.next;
                    own.next += words * 8;
                    return Some(ptr::with_exposed_provenance_mut(first));
                }
                Segment::None => {
                    own.next = 0;
                    own.end = 0;
                    // SAFETY: the caller's promise.
                    unsafe { lose(header) };
                    return None;
                }
                Segment::Wait => {}
            }
        }
        // SAFETY: the caller's promise.
        unsafe {
            if !kernel::lives((*header).reader.load(Ordering::Relaxed)) {
                // Nobody would ever read it.
                (*header).paused.store(1, Ordering::Relaxed);
                lose(header);
                return None;
            }
            kernel::pause(WAIT_NANOSECONDS);
            (*header)
                .waited
                .fetch_add(WAIT_NANOSECONDS, Ordering::Relaxed);
        }
    }
}

/// For how long a thread waits before it looks again whether there is room.
const WAIT_NANOSECONDS: u64 = 500_000;

/// A segment for a thread.
enum Segment {
    /// Which, and where.
    At(u64, *mut u64),
    /// None can be had.
    None,
    /// Those there may be are in use.
    Wait,
}

/// A segment that nobody has. Call under the lock.
fn segment(fields: &Header) -> Segment {
    let taken = fields.taken.load(Ordering::Relaxed);
    if fields.given.load(Ordering::Acquire) > taken {
        let given = fields.ring.get((taken % RING as u64) as usize);
        let index = given.map_or(0, |given| u64::from(given.load(Ordering::Relaxed)));
        return place(index).map_or(Segment::None, |place| Segment::At(index, place));
    }
    let index = fields.segments.load(Ordering::Relaxed);
    let most = u64::from(fields.most_segments.load(Ordering::Relaxed));
    if most != 0 && index >= most && fields.reader.load(Ordering::Relaxed) != 0 {
        return Segment::Wait;
    }
    place(index).map_or(Segment::None, |place| Segment::At(index, place))
}

/// Makes segment `index` the thread's, says so, and puts its time into it. Call under the lock.
fn begin_segment(fields: &Header, own: &mut Thread, index: u64, place: *mut u64) {
    if own.number == 0 {
        own.number = thread::new_number();
    }
    own.segments += 1;
    // The record that this is for was not begun: its time will be later.
    // SAFETY: mapped.
    let now = unsafe { stamp(ptr::from_ref(fields).cast_mut()) };
    // A child of `vfork` writes as the thread that waits for it, which goes on in this segment when the child is gone.
    let system = match kernel::process().0 == fields.pid {
        true => kernel::thread(),
        false => 0,
    };
    // SAFETY: a mapped segment, which is nobody's.
    unsafe {
        set(place.add(3), layout::system_thread(system));
        set(place.add(2), layout::more(now));
        set(place.add(1), layout::head(MARK, now, 0));
        set(place, layout::owner(own.number, own.segments));
    }
    own.last = now;
    let first = place.expose_provenance();
    own.next = first + 8 * 4;
    own.end = first + 8 * SEGMENT_WORDS;
    // It is told last: who reads along finds it whole.
    let told = if index < fields.segments.load(Ordering::Relaxed) {
        &fields.taken
    } else {
        &fields.segments
    };
    told.fetch_add(1, Ordering::Release);
}

/// Where segment `index` is mapped; None if it cannot be. Call under the lock.
fn place(index: u64) -> Option<*mut u64> {
    let (chunk, within) = (
        index as usize / SEGMENTS_IN_CHUNK,
        index as usize % SEGMENTS_IN_CHUNK,
    );
    let mut place = MAPPED.get(chunk)?.load(Ordering::Acquire);
    if place.is_null() {
        place = map_chunk(chunk);
    }
    // SAFETY: the chunk has that segment.
    (place != REFUSED).then(|| unsafe { place.add(within * SEGMENT_BYTES) }.cast())
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
    // In a forked child: the segment is its parent's.
    // SAFETY: the thread's own state, and signals are kept away.
    unsafe { *thread::current() = Thread::NEW };
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
    fields.shared_clock = u32::from(!clock::is_common());
    fields.paused = AtomicU32::new(u32::from(has_file(directory, PAUSED_FILE)));
    fields.sites = u32::from(has_file(directory, SITES_FILE) && sites::begin());
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

/// Whether the directory has a file of that name.
fn has_file(directory: &Path, name: &str) -> bool {
    let mut file = Path::new();
    file.set_named(directory, name).is_some() && exists(file.as_c_str())
}

fn exists(path: &CStr) -> bool {
    File::open(path, libc::O_RDONLY).is_some()
}

/// Maps chunk `chunk` of the file. Call under the lock.
fn map_chunk(chunk: usize) -> *mut u8 {
    let Some(place) = MAPPED.get(chunk) else {
        return REFUSED;
    };
    // SAFETY: the lock is held, and this is the only reference.
    let path = unsafe { FILE.get() };
    let offset = HEADER_BYTES + chunk * CHUNK_BYTES;
    let mapped = File::open(path.as_c_str(), libc::O_RDWR)
        .filter(|file| file.reserve(offset, CHUNK_BYTES))
        .and_then(|file| file.map(offset, CHUNK_BYTES, true))
        .unwrap_or(REFUSED);
    place.store(mapped, Ordering::Release);
    HIGHEST.fetch_max(chunk + 1, Ordering::Relaxed);
    // A thread may still write an old chunk: keep it mapped, but out of the resident set.
    if let Some(old) = chunk.checked_sub(2).and_then(|old| MAPPED.get(old)) {
        let old = old.load(Ordering::Acquire);
        if !old.is_null() && old != REFUSED {
            // SAFETY: a mapped chunk, shared and file-backed.
            unsafe { kernel::let_go(old, CHUNK_BYTES) };
        }
    }
    mapped
}
