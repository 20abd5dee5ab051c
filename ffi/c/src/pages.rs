//! Constant-time virtual memory for C: spaces and frames in memory that the program gave.
//!
//! Invariants:
//! - a space begins with its number of pages, which tells its capacity;
//! - every argument is checked before memory is changed.

use core::ffi::c_void;
use core::{mem, ptr};

use metes_pages::{
    Access, Domain, Error, Frame, Frames, Links, Origin, Pages12, Pages16, Pages20, Pages24, Rights,
};

/// `metes_pages_status`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PagesStatus {
    /// Done.
    Ok,
    /// A region of no pages.
    Empty,
    /// Beyond the space.
    Beyond,
    /// Pages of the region are allocated already.
    Overlap,
    /// No allocated region there; for unmapping: none that begins there.
    Unmapped,
    /// The region does not allow it.
    Rights,
    /// A page fault.
    Absent,
    /// The page is mapped already.
    Present,
    /// All frames are used.
    NoFrame,
    /// A pointer is null, misaligned, or memory is too small.
    Memory,
}

impl From<Result<(), Error>> for PagesStatus {
    fn from(result: Result<(), Error>) -> Self {
        match result {
            Ok(()) => Self::Ok,
            Err(Error::Empty) => Self::Empty,
            Err(Error::Beyond) => Self::Beyond,
            Err(Error::Open) => Self::Memory,
            Err(Error::Overlap) => Self::Overlap,
            Err(Error::Unmapped) => Self::Unmapped,
            Err(Error::Rights) => Self::Rights,
            Err(Error::Absent) => Self::Absent,
            Err(Error::Present) => Self::Present,
            Err(Error::NoFrame) => Self::NoFrame,
        }
    }
}

/// `metes_mapped`.
#[repr(C)]
#[derive(Debug)]
pub struct Mapped {
    frame: u32,
    clear: bool,
}

/// A word a frame, right behind the head of [`Frames`].
#[repr(C)]
#[derive(Debug)]
struct Words {
    first: *mut u32,
    count: u32,
}

impl Links for Words {
    fn capacity(&self) -> u32 {
        self.count
    }

    fn get(&self, frame: Frame) -> Frame {
        debug_assert!(frame < self.count);
        // SAFETY: `first` points at `count` words that `metes_frames_create` was given for this,
        // and frames that were handed out are below that count.
        unsafe { self.first.add(frame as usize).read() }
    }

    fn set(&mut self, frame: Frame, next: Frame) {
        debug_assert!(frame < self.count);
        // SAFETY: as in `get`.
        unsafe { self.first.add(frame as usize).write(next) }
    }
}

/// The frames that C holds a pointer to.
#[derive(Debug)]
#[repr(transparent)]
pub struct CFrames(Frames<Words>);

/// A space of some capacity; C holds pointers to it.
#[derive(Debug)]
pub enum CPages {}

/// Does something with the space behind a pointer, whatever its capacity.
macro_rules! with {
    ($pages:expr, $space:ident, $work:expr) => {{
        let pages: *mut CPages = $pages;
        // A space begins with its pages.
        match pages.cast::<u32>().read() {
            ..=0x1000 => {
                let $space = &mut *pages.cast::<Pages12>();
                $work
            }
            0x1001..=0x1_0000 => {
                let $space = &mut *pages.cast::<Pages16>();
                $work
            }
            0x1_0001..=0x10_0000 => {
                let $space = &mut *pages.cast::<Pages20>();
                $work
            }
            _ => {
                let $space = &mut *pages.cast::<Pages24>();
                $work
            }
        }
    }};
}

/// `metes_pages_size`.
#[unsafe(no_mangle)]
pub extern "C" fn metes_pages_size(pages: u32) -> usize {
    match pages {
        0 => 0,
        1..=0x1000 => mem::size_of::<Pages12>(),
        0x1001..=0x1_0000 => mem::size_of::<Pages16>(),
        0x1_0001..=0x10_0000 => mem::size_of::<Pages20>(),
        0x10_0001..=0x100_0000 => mem::size_of::<Pages24>(),
        _ => 0,
    }
}

