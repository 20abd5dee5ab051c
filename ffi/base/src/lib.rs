//! What the libraries that stand in for `malloc`, or promise not to call it, share: the names beside
//! glibc's by which programs call the malloc family ([`other_names`]), and memory for their own code
//! ([`Scratch`]).
//!
//! The names are the operators of C++, and what jemalloc, tcmalloc and mimalloc export beside
//! `malloc`. A library that takes the place of `malloc` must take all of them. A program that is
//! linked with one of those allocators finds there whatever the library leaves out, and hands it a
//! block that is none of its own.
//!
//! Invariant: whatever name a block comes from, every name takes it back.
#![no_std]

mod scratch;

pub use scratch::Scratch;

/// Defines the names over the functions of the family that the place of use defines:
/// `malloc`, `realloc`, `free`, `memalign` and `malloc_usable_size`, as in C.
///
/// Flags of jemalloc's own functions are obeyed where they mean something (alignment,
/// zeros); arenas and caches are its own matter. What it could do in place (`xallocx`) is
/// not done, which it may always say.
#[macro_export]
macro_rules! other_names {
    () => {
        mod other_names {
            use super::{free, malloc, malloc_usable_size, memalign, realloc};
            use core::ffi::{c_int, c_void};

            /// The alignment that flags of jemalloc ask for.
            const fn align_of_flags(flags: c_int) -> usize {
                1 << (flags & 63)
            }
            /// Whether they ask for zeros.
            const fn zeroed(flags: c_int) -> bool {
                flags & 64 != 0
            }
            const USUAL: usize = 16;

            #[unsafe(no_mangle)]
            extern "C" fn mallocx(size: usize, flags: c_int) -> *mut c_void {
                let size = size.max(1);
                let block = match align_of_flags(flags) {
                    ..=USUAL => malloc(size),
                    align => memalign(align, size),
                };
                if !block.is_null() && zeroed(flags) {
                    // SAFETY: a new block of that size.
                    unsafe { block.cast::<u8>().write_bytes(0, size) };
                }
                block
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn rallocx(
                block: *mut c_void,
                size: usize,
                flags: c_int,
            ) -> *mut c_void {
                let size = size.max(1);
                // SAFETY: the caller's contract: a block of the family.
                unsafe {
                    let before = malloc_usable_size(block);
                    let new = match align_of_flags(flags) {
                        ..=USUAL => realloc(block, size),
                        align => {
                            let new = memalign(align, size);
                            if !new.is_null() {
                                let kept = before.min(size);
                                new.cast::<u8>()
                                    .copy_from_nonoverlapping(block.cast(), kept);
                                free(block);
                            }
                            new
                        }
                    };
                    if !new.is_null() && zeroed(flags) && size > before {
                        new.cast::<u8>().add(before).write_bytes(0, size - before);
                    }
                    new
                }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn xallocx(
                block: *mut c_void,
                _size: usize,
                _extra: usize,
                _flags: c_int,
            ) -> usize {
                // SAFETY: the caller's contract.
                unsafe { malloc_usable_size(block) }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn sallocx(block: *const c_void, _flags: c_int) -> usize {
                // SAFETY: the caller's contract.
                unsafe { malloc_usable_size(block.cast_mut()) }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn dallocx(block: *mut c_void, _flags: c_int) {
                // SAFETY: the caller's contract.
                unsafe { free(block) }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn sdallocx(block: *mut c_void, _size: usize, _flags: c_int) {
                // SAFETY: the caller's contract.
                unsafe { free(block) }
            }

            /// The least that a block of that size holds.
            #[unsafe(no_mangle)]
            extern "C" fn nallocx(size: usize, _flags: c_int) -> usize {
                size
            }

            #[unsafe(no_mangle)]
            extern "C" fn malloc_good_size(size: usize) -> usize {
                size
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn malloc_size(block: *const c_void) -> usize {
                // SAFETY: the caller's contract.
                unsafe { malloc_usable_size(block.cast_mut()) }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn vfree(block: *mut c_void) {
                // SAFETY: the caller's contract.
                unsafe { free(block) }
            }

            /// `realloc` that frees the block where it fails.
            #[unsafe(no_mangle)]
            unsafe extern "C" fn reallocf(block: *mut c_void, size: usize) -> *mut c_void {
                // SAFETY: the caller's contract.
                unsafe {
                    let new = realloc(block, size);
                    if new.is_null() && size != 0 {
                        free(block);
                    }
                    new
                }
            }

            // ------------------------------------------------- Operators of C++ --
            //
            // Those that the standard defines by others (of arrays, with sizes, that
            // do not throw) call the others by name, so that a program that replaces
            // some gets those, as from the C++ library.

            core::arch::global_asm!(
                ".pushsection .data.rel.metes_operators,\"aw\",@progbits",
                ".p2align 3",
                ".hidden metes_operators",
                ".globl metes_operators",
                "metes_operators:",
                ".quad _Znwm",
                ".quad _ZnwmSt11align_val_t",
                ".quad _ZdlPv",
                ".quad _ZdlPvSt11align_val_t",
                ".quad _Znam",
                ".quad _ZnamSt11align_val_t",
                ".quad _ZdaPv",
                ".quad _ZdaPvSt11align_val_t",
                ".weak _ZSt15get_new_handlerv",
                ".quad _ZSt15get_new_handlerv",
                ".weak _ZSt17__throw_bad_allocv",
                ".quad _ZSt17__throw_bad_allocv",
                ".popsection",
            );

            type New = unsafe extern "C-unwind" fn(usize) -> *mut c_void;
            type NewAligned = unsafe extern "C-unwind" fn(usize, usize) -> *mut c_void;
            type Delete = unsafe extern "C-unwind" fn(*mut c_void);
            type DeleteAligned = unsafe extern "C-unwind" fn(*mut c_void, usize);
            type Handler = unsafe extern "C-unwind" fn();
            type GetHandler = unsafe extern "C" fn() -> Option<Handler>;

            /// What the loader found by each name, which may be the program's.
            #[repr(C)]
            struct Operators {
                new: New,
                new_aligned: NewAligned,
                delete: Delete,
                delete_aligned: DeleteAligned,
                new_array: New,
                new_array_aligned: NewAligned,
                delete_array: Delete,
                delete_array_aligned: DeleteAligned,
                get_handler: Option<GetHandler>,
                throw: Option<Handler>,
            }

            unsafe extern "C" {
                static metes_operators: Operators;
            }

            fn operators() -> &'static Operators {
                // SAFETY: the table above, which the loader filled in; nobody writes it.
                unsafe { &metes_operators }
            }

            /// A function of the C++ library, which may have been loaded after this one.
            unsafe fn of_library(name: &core::ffi::CStr) -> *mut c_void {
                // SAFETY: strings, and a handle that the loader gave.
                unsafe {
                    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD;
                    let library = libc::dlopen(c"libstdc++.so.6".as_ptr(), flags);
                    match library.is_null() {
                        true => core::ptr::null_mut(),
                        false => libc::dlsym(library, name.as_ptr()),
                    }
                }
            }

            /// Asks until there is memory or nobody who can make some; then throws.
            #[cold]
            unsafe fn new_or_throw(allocate: impl Fn() -> *mut c_void) -> *mut c_void {
                // SAFETY: the functions have these types in every C++ library.
                unsafe {
                    let get_handler = operators().get_handler.or_else(|| {
                        let found = of_library(c"_ZSt15get_new_handlerv");
                        core::mem::transmute::<*mut c_void, Option<GetHandler>>(found)
                    });
                    while let Some(handler) = get_handler.and_then(|get| get()) {
                        handler();
                        let block = allocate();
                        if !block.is_null() {
                            return block;
                        }
                    }
                    let throw = operators().throw.or_else(|| {
                        let found = of_library(c"_ZSt17__throw_bad_allocv");
                        core::mem::transmute::<*mut c_void, Option<Handler>>(found)
                    });
                    if let Some(throw) = throw {
                        throw();
                    }
                    libc::abort()
                }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C-unwind" fn _Znwm(size: usize) -> *mut c_void {
                let block = malloc(size.max(1));
                match block.is_null() {
                    // SAFETY: as any caller of C++ expects.
                    true => unsafe { new_or_throw(|| malloc(size.max(1))) },
                    false => block,
                }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C-unwind" fn _ZnwmSt11align_val_t(
                size: usize,
                align: usize,
            ) -> *mut c_void {
                let block = memalign(align, size.max(1));
                match block.is_null() {
                    // SAFETY: as above.
                    true => unsafe { new_or_throw(|| memalign(align, size.max(1))) },
                    false => block,
                }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn _ZdlPv(block: *mut c_void) {
                // SAFETY: the caller's contract.
                unsafe { free(block) }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C" fn _ZdlPvSt11align_val_t(block: *mut c_void, _align: usize) {
                // SAFETY: the caller's contract.
                unsafe { free(block) }
            }

            /// A `new` that does not throw, by what it is called.
            #[cold]
            unsafe fn without_throwing(allocate: impl Fn() -> *mut c_void) -> *mut c_void {
                loop {
                    let block = allocate();
                    // SAFETY: the function has this type in every C++ library.
                    let handler = operators().get_handler.and_then(|get| unsafe { get() });
                    match handler {
                        // SAFETY: what the program gave to be called here.
                        Some(handler) if block.is_null() => unsafe { handler() },
                        _ => return block,
                    }
                }
            }

            /// A `new` that does not throw, where the program has a `new` of its own, which may:
            /// the C++ library knows how to stop that.
            #[cold]
            fn of_others(name: &core::ffi::CStr) -> *mut c_void {
                // SAFETY: a string.
                let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
                if found.is_null() {
                    // SAFETY: has no precondition.
                    unsafe { libc::abort() }
                }
                found
            }

            #[unsafe(no_mangle)]
            unsafe extern "C-unwind" fn _ZnwmRKSt9nothrow_t(
                size: usize,
                tag: *const c_void,
            ) -> *mut c_void {
                type Named = unsafe extern "C-unwind" fn(usize, *const c_void) -> *mut c_void;
                // SAFETY: as any caller of C++ expects; the type is that of the name.
                unsafe {
                    if core::ptr::fn_addr_eq(operators().new, _Znwm as New) {
                        return without_throwing(|| malloc(size.max(1)));
                    }
                    let other = of_others(c"_ZnwmRKSt9nothrow_t");
                    core::mem::transmute::<*mut c_void, Named>(other)(size, tag)
                }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C-unwind" fn _ZnwmSt11align_val_tRKSt9nothrow_t(
                size: usize,
                align: usize,
                tag: *const c_void,
            ) -> *mut c_void {
                type Named =
                    unsafe extern "C-unwind" fn(usize, usize, *const c_void) -> *mut c_void;
                // SAFETY: as above.
                unsafe {
                    let own = _ZnwmSt11align_val_t as NewAligned;
                    if core::ptr::fn_addr_eq(operators().new_aligned, own) {
                        return without_throwing(|| memalign(align, size.max(1)));
                    }
                    let other = of_others(c"_ZnwmSt11align_val_tRKSt9nothrow_t");
                    core::mem::transmute::<*mut c_void, Named>(other)(size, align, tag)
                }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C-unwind" fn _ZnamRKSt9nothrow_t(
                size: usize,
                tag: *const c_void,
            ) -> *mut c_void {
                type Named = unsafe extern "C-unwind" fn(usize, *const c_void) -> *mut c_void;
                // SAFETY: as above.
                unsafe {
                    if core::ptr::fn_addr_eq(operators().new_array, _Znam as New) {
                        return _ZnwmRKSt9nothrow_t(size, tag);
                    }
                    let other = of_others(c"_ZnamRKSt9nothrow_t");
                    core::mem::transmute::<*mut c_void, Named>(other)(size, tag)
                }
            }

            #[unsafe(no_mangle)]
            unsafe extern "C-unwind" fn _ZnamSt11align_val_tRKSt9nothrow_t(
                size: usize,
                align: usize,
                tag: *const c_void,
            ) -> *mut c_void {
                type Named =
                    unsafe extern "C-unwind" fn(usize, usize, *const c_void) -> *mut c_void;
                // SAFETY: as above.
                unsafe {
                    let own = _ZnamSt11align_val_t as NewAligned;
                    if core::ptr::fn_addr_eq(operators().new_array_aligned, own) {
                        return _ZnwmSt11align_val_tRKSt9nothrow_t(size, align, tag);
                    }
                    let other = of_others(c"_ZnamSt11align_val_tRKSt9nothrow_t");
                    core::mem::transmute::<*mut c_void, Named>(other)(size, align, tag)
                }
            }

            $crate::by_others! {
                _Znam(size: usize) -> *mut c_void = new(size);
                _ZnamSt11align_val_t(size: usize, align: usize) -> *mut c_void
                    = new_aligned(size, align);
                _ZdlPvm(block: *mut c_void, _size: usize) = delete(block);
                _ZdlPvRKSt9nothrow_t(block: *mut c_void, _tag: *const c_void) = delete(block);
                _ZdaPv(block: *mut c_void) = delete(block);
                _ZdaPvm(block: *mut c_void, _size: usize) = delete_array(block);
                _ZdaPvRKSt9nothrow_t(block: *mut c_void, _tag: *const c_void)
                    = delete_array(block);
                _ZdlPvmSt11align_val_t(block: *mut c_void, _size: usize, align: usize)
                    = delete_aligned(block, align);
                _ZdlPvSt11align_val_tRKSt9nothrow_t(
                    block: *mut c_void, align: usize, _tag: *const c_void
                ) = delete_aligned(block, align);
                _ZdaPvSt11align_val_t(block: *mut c_void, align: usize)
                    = delete_aligned(block, align);
                _ZdaPvmSt11align_val_t(block: *mut c_void, _size: usize, align: usize)
                    = delete_array_aligned(block, align);
                _ZdaPvSt11align_val_tRKSt9nothrow_t(
                    block: *mut c_void, align: usize, _tag: *const c_void
                ) = delete_array_aligned(block, align);
            }
        }
    };
}

/// Functions that call others of the table of [`other_names`].
#[doc(hidden)]
#[macro_export]
macro_rules! by_others {
    ($($name:ident($($argument:ident: $kind:ty),* $(,)?) $(-> $result:ty)?
        = $other:ident($($passed:ident),*);)*) => {$(
        #[unsafe(no_mangle)]
        unsafe extern "C-unwind" fn $name($($argument: $kind),*) $(-> $result)? {
            // SAFETY: the caller's contract.
            unsafe { (operators().$other)($($passed),*) }
        }
    )*};
}
