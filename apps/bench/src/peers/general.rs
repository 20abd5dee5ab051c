//! Process-wide allocators in C and C++, reached through wrappers that only
//! drop the unused arguments (one jump, no moves).

use std::ffi::c_void;

use crate::peer::{ALIGN, Calls, Handle, Peer};

/// Wrappers over one `malloc` family, as a [`Peer`].
macro_rules! general {
    ($module:ident, $name:literal, $package:literal,
     $malloc:path, $free:path, $aligned:expr, $realloc:path) => {
        mod $module {
            use super::*;

            #[inline(never)]
            unsafe extern "C" fn measured_allocate(size: usize, _: *mut c_void) -> Handle {
                // SAFETY: any size is valid.
                unsafe { $malloc(size) as Handle }
            }

            #[inline(never)]
            unsafe extern "C" fn measured_free(block: Handle, _: usize, _: *mut c_void) {
                // SAFETY: the player frees live blocks of this allocator.
                unsafe { $free(block as *mut _) };
            }

            #[inline(never)]
            unsafe extern "C" fn measured_allocate_aligned(
                size: usize,
                align: usize,
                _: *mut c_void,
            ) -> Handle {
                let aligned: unsafe fn(usize, usize) -> *mut c_void = $aligned;
                // SAFETY: `align` is a power of two, at least a word.
                unsafe { aligned(align, size) as Handle }
            }

            #[inline(never)]
            unsafe extern "C" fn measured_free_aligned(
                block: Handle,
                _: usize,
                _: usize,
                _: *mut c_void,
            ) {
                // SAFETY: the player frees live blocks of this allocator.
                unsafe { $free(block as *mut _) };
            }

            #[inline(never)]
            unsafe extern "C" fn measured_resize(
                block: Handle,
                old: usize,
                new: usize,
                align: usize,
                heap: *mut c_void,
            ) -> Handle {
                // SAFETY: the player resizes live blocks; `realloc` keeps no
                // alignment beyond that of `malloc`, hence the second way.
                unsafe {
                    if align <= ALIGN {
                        return $realloc(block as *mut _, new) as Handle;
                    }
                    let moved = measured_allocate_aligned(new, align, heap);
                    if moved != 0 {
                        std::ptr::copy_nonoverlapping(
                            block as *const u8,
                            moved as *mut u8,
                            old.min(new),
                        );
                        $free(block as *mut _);
                    }
                    moved
                }
            }

            pub(super) const PEER: Peer = Peer::general(
                $name,
                $package,
                Calls {
                    allocate: measured_allocate,
                    free: measured_free,
                    allocate_aligned: measured_allocate_aligned,
                    free_aligned: measured_free_aligned,
                    resize: measured_resize,
                },
            );
        }
    };
}

general!(
    glibc,
    "glibc",
    "",
    libc::malloc,
    libc::free,
    |align, size| {
        // SAFETY: `align` is a power of two.
        unsafe { libc::memalign(align, size) }
    },
    libc::realloc
);

#[cfg(feature = "c-peers")]
general!(
    jemalloc,
    "jemalloc",
    "tikv-jemalloc-sys",
    tikv_jemalloc_sys::malloc,
    tikv_jemalloc_sys::free,
    |align, size| {
        // SAFETY: `align` is a power of two.
        unsafe { tikv_jemalloc_sys::aligned_alloc(align, size) }
    },
    tikv_jemalloc_sys::realloc
);

#[cfg(feature = "c-peers")]
general!(
    mimalloc,
    "mimalloc",
    "libmimalloc-sys",
    libmimalloc_sys::mi_malloc,
    libmimalloc_sys::mi_free,
    |align, size| {
        // SAFETY: `align` is a power of two.
        unsafe { libmimalloc_sys::mi_malloc_aligned(size, align) }
    },
    libmimalloc_sys::mi_realloc
);

#[cfg(feature = "c-peers")]
general!(
    snmalloc,
    "snmalloc",
    "snmalloc-sys",
    snmalloc_sys::sn_malloc,
    snmalloc_sys::sn_free,
    |align, size| {
        // SAFETY: `align` is a power of two.
        unsafe { snmalloc_sys::sn_rust_alloc(align, size) }
    },
    snmalloc_sys::sn_realloc
);

/// The process-wide allocators of this build.
pub(super) const GENERAL: &[Peer] = &[
    glibc::PEER,
    #[cfg(feature = "c-peers")]
    jemalloc::PEER,
    #[cfg(feature = "c-peers")]
    mimalloc::PEER,
    #[cfg(feature = "c-peers")]
    snmalloc::PEER,
];