/// `metes_pages_create`.
///
/// # Safety
/// `memory` is null or points at `bytes` bytes, all zero, that nothing else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_pages_create(
    memory: *mut c_void,
    bytes: usize,
    pages: u32,
    domain: u8,
) -> *mut CPages {
    let needed = metes_pages_size(pages);
    let fits = needed != 0 && bytes >= needed && memory.addr().is_multiple_of(8);
    let (false, true, Some(domain)) = (memory.is_null(), fits, Domain::new(domain)) else {
        return ptr::null_mut();
    };
    let space = memory.cast::<CPages>();
    // SAFETY: aligned and large enough; all zero is a closed space of any capacity, and the
    // capacity is chosen by the number of pages that it is then opened with.
    let opened = unsafe {
        match pages {
            ..=0x1000 => (*space.cast::<Pages12>()).open(pages, domain),
            0x1001..=0x1_0000 => (*space.cast::<Pages16>()).open(pages, domain),
            0x1_0001..=0x10_0000 => (*space.cast::<Pages20>()).open(pages, domain),
            _ => (*space.cast::<Pages24>()).open(pages, domain),
        }
    };
    if opened.is_ok() {
        space
    } else {
        ptr::null_mut()
    }
}

/// `metes_frames_size`.
#[unsafe(no_mangle)]
pub extern "C" fn metes_frames_size(frames: u32) -> usize {
    mem::size_of::<CFrames>() + frames as usize * mem::size_of::<u32>()
}

/// `metes_frames_create`.
///
/// # Safety
/// `memory` is null or points at `bytes` bytes that nothing else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_frames_create(
    memory: *mut c_void,
    bytes: usize,
    frames: u32,
) -> *mut CFrames {
    let fits = bytes >= metes_frames_size(frames) && memory.addr().is_multiple_of(8);
    if memory.is_null() || frames == 0 || !fits {
        return ptr::null_mut();
    }
    // SAFETY: aligned, and large enough for the head and the words behind it.
    unsafe {
        let first = memory.byte_add(mem::size_of::<CFrames>()).cast::<u32>();
        let links = Words {
            first,
            count: frames,
        };
        let Some(own) = Frames::new(links, frames) else {
            return ptr::null_mut();
        };
        let at = memory.cast::<CFrames>();
        at.write(CFrames(own));
        at
    }
}

/// `metes_frames_available`.
///
/// # Safety
/// `frames` is null or was created, and no other call uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_frames_available(frames: *const CFrames) -> u32 {
    // SAFETY: the caller's contract.
    unsafe { frames.as_ref() }.map_or(0, |frames| frames.0.available())
}

/// `metes_pages_map`.
///
/// # Safety
/// `pages` is null or was created, and no other call uses it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_pages_map(
    pages: *mut CPages,
    start: u32,
    count: u32,
    write: bool,
) -> PagesStatus {
    if pages.is_null() {
        return PagesStatus::Memory;
    }
    let rights = if write {
        Rights::READ_WRITE
    } else {
        Rights::READ
    };
    // SAFETY: the caller's contract; the number of pages tells the capacity.
    unsafe { with!(pages, space, space.map_region(start, count, rights)) }.into()
}

/// `metes_pages_unmap`.
///
/// # Safety
/// Both are null or were created, and no other call uses them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_pages_unmap(
    pages: *mut CPages,
    start: u32,
    frames: *mut CFrames,
) -> PagesStatus {
    // SAFETY: the caller's contract.
    let (false, Some(frames)) = (pages.is_null(), unsafe { frames.as_mut() }) else {
        return PagesStatus::Memory;
    };
    // SAFETY: as in `metes_pages_map`.
    unsafe { with!(pages, space, space.unmap_region(start, &mut frames.0)) }.into()
}

/// `metes_pages_map_page`.
///
/// # Safety
/// All are null or were created, `mapped` may be written; no other call uses them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_pages_map_page(
    pages: *mut CPages,
    page: u32,
    frames: *mut CFrames,
    mapped: *mut Mapped,
) -> PagesStatus {
    // SAFETY: the caller's contract.
    let (frames, to) = unsafe { (frames.as_mut(), mapped.as_mut()) };
    let (false, Some(frames), Some(to)) = (pages.is_null(), frames, to) else {
        return PagesStatus::Memory;
    };
    // SAFETY: as in `metes_pages_map`.
    let result = unsafe { with!(pages, space, space.map_page(page, &mut frames.0)) };
    result
        .map(|mapped| {
            *to = Mapped {
                frame: mapped.frame,
                clear: mapped.origin != Origin::Own,
            };
        })
        .into()
}

/// `metes_pages_access`.
///
/// # Safety
/// `pages` is null or was created, `frame` is null or may be written; no other call uses them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_pages_access(
    pages: *mut CPages,
    page: u32,
    write: bool,
    frame: *mut u32,
) -> PagesStatus {
    // SAFETY: the caller's contract.
    let (false, Some(to)) = (pages.is_null(), unsafe { frame.as_mut() }) else {
        return PagesStatus::Memory;
    };
    let access = if write { Access::Write } else { Access::Read };
    // SAFETY: as in `metes_pages_map`.
    let result = unsafe { with!(pages, space, space.access(page, access)) };
    result.map(|frame| *to = frame).into()
}
