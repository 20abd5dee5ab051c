//! The malloc family, as glibc's manual has it.
//!
//! Invariant: a function that succeeds leaves `errno` as it was; one that has
//! no memory gives null with `ENOMEM` and changes nothing.

use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};

use metes_heap::index::Index;
use metes_heap::{BadFree, MOST_DOUBTS, Statistics};
use metes_threads::LARGEST;

use crate::heaps::{self, Locked, answer, each};
use crate::host::{self, ALIGN, GoesOn, Host, Records, Refused};
use crate::process::{say, set_errno};
use crate::threads::{self, Freed};

const PAGE: usize = 4096;

/// What became of an allocation, told after the lock is given back.
#[inline(always)]
fn allocated<I: Index<S>, S: Records, const POOLS: usize, const OBJECTS: bool, H>(
    heap: &mut Host<I, S, POOLS, OBJECTS>,
    held: H,
    block: *mut u8,
) -> *mut c_void {
    let fault = heap.take_fault();
    drop(held);
    if let Some(what) = fault {
        misused("malloc", block.cast(), BadFree::Overwritten(what));
    }
    if block.is_null() {
        set_errno(libc::ENOMEM);
    }
    block.cast()
}

#[inline(never)]
extern "C" fn allocate<I: Index<S>, S: Records, const POOLS: usize, const OBJECTS: bool, H>(
    heap: &mut Host<I, S, POOLS, OBJECTS>,
    held: H,
    size: usize,
) -> *mut c_void {
    let block = heap.allocate(size);
    allocated(heap, held, block)
}

#[inline(never)]
extern "C" fn allocate_aligned<
    I: Index<S>,
    S: Records,
    const POOLS: usize,
    const OBJECTS: bool,
    H,
>(
    heap: &mut Host<I, S, POOLS, OBJECTS>,
    held: H,
    size: usize,
    align: usize,
) -> *mut c_void {
    let block = heap.allocate_aligned(size, align);
    allocated(heap, held, block)
}

#[inline(never)]
extern "C" fn allocate_cleared<
    I: Index<S>,
    S: Records,
    const POOLS: usize,
    const OBJECTS: bool,
    H,
>(
    heap: &mut Host<I, S, POOLS, OBJECTS>,
    held: H,
    size: usize,
) -> *mut c_void {
    let block = heap.allocate(size);
    // What is no page is cleared whatever it is.
    let fresh = size >= PAGE && heap.is_fresh(block);
    let block = allocated(heap, held, block);
    if !block.is_null() && !fresh {
        // SAFETY: a new block of that size, outside the lock.
        unsafe { host::clear(block.cast(), size) };
    }
    block
}

#[inline(never)]
extern "C" fn release<I: Index<S>, S: Records, const POOLS: usize, const OBJECTS: bool, H>(
    heap: &mut Host<I, S, POOLS, OBJECTS>,
    held: H,
    block: NonNull<u8>,
) {
    let freed = heap.free(block);
    drop(held);
    if let Err(why) = freed {
        misused("free", block.as_ptr().cast(), why);
    }
}

#[inline(never)]
extern "C" fn resize<I: Index<S>, S: Records, const POOLS: usize, const OBJECTS: bool, H>(
    heap: &mut Host<I, S, POOLS, OBJECTS>,
    held: H,
    block: NonNull<u8>,
    size: usize,
) -> *mut c_void {
    let resized = heap.resize(block, size);
    drop(held);
    match resized {
        Ok(new) => new.cast(),
        Err(Refused::NoMemory) => {
            set_errno(libc::ENOMEM);
            ptr::null_mut()
        }
        Err(Refused::Bad(why)) => {
            misused("realloc", block.as_ptr().cast(), why);
            set_errno(libc::EINVAL);
            ptr::null_mut()
        }
    }
}

/// Says what a program did wrong, and ends it as glibc does, or goes on if it is to.
#[cold]
fn misused(function: &str, block: *mut c_void, why: BadFree) {
    let what = match why {
        BadFree::Foreign => "invalid pointer",
        BadFree::NotInUse => "block is not in use (freed twice?)",
        BadFree::Overwritten(what) => what.words(),
    };
    let place = block.cast();
    let block = match block.is_null() {
        true => String::new(),
        false => format!("{block:p}"),
    };
    say(&format!("metes: {function}({block}): {what}\n"));
    let Locked { heap, held } = heaps::lock();
    let goes_on = each!(heap, heap => heap.goes_on_after(place, why));
    drop(held);
    match goes_on {
        GoesOn::Yes => return,
        GoesOn::No => {}
        GoesOn::NoMore => say(&format!(
            "metes: {MOST_DOUBTS} bad frees, each of which may have been a guess: a hardened heap does not go on, \
             as its checks could be guessed\n"
        )),
    }
    // SAFETY: has no precondition.
    unsafe { libc::abort() }
}

