//! Paths in fixed buffers, and the directory named by the environment.
//!
//! Invariant: the bytes of a [`Path`] always end with a zero.

use core::ffi::{CStr, c_char};

use crate::kernel::File;
use crate::layout::DIRECTORY_VARIABLE;

/// Name of the file that has events announced instead of recorded.
pub(crate) const ANNOUNCE_FILE: &str = "announce";
/// Longest path, with its zero byte.
const ROOM: usize = 1024;

/// A path of less than [`ROOM`] bytes.
pub(crate) struct Path {
    bytes: [u8; ROOM],
    length: usize,
}

impl Path {
    pub(crate) const fn new() -> Path {
        Path {
            bytes: [0; ROOM],
            length: 0,
        }
    }

    pub(crate) fn as_c_str(&self) -> &CStr {
        CStr::from_bytes_until_nul(&self.bytes).unwrap_or(c"")
    }

    /// Empties the path.
    fn clear(&mut self) {
        self.bytes = [0; ROOM];
        self.length = 0;
    }

    /// Adds `more`; None, and a cut path, if there is no room.
    fn push(&mut self, more: &[u8]) -> Option<()> {
        for &byte in more {
            if self.length + 1 >= ROOM {
                return None;
            }
            *self.bytes.get_mut(self.length)? = byte;
            self.length += 1;
        }
        Some(())
    }

    fn push_number(&mut self, mut number: u32) -> Option<()> {
        let mut digits = [0u8; 10];
        let mut first = digits.len();
        loop {
            first -= 1;
            *digits.get_mut(first)? = b'0' + (number % 10) as u8;
            number /= 10;
            if number == 0 {
                break;
            }
        }
        self.push(digits.get(first..)?)
    }

    /// Becomes `<directory>/<pid>.<generation>.raw`; None if that is too long.
    pub(crate) fn set_file(&mut self, directory: &Path, pid: u32, generation: u32) -> Option<()> {
        self.clear();
        self.push(directory.bytes.get(..directory.length)?)?;
        self.push(b"/")?;
        self.push_number(pid)?;
        self.push(b".")?;
        self.push_number(generation)?;
        self.push(b".raw")
    }
}

impl Path {
    /// Becomes `<directory>/<name>`; None if that is too long.
    pub(crate) fn set_named(&mut self, directory: &Path, name: &str) -> Option<()> {
        self.clear();
        self.push(directory.bytes.get(..directory.length)?)?;
        self.push(b"/")?;
        self.push(name.as_bytes())
    }
}

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// Puts the directory that the environment names into `place`; false if it
/// names none, a relative one, or one too long.
pub(crate) fn find_directory(place: &mut Path) -> bool {
    place.clear();
    // SAFETY: glibc's variable; null until libc is initialised, and the first
    // event may come earlier, from the dynamic loader.
    let environment = unsafe { environ };
    let found = if environment.is_null() {
        from_kernel(place)
    } else {
        // SAFETY: a list of C strings ended by null.
        unsafe { from_list(environment, place) }
    };
    found.is_some() && place.bytes.first() == Some(&b'/')
}

/// # Safety
/// `list` is ended by null, and its entries are C strings.
unsafe fn from_list(mut list: *const *const c_char, place: &mut Path) -> Option<()> {
    loop {
        // SAFETY: the caller's promise; null ends the walk.
        let entry = unsafe { *list };
        if entry.is_null() {
            return None;
        }
        // SAFETY: the caller's promise.
        let entry = unsafe { CStr::from_ptr(entry) };
        if let Some(value) = value(entry.to_bytes()) {
            return place.push(value);
        }
        // SAFETY: not past the null that ends the list.
        list = unsafe { list.add(1) };
    }
}

/// The value, if `entry` is `DIRECTORY_VARIABLE=value`.
fn value(entry: &[u8]) -> Option<&[u8]> {
    entry
        .strip_prefix(DIRECTORY_VARIABLE.as_bytes())?
        .strip_prefix(b"=")
}

/// Reads the environment as exec passed it.
fn from_kernel(place: &mut Path) -> Option<()> {
    let file = File::open(c"/proc/self/environ", libc::O_RDONLY)?;
    let mut entry = [0u8; ROOM + 64];
    let mut length = 0;
    let mut block = [0u8; 512];
    loop {
        let read = file.read(&mut block);
        if read == 0 {
            return None;
        }
        for &byte in block.iter().take(read) {
            if byte != 0 {
                // Longer entries are cut: they are not ours.
                if let Some(slot) = entry.get_mut(length) {
                    *slot = byte;
                    length += 1;
                }
                continue;
            }
            if let Some(value) = entry.get(..length).and_then(value) {
                return place.push(value);
            }
            length = 0;
        }
    }
}
