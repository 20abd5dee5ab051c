//! What every C entry point has in common: it is counted, gives a number, and is found by name.
//!
//! Invariant: an entry point reads and writes through pointers of the caller only after they were
//! compared with null; that they are valid otherwise is what the C interface demands of callers.

use std::ffi::{c_int, c_void};

use crate::error::{Answer, Code};

/// An entry point by its name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) address: *const c_void,
}

// SAFETY: the address of a function.
unsafe impl Sync for Entry {}

/// Makes exported C functions that count themselves and give the number that `via` makes of the
/// body, and a table `ENTRIES` of them.
macro_rules! entry_points {
    (via $via:path; $(
        $(#[$about:meta])*
        fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $body:block
    )*) => {
        $(
            $(#[$about])*
            ///
            /// # Safety
            /// Pointers are null or valid, as the interface demands.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $kind),*) -> std::ffi::c_int {
                $crate::device::count(stringify!($name));
                $via(move || -> $crate::error::Answer { $body })
            }
        )*
        #[allow(dead_code, reason = "not every table is looked up in")]
        pub(crate) static ENTRIES: &[$crate::entry::Entry] = &[$(
            $crate::entry::Entry {
                name: stringify!($name),
                address: $name as *const std::ffi::c_void,
            },
        )*];
    };
}
pub(crate) use entry_points;

/// The number of what `action` answers.
pub(crate) fn answered(action: impl FnOnce() -> Answer) -> c_int {
    number(action())
}

/// The number of an answer; 0 is success.
pub(crate) fn number(answer: Answer) -> c_int {
    match answer {
        Ok(()) => 0,
        Err(code) => code as c_int,
    }
}

/// Writes through a pointer of the caller.
pub(crate) fn put<T>(place: *mut T, value: T) -> Answer {
    if place.is_null() {
        return Err(Code::InvalidValue);
    }
    // SAFETY: not null, so valid for a write by the interface's terms.
    unsafe { place.write_unaligned(value) };
    Ok(())
}

/// Writes through a pointer of the caller, unless it wants no answer.
pub(crate) fn put_if_wanted<T>(place: *mut T, value: T) {
    let _ = put(place, value);
}

/// Reads through a pointer of the caller.
pub(crate) fn get<T: Copy>(place: *const T) -> Answer<T> {
    if place.is_null() {
        return Err(Code::InvalidValue);
    }
    // SAFETY: not null, so valid for a read by the interface's terms.
    Ok(unsafe { place.read_unaligned() })
}

/// The text of a C string of the caller.
pub(crate) fn text<'a>(place: *const std::ffi::c_char) -> Answer<&'a str> {
    if place.is_null() {
        return Err(Code::InvalidValue);
    }
    // SAFETY: not null, so a string that ends, which lives for the call.
    let text = unsafe { std::ffi::CStr::from_ptr(place) };
    text.to_str().map_err(|_| Code::InvalidValue)
}

/// Copies a C string into the caller's room of `length` bytes, cut to fit.
pub(crate) fn put_text(place: *mut std::ffi::c_char, length: c_int, text: &str) -> Answer {
    let room = usize::try_from(length).map_err(|_| Code::InvalidValue)?;
    if place.is_null() || room == 0 {
        return Err(Code::InvalidValue);
    }
    let taken = text.len().min(room - 1);
    for (index, byte) in text.bytes().take(taken).chain([0]).enumerate() {
        // SAFETY: `taken` bytes and the zero fit into the room.
        unsafe { place.add(index).write(byte as std::ffi::c_char) };
    }
    Ok(())
}
