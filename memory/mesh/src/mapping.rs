//! Memory of the host that is zero, and taken when it is written.
//!
//! Invariant: it is as large and as aligned as its layout, until it is dropped.

use core::alloc::Layout;
use core::ptr::NonNull;

/// Memory that is given back when it is dropped.
#[derive(Debug)]
pub struct Mapping {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it hands out an address; who reads or writes behind it answers for that.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Memory of this layout, which has a byte at least; nothing where the host has not so much.
    pub(crate) fn new(layout: Layout) -> Option<Mapping> {
        debug_assert!(layout.size() > 0, "there is something to map");
        let start = take(layout, Sharing::Threads)?;
        Some(Mapping { start, layout })
    }

    /// Memory that processes which this one forks have, too, at the same address: what one writes, all see. Nothing where the
    /// host has not so much, or no such memory, or no byte is asked for.
    pub fn of_processes(layout: Layout) -> Option<Mapping> {
        if layout.size() == 0 || cfg!(not(all(unix, not(miri)))) {
            return None;
        }
        let start = take(layout, Sharing::Processes)?;
        Some(Mapping { start, layout })
    }

    /// Where it begins.
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }
}

/// Who has it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sharing {
    /// This process.
    Threads,
    /// Those that it forks, too.
    Processes,
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was taken with this layout, and goes with this.
        unsafe { give_back(self.start, self.layout) };
    }
}

/// What the system maps is zero and costs nothing before it is written; what the global allocator zeroes is written.
#[cfg(all(unix, not(miri)))]
fn take(layout: Layout, sharing: Sharing) -> Option<NonNull<u8>> {
    let (size, align) = (layout.size(), layout.align());
    let wide = size.checked_add(align)?;
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let whose = match sharing {
        Sharing::Threads => libc::MAP_PRIVATE,
        Sharing::Processes => libc::MAP_SHARED,
    };
    let flags = whose | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping, wherever there is room.
    let mapped = unsafe { libc::mmap(core::ptr::null_mut(), wide, protection, flags, -1, 0) };
    if mapped == libc::MAP_FAILED {
        return None;
    }
    let skip = mapped.addr().wrapping_neg() & (align - 1);
    // Whole pages of what is too much go back; a layout below a page has its memory in the first one or two.
    let page = 4096;
    let front = skip / page * page;
    let behind = (skip + size).next_multiple_of(page);
    // SAFETY: the parts lie in the mapping, outside of the memory that is kept.
    unsafe {
        if front > 0 {
            libc::munmap(mapped, front);
        }
        if behind < wide {
            libc::munmap(mapped.byte_add(behind), wide - behind);
        }
        NonNull::new(mapped.byte_add(skip).cast())
    }
}

/// # Safety
/// It was taken with this layout, and is used no more.
#[cfg(all(unix, not(miri)))]
unsafe fn give_back(start: NonNull<u8>, layout: Layout) {
    // Pages that hold a part of it were kept whole.
    let within = start.addr().get() % 4096;
    // SAFETY: the mapping is the caller's.
    unsafe {
        let first = start.as_ptr().byte_sub(within);
        libc::munmap(first.cast(), within + layout.size());
    }
}

#[cfg(not(all(unix, not(miri))))]
fn take(layout: Layout, _: Sharing) -> Option<NonNull<u8>> {
    // SAFETY: the layout has a byte at least.
    NonNull::new(unsafe { std::alloc::alloc_zeroed(layout) })
}

/// # Safety
/// It was taken with this layout, and is used no more.
#[cfg(not(all(unix, not(miri))))]
unsafe fn give_back(start: NonNull<u8>, layout: Layout) {
    // SAFETY: as the caller says.
    unsafe { std::alloc::dealloc(start.as_ptr(), layout) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_zero_aligned_and_as_large_as_asked() {
        for (size, align) in [
            (1, 1),
            (4096, 128),
            (5000, 4096),
            (1 << 20, 1 << 22),
            (3, 1 << 16),
        ] {
            let layout = Layout::from_size_align(size, align).expect("a layout");
            for _ in 0..3 {
                let mapping = Mapping::new(layout).expect("there is so much");
                let start = mapping.start().as_ptr();
                assert!(start.addr().is_multiple_of(align));
                let places = [0, size / 2, size - 1];
                for at in places {
                    // SAFETY: within the memory.
                    assert_eq!(unsafe { start.add(at).read() }, 0);
                }
                for at in places {
                    // SAFETY: as above.
                    unsafe { start.add(at).write(7) };
                }
            }
        }
        // More than any host has addresses for.
        let layout = Layout::from_size_align(1 << 60, 1).expect("a layout");
        assert!(Mapping::new(layout).is_none());
        assert!(Mapping::of_processes(layout).is_none());
        let nothing = Layout::from_size_align(0, 1).expect("a layout");
        assert!(Mapping::of_processes(nothing).is_none());
    }
}