/// See malloc(3).
#[unsafe(no_mangle)]
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    if threads::serve() {
        if let Some(block) = threads::at_hand(size) {
            return block.as_ptr().cast();
        }
        return malloc_next(size);
    }
    answer!(allocate(size), malloc(size))
}

/// Of what a thread's page has next.
#[inline(never)]
extern "C" fn malloc_next(size: usize) -> *mut c_void {
    match threads::at_next(size) {
        Some(block) => block.as_ptr().cast(),
        None => malloc_of_threads(size),
    }
}

/// Of a thread's heap, which has nothing at hand, or of the one behind.
#[inline(never)]
extern "C" fn malloc_of_threads(size: usize) -> *mut c_void {
    threads::allocate(size, ALIGN, || malloc_behind(size).cast()).cast()
}

/// Of the heap behind those of threads.
#[cold]
#[inline(never)]
extern "C" fn malloc_behind(size: usize) -> *mut c_void {
    answer!(@any allocate(size), malloc(size))
}

/// See malloc(3).
///
/// # Safety
/// `block` is null or a block of this family.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(block: *mut c_void) {
    if threads::serve_directly() {
        // SAFETY: the caller's contract.
        return unsafe { threads::free_at_hand(block.cast(), free_of_threads) };
    }
    if threads::serve() {
        // SAFETY: as above.
        return unsafe { free_of_threads(block.cast()) };
    }
    if let Some(own) = NonNull::new(block.cast()) {
        // SAFETY: of `again`: the caller's contract.
        answer!(release(own), unsafe { free(block) });
    }
}

/// Frees a block of another thread's heap, of the one behind, or none.
#[inline(never)]
unsafe extern "C" fn free_of_threads(block: *mut u8) {
    let Some(own) = NonNull::new(block) else {
        return;
    };
    let block = block.cast();
    // SAFETY: the caller's contract.
    match unsafe { threads::free(own, || usable(own).unwrap_or(0)) } {
        Freed::Done => {}
        // SAFETY: of `again`: the caller's contract.
        Freed::Behind => answer!(@any release(own), unsafe { free(block) }),
        Freed::Bad(why) => misused("free", block, why),
    }
}

/// See malloc(3).
#[unsafe(no_mangle)]
pub extern "C" fn calloc(count: usize, size: usize) -> *mut c_void {
    let Some(size) = count.checked_mul(size) else {
        set_errno(libc::ENOMEM);
        return ptr::null_mut();
    };
    if threads::serve() && size <= LARGEST {
        let block = malloc(size);
        if !block.is_null() {
            // SAFETY: a new block of that size.
            unsafe { block.write_bytes(0, size) };
        }
        return block;
    }
    let block = answer!(@any allocate_cleared(size), calloc(1, size));
    threads::noted(block, size)
}

/// See malloc(3).
///
/// # Safety
/// As [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(block: *mut c_void, size: usize) -> *mut c_void {
    let Some(own) = NonNull::new(block.cast()) else {
        return malloc(size);
    };
    if size == 0 {
        // SAFETY: the caller's contract.
        unsafe { free(block) };
        return ptr::null_mut();
    }
    if threads::serve() {
        match threads::usable(own) {
            // SAFETY: the caller's contract.
            Ok(Some(held)) => return unsafe { resize_of_thread(block, held, size) },
            Ok(None) => {}
            Err(why) => {
                misused("realloc", block, why);
                set_errno(libc::EINVAL);
                return ptr::null_mut();
            }
        }
    }
    let before = threads::usable_behind(|| usable(own).unwrap_or(0));
    // SAFETY: of `again`: the caller's contract.
    let new = answer!(@any resize(own, size), unsafe { realloc(block, size) });
    if !new.is_null() {
        threads::resized(before, size);
    }
    new
}

/// Resizes a block of a thread, which holds `held` bytes.
///
/// # Safety
/// As [`free`].
#[inline(never)]
unsafe fn resize_of_thread(block: *mut c_void, held: usize, size: usize) -> *mut c_void {
    if threads::stays(held, size) {
        threads::resized(held, held);
        return block;
    }
    let new = malloc(size);
    if !new.is_null() {
        // SAFETY: two blocks, each of at least that many bytes; the old one is the caller's to free.
        unsafe {
            ptr::copy_nonoverlapping(block.cast::<u8>(), new.cast(), held.min(size));
            free(block);
        }
    }
    new
}

/// See malloc(3).
///
/// # Safety
/// As [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(
    block: *mut c_void,
    count: usize,
    size: usize,
) -> *mut c_void {
    match count.checked_mul(size) {
        // SAFETY: the caller's contract.
        Some(size) => unsafe { realloc(block, size) },
        None => {
            set_errno(libc::ENOMEM);
            ptr::null_mut()
        }
    }
}

