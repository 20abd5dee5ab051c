//! `dlclose`: other code may come to lie where a library lay.
//!
//! *Invariant:* what the walk has learned is forgotten before a library can go.

use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering};

use crate::store;

/// `dlclose` of the C library.
///
/// # Safety
/// `handle` comes from `dlopen`.
#[unsafe(no_mangle)]
unsafe extern "C" fn dlclose(handle: *mut c_void) -> c_int {
    type Close = unsafe extern "C" fn(*mut c_void) -> c_int;
    static FOUND: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
    let mut found = FOUND.load(Ordering::Relaxed);
    if found.is_null() {
        // SAFETY: a string.
        found = unsafe { libc::dlsym(libc::RTLD_NEXT, c"dlclose".as_ptr()) };
        FOUND.store(found, Ordering::Relaxed);
    }
    if store::has_sites() {
        super::renew();
    }
    // SAFETY: null, or a function of this type.
    let close = unsafe { core::mem::transmute::<*mut c_void, Option<Close>>(found) };
    let Some(close) = close else {
        return -1;
    };
    // SAFETY: the caller's promise.
    let closed = unsafe { close(handle) };
    if store::has_sites() {
        // Code of the library may have made requests while it went.
        super::renew();
    }
    closed
}
