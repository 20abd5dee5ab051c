//! How calls end, and the text of the last that failed.
//!
//! Invariant: no panic leaves a function of the library. Each thread has the text of its own
//! last failure, in memory that is never given back to it twice.

use core::cell::RefCell;
use core::ffi::{CStr, c_char};
use core::fmt::{self, Write};
use std::panic::{self, AssertUnwindSafe};

use metes_device::backend::{self, timeline};
use metes_device::heap::Refusal;
use metes_device::sparse::SparseRefusal;
use metes_device::stream_pages::NoHeap;
use metes_device::streams::StreamError;

/// `metes_device_status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum Status {
    /// Done.
    Ok,
    /// The device, or the heap's share of it, has no memory left.
    OutOfMemory,
    /// An argument is none that the function takes.
    Invalid,
    /// No block in use begins at the address. Nothing happened.
    BadFree,
    /// The stream is not known, or one more than can be followed.
    Stream,
    /// The stream is being captured into a graph.
    Capturing,
    /// The heap is asleep.
    Asleep,
    /// The heap was made by another process, of which this one is a fork.
    Forked,
    /// The device or its driver refused.
    Device,
    /// An error of ours: the heap is not used any more.
    Broken,
}

/// Why a call failed.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) text: String,
}

impl Failure {
    pub(crate) fn new(status: Status, text: impl fmt::Display) -> Self {
        Failure {
            status,
            text: text.to_string(),
        }
    }

    pub(crate) fn invalid(text: impl fmt::Display) -> Self {
        Failure::new(Status::Invalid, text)
    }
}

impl From<backend::Error> for Failure {
    fn from(error: backend::Error) -> Self {
        let status = match &error {
            backend::Error::OutOfMemory { .. } | backend::Error::Addresses { .. } => {
                Status::OutOfMemory
            }
            backend::Error::Process { .. } => Status::Forked,
            backend::Error::Granularity { .. } | backend::Error::Empty(_) => Status::Invalid,
            _ => Status::Device,
        };
        Failure::new(status, error)
    }
}

impl From<timeline::Error> for Failure {
    fn from(error: timeline::Error) -> Self {
        let status = match error {
            timeline::Error::Backend(error) => return error.into(),
            timeline::Error::Capturing(_) => Status::Capturing,
            _ => Status::Stream,
        };
        Failure::new(status, error)
    }
}

impl From<SparseRefusal> for Failure {
    fn from(refusal: SparseRefusal) -> Self {
        let status = match refusal {
            SparseRefusal::Place(refusal) => return refusal.into(),
            SparseRefusal::Timeline(error) => return error.into(),
            SparseRefusal::Backend(error) => return error.into(),
            SparseRefusal::Pages { .. } | SparseRefusal::Budget { .. } => Status::OutOfMemory,
            SparseRefusal::Asleep => Status::Asleep,
        };
        Failure::new(status, refusal)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        let status = match refusal {
            Refusal::Empty | Refusal::Alignment(_) => Status::Invalid,
            Refusal::TooLarge { .. } | Refusal::NoBlock { .. } | Refusal::Blocks(_) => {
                Status::OutOfMemory
            }
        };
        Failure::new(status, refusal)
    }
}

impl From<StreamError> for Failure {
    fn from(error: StreamError) -> Self {
        let status = match error {
            StreamError::Refused(refusal) => return refusal.into(),
            StreamError::Timeline(error) => return error.into(),
            StreamError::Pages(refusal) => return refusal.into(),
            StreamError::OutOfMemory { .. } => Status::OutOfMemory,
            StreamError::BadFree(_) => Status::BadFree,
        };
        Failure::new(status, error)
    }
}

impl From<NoHeap> for Failure {
    fn from(error: NoHeap) -> Self {
        Failure::invalid(error)
    }
}

/// What a text has room for, the zero byte at its end included.
const ROOM: usize = 1024;

struct Text {
    bytes: [u8; ROOM],
    length: usize,
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            let mut encoded = [0; 4];
            let encoded = character.encode_utf8(&mut encoded).as_bytes();
            // A zero byte would end the text.
            if encoded == [0] || self.length + encoded.len() >= ROOM {
                break;
            }
            self.bytes[self.length..][..encoded.len()].copy_from_slice(encoded);
            self.length += encoded.len();
        }
        Ok(())
    }
}

thread_local! {
    static LAST: RefCell<Text> = const {
        RefCell::new(Text { bytes: [0; ROOM], length: 0 })
    };
}

/// Keeps the text of a failure for this thread.
pub(crate) fn keep(failure: &Failure) -> Status {
    // A thread that ends has no text any more, and nobody who reads it.
    let _ = LAST.try_with(|last| {
        if let Ok(mut last) = last.try_borrow_mut() {
            last.length = 0;
            let _ = last.write_str(&failure.text);
            let end = last.length;
            last.bytes[end] = 0;
        }
    });
    failure.status
}

/// See `metes_device.h`.
#[unsafe(no_mangle)]
pub extern "C" fn metes_device_last_error() -> *const c_char {
    LAST.try_with(|last| last.as_ptr())
        .map_or(c"".as_ptr(), |text| {
            // SAFETY: the text of this thread, which nobody writes now.
            unsafe { (&raw const (*text).bytes).cast() }
        })
}

/// The text of this thread's last failure.
pub(crate) fn last() -> String {
    // SAFETY: a text that ends with a zero byte, of this thread.
    let text = unsafe { CStr::from_ptr(metes_device_last_error()) };
    text.to_string_lossy().into_owned()
}

/// Does the work of a function of the library: a failure is kept, a panic is one.
pub(crate) fn guarded<T>(work: impl FnOnce() -> Result<T, Failure>) -> Result<T, Status> {
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    let failure = match done {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(failure)) => failure,
        Err(_) => Failure::new(
            Status::Broken,
            "an error of Metes itself, which standard error has: the heap is not used any more; \
             please report it",
        ),
    };
    Err(keep(&failure))
}

/// Does work of a function of the library whose result is its status: a failure is kept, a panic is
/// one.
pub(crate) fn status(work: impl FnOnce() -> Result<(), Failure>) -> Status {
    guarded(work).err().unwrap_or(Status::Ok)
}