/// A block aligned to a power of two.
fn aligned(size: usize, align: usize) -> *mut c_void {
    let align = align.max(ALIGN);
    if threads::serve() {
        return threads::allocate(size, align, || aligned_behind(size, align).cast()).cast();
    }
    aligned_behind(size, align)
}

fn aligned_behind(size: usize, align: usize) -> *mut c_void {
    answer!(@any allocate_aligned(size, align), aligned_behind(size, align))
}

/// See posix_memalign(3).
///
/// # Safety
/// `place` is valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(
    place: *mut *mut c_void,
    align: usize,
    size: usize,
) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<*mut c_void>()) {
        return libc::EINVAL;
    }
    let block = aligned(size, align);
    if block.is_null() {
        // As in glibc, errno says so, too.
        return libc::ENOMEM;
    }
    // SAFETY: the caller's contract.
    unsafe { *place = block };
    0
}

/// See posix_memalign(3). An alignment that is no power of two is rounded up to one.
#[unsafe(no_mangle)]
pub extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    match align.checked_next_power_of_two() {
        Some(align) => aligned(size, align),
        None => {
            set_errno(libc::EINVAL);
            ptr::null_mut()
        }
    }
}

/// See posix_memalign(3).
#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    memalign(align, size)
}

/// See posix_memalign(3).
#[unsafe(no_mangle)]
pub extern "C" fn valloc(size: usize) -> *mut c_void {
    aligned(size, PAGE)
}

/// See posix_memalign(3).
#[unsafe(no_mangle)]
pub extern "C" fn pvalloc(size: usize) -> *mut c_void {
    match size.checked_next_multiple_of(PAGE) {
        Some(size) => aligned(size, PAGE),
        None => {
            set_errno(libc::ENOMEM);
            ptr::null_mut()
        }
    }
}

/// See malloc_usable_size(3): the bytes that were requested.
///
/// # Safety
/// As [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(block: *mut c_void) -> usize {
    let Some(own) = NonNull::new(block.cast()) else {
        return 0;
    };
    match usable(own) {
        Ok(size) => size,
        Err(why) => {
            misused("malloc_usable_size", block, why);
            0
        }
    }
}

/// The bytes that a block holds, of whichever heap.
fn usable(own: NonNull<u8>) -> Result<usize, BadFree> {
    if threads::serve()
        && let Some(size) = threads::usable(own)?
    {
        return Ok(size);
    }
    let Locked { heap, held } = heaps::lock();
    let size = each!(heap, heap => heap.usable_size(own));
    drop(held);
    size
}

/// The old name of [`free`].
///
/// # Safety
/// As [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cfree(block: *mut c_void) {
    // SAFETY: the caller's contract.
    unsafe { free(block) };
}

/// [`free`] of C23, told the size.
///
/// # Safety
/// As [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_sized(block: *mut c_void, _size: usize) {
    // SAFETY: the caller's contract.
    unsafe { free(block) };
}

/// [`free`] of C23, told alignment and size.
///
/// # Safety
/// As [`free`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free_aligned_sized(block: *mut c_void, _align: usize, _size: usize) {
    // SAFETY: the caller's contract.
    unsafe { free(block) };
}

/// See malloc_trim(3): the pages kept for the next large block that grows are given back; those of
/// pools stay.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_trim(_pad: usize) -> c_int {
    let Locked { heap, held: _held } = heaps::lock();
    c_int::from(each!(heap, heap => heap.trim()))
}

/// See mallopt(3): the parameters of glibc's heap have no meaning here.
#[unsafe(no_mangle)]
pub extern "C" fn mallopt(_parameter: c_int, _value: c_int) -> c_int {
    1
}

/// See mallinfo(3), in words of `size_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct MallocInfo<T> {
    arena: T,
    ordblks: T,
    smblks: T,
    hblks: T,
    hblkhd: T,
    usmblks: T,
    fsmblks: T,
    uordblks: T,
    fordblks: T,
    keepcost: T,
}

/// What the heap has, and of blocks that are mappings of their own: their number, bytes of their pages, and
/// the most of either at once.
fn figures() -> (Statistics, [usize; 4]) {
    let Locked { heap, held } = heaps::lock();
    let (behind, mapped) = each!(heap, heap => (heap.statistics(), heap.mapped_figures()));
    drop(held);
    (threads::statistics(behind), mapped)
}

/// See mallinfo(3).
#[unsafe(no_mangle)]
pub extern "C" fn mallinfo2() -> MallocInfo<usize> {
    let (statistics, [blocks, bytes, ..]) = figures();
    // What is mapped is told apart, as by glibc.
    let arena = statistics.footprint.saturating_sub(bytes);
    MallocInfo {
        arena,
        ordblks: statistics.free_blocks,
        hblks: blocks,
        hblkhd: bytes,
        uordblks: statistics.live,
        fordblks: arena.saturating_sub(statistics.live),
        ..MallocInfo::default()
    }
}

