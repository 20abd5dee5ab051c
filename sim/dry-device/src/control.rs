//! What tests and reports ask of the device beyond the driver's interface, as exported functions,
//! because the library under test is loaded at run time.

use std::ffi::{CString, c_char, c_int, c_void};

use crate::device::{self, Settings, inspect};
use crate::driver::stream_of;
use crate::engine::{self, Observer};
use crate::entry::{number, put, text};
use crate::error::Code;
use crate::knowledge::Kept;
use crate::memory::Figures;

/// Puts a new device of `bytes` bytes in the place of the one that is; it keeps what is written if
/// `kept`. Handles, streams and addresses of the old one are void. 0, or an error's number.
#[unsafe(no_mangle)]
pub extern "C" fn metes_dry_open(bytes: u64, kept: bool) -> c_int {
    let capability = inspect(|device| device.settings.capability).unwrap_or((9, 0));
    number(device::replace(Some(Settings {
        bytes,
        kept: if kept { Kept::All } else { Kept::Nothing },
        capability,
    })))
}

/// Removes the device, as if the process had just begun: `cuInit` makes one as the environment
/// says.
#[unsafe(no_mangle)]
pub extern "C" fn metes_dry_close() -> c_int {
    number(device::replace(None))
}

/// Keeps a stream from doing work until it is released. 0, or an error's number.
#[unsafe(no_mangle)]
pub extern "C" fn metes_dry_hold_stream(stream: *mut c_void) -> c_int {
    let held = inspect(|device| device.streams.hold(stream_of(stream)));
    number(held.unwrap_or(Err(Code::NotInitialized)))
}

/// Lets a stream do its work, and what waited for it. 0, or an error's number.
#[unsafe(no_mangle)]
pub extern "C" fn metes_dry_release_stream(stream: *mut c_void) -> c_int {
    number(device::with_device(|device| {
        let device::Device {
            streams, engine, ..
        } = device;
        streams.let_go(stream_of(stream), engine)
    }))
}

/// Writes the sums of the device's memory. 0, or an error's number.
///
/// # Safety
/// `figures` is null or valid for a write.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_dry_figures(figures: *mut Figures) -> c_int {
    let found = inspect(|device| device.engine.memory.figures());
    number(
        found
            .ok_or(Code::NotInitialized)
            .and_then(|found| put(figures, found)),
    )
}

/// How often an entry point was called, by its name.
///
/// # Safety
/// `name` is null or a string that ends.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_dry_calls(name: *const c_char) -> u64 {
    text(name).map_or(0, device::calls)
}

/// Calls back with each entry point that was called, and how often.
///
/// # Safety
/// `note` may be called with a string that ends and lives for the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_dry_each_call(
    note: Option<unsafe extern "C" fn(*const c_char, u64)>,
) {
    let Some(note) = note else { return };
    for (name, count) in device::all_calls() {
        if let Ok(name) = CString::new(name) {
            // SAFETY: as the caller promises.
            unsafe { note(name.as_ptr(), count) };
        }
    }
}

/// Writes how many copies to the host there were, and their bytes. 0, or an error's number.
///
/// # Safety
/// `reads` is null or has room for two numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_dry_reads(reads: *mut [u64; 2]) -> c_int {
    let found = inspect(|device| [device.engine.reads, device.engine.read_bytes]);
    number(
        found
            .ok_or(Code::NotInitialized)
            .and_then(|found| put(reads, found)),
    )
}

/// Writes how many of these copies gave bytes that nobody computed, and these bytes. 0, or an
/// error's number.
///
/// # Safety
/// `guesses` is null or has room for two numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn metes_dry_guesses(guesses: *mut [u64; 2]) -> c_int {
    let found = inspect(|device| [device.engine.guesses, device.engine.guessed_bytes]);
    number(
        found
            .ok_or(Code::NotInitialized)
            .and_then(|found| put(guesses, found)),
    )
}

/// Has `observer` called with the bytes of each copy to the host that nobody computed, in the
/// thread that asked for the copy, before it goes on: the observer may write others there. Null
/// ends that.
#[unsafe(no_mangle)]
pub extern "C" fn metes_dry_observe(observer: Option<Observer>) {
    engine::observe(observer);
}

/// This thread's next copies to the host are from a block of the program's that begins at `block`;
/// 0: from any.
#[unsafe(no_mangle)]
pub extern "C" fn metes_dry_reader(block: u64) {
    engine::set_reader(block);
}
