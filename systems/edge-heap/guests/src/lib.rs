//! The program around an allocator: each of its requests under a name that a host can call.

/// The exports of a module over its `#[global_allocator]`: a request each, and calls of the same form that ask
/// for nothing.
#[macro_export]
macro_rules! exports {
    () => {
        use std::alloc::{Layout, alloc, dealloc, realloc};

        fn layout(size: usize, align: usize) -> Layout {
            // SAFETY: the host asks for what `Layout` allows.
            unsafe { Layout::from_size_align_unchecked(size, align) }
        }

        #[unsafe(no_mangle)]
        extern "C" fn allocate(size: usize, align: usize) -> *mut u8 {
            // SAFETY: the host asks for one byte or more.
            unsafe { alloc(layout(size, align)) }
        }

        #[unsafe(no_mangle)]
        extern "C" fn release(place: *mut u8, size: usize, align: usize) {
            // SAFETY: the host gives blocks back that it holds.
            unsafe { dealloc(place, layout(size, align)) }
        }

        #[unsafe(no_mangle)]
        extern "C" fn resize(place: *mut u8, size: usize, align: usize, new: usize) -> *mut u8 {
            // SAFETY: as above.
            unsafe { realloc(place, layout(size, align), new) }
        }
    };
}