/// See mallinfo(3); what an `int` cannot hold wraps around, as there.
#[unsafe(no_mangle)]
pub extern "C" fn mallinfo() -> MallocInfo<c_int> {
    let info = mallinfo2();
    MallocInfo {
        arena: info.arena as c_int,
        ordblks: info.ordblks as c_int,
        hblks: info.hblks as c_int,
        hblkhd: info.hblkhd as c_int,
        uordblks: info.uordblks as c_int,
        fordblks: info.fordblks as c_int,
        ..MallocInfo::default()
    }
}

unsafe extern "C" {
    static mut stderr: *mut libc::FILE;
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// `PTHREAD_CANCEL_DISABLE`.
const NOT_CANCELLED: c_int = 1;

/// Writes text that ends with a zero byte, wholly: neither function that prints is a point at which a
/// thread is cancelled.
///
/// # Safety
/// `stream` is an open stream.
unsafe fn print(text: &str, stream: *mut libc::FILE) -> c_int {
    debug_assert!(text.ends_with('\0'));
    let mut before = 0;
    // SAFETY: a state that there is, and a place for the one before.
    unsafe { pthread_setcancelstate(NOT_CANCELLED, &raw mut before) };
    // SAFETY: text with a zero byte, and the caller's contract.
    let done = unsafe { libc::fputs(text.as_ptr().cast(), stream) };
    // SAFETY: the state that it was.
    unsafe { pthread_setcancelstate(before, ptr::null_mut()) };
    match done {
        libc::EOF => -1,
        _ => 0,
    }
}

/// See malloc_stats(3): glibc's lines, and one of ours.
#[unsafe(no_mangle)]
pub extern "C" fn malloc_stats() {
    let (statistics, [_, bytes, most_blocks, most_bytes]) = figures();
    let text = format!(
        "Arena 0:\nsystem bytes     = {:10}\nin use bytes     = {:10}\n\
         Total (incl. mmap):\nsystem bytes     = {:10}\nin use bytes     = {:10}\n\
         max mmap regions = {most_blocks:10}\nmax mmap bytes   = {most_bytes:10}\n\
         metes: live {} bytes in {} blocks, peak {}, footprint {}, \
         largest free block {}\n\0",
        statistics.footprint.saturating_sub(bytes),
        statistics.live,
        statistics.footprint,
        statistics.live + bytes,
        statistics.live,
        statistics.blocks,
        statistics.peak_live,
        statistics.footprint,
        statistics.largest_free,
    );
    // SAFETY: the C library's stream, if the program has not closed it, which glibc asks for, too.
    unsafe { print(&text, stderr) };
}

/// See malloc_info(3).
///
/// # Safety
/// `stream` is an open stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_info(options: c_int, stream: *mut libc::FILE) -> c_int {
    if options != 0 {
        set_errno(libc::EINVAL);
        return -1;
    }
    let (statistics, _) = figures();
    let text = format!(
        "<malloc version=\"metes-1\">\n<system type=\"current\" size=\"{}\"/>\n\
         <live count=\"{}\" size=\"{}\"/>\n<live type=\"max\" size=\"{}\"/>\n</malloc>\n\0",
        statistics.footprint, statistics.blocks, statistics.live, statistics.peak_live,
    );
    // SAFETY: the caller's contract.
    unsafe { print(&text, stream) }
}

metes_ffi::other_names!();

/// The other names that glibc exports the family under; what they give must be
/// what [`free`] takes.
macro_rules! also_named {
    ($($alias:ident = $name:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)?;)*) => {$(
        #[doc = concat!("[`", stringify!($name), "`] by another name.")]
        ///
        /// # Safety
        /// As the function of the usual name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $alias($($argument: $kind),*) $(-> $result)? {
            #[allow(unused_unsafe, reason = "some of the family are safe")]
            // SAFETY: the caller's contract.
            unsafe { $name($($argument),*) }
        }
    )*};
}

also_named! {
    __libc_malloc = malloc(size: usize) -> *mut c_void;
    __libc_calloc = calloc(count: usize, size: usize) -> *mut c_void;
    __libc_realloc = realloc(block: *mut c_void, size: usize) -> *mut c_void;
    __libc_reallocarray =
        reallocarray(block: *mut c_void, count: usize, size: usize) -> *mut c_void;
    __libc_free = free(block: *mut c_void);
    __libc_memalign = memalign(align: usize, size: usize) -> *mut c_void;
    __libc_valloc = valloc(size: usize) -> *mut c_void;
    __libc_pvalloc = pvalloc(size: usize) -> *mut c_void;
    __posix_memalign =
        posix_memalign(place: *mut *mut c_void, align: usize, size: usize) -> c_int;
}
