//! The shared library, loaded into this process: how tests in Rust come to it.
//!
//! Invariant: a loaded library stays loaded, as programs keep pointers into it.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::error::Code;
use crate::memory::Figures;

/// The file's name, as the build makes it.
pub const FILE: &str = "libmetes_dry_device.so";

/// Where the build put the library: beside this program, or in the directories around it.
///
/// # Errors
/// Which places have no such file, and how to make it.
pub fn path() -> io::Result<PathBuf> {
    let own = std::env::current_exe()?;
    let beside = own.parent().unwrap_or(Path::new("."));
    let around = ["", "deps", "..", "../deps"];
    let places = around.map(|directory| beside.join(directory));
    let found = places.iter().map(|place| place.join(FILE));
    found.clone().find(|path| path.is_file()).ok_or_else(|| {
        let places: Vec<String> = found.map(|place| place.display().to_string()).collect();
        io::Error::new(
            io::ErrorKind::NotFound,
            format!(
                "none of {} exists: build it with `cargo build -p metes-dry-device`",
                places.join(", ")
            ),
        )
    })
}

/// The library. Once it is loaded, `dlopen("libcuda.so.1")` finds it, by whomever it is called.
#[derive(Clone, Copy, Debug)]
pub struct Library {
    open: extern "C" fn(u64, bool) -> c_int,
    close: extern "C" fn() -> c_int,
    hold: extern "C" fn(*mut c_void) -> c_int,
    release: extern "C" fn(*mut c_void) -> c_int,
    figures: unsafe extern "C" fn(*mut Figures) -> c_int,
    calls: unsafe extern "C" fn(*const c_char) -> u64,
}

impl Library {
    /// Loads the library that [`path`] names.
    ///
    /// # Errors
    /// What [`path`] or the loader says.
    pub fn load() -> io::Result<Library> {
        Self::load_from(&path()?)
    }

    /// Loads the library from a file.
    ///
    /// # Errors
    /// What the loader says.
    pub fn load_from(path: &Path) -> io::Result<Library> {
        let name = CString::new(path.as_os_str().as_bytes())?;
        // SAFETY: the library's initialisers are those of the Rust runtime.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if handle.is_null() {
            // SAFETY: the loader failed just now, so it has a message.
            let message = unsafe { CStr::from_ptr(libc::dlerror()) };
            return Err(io::Error::other(message.to_string_lossy().into_owned()));
        }
        // SAFETY: each is exported by `control` with just this type.
        unsafe {
            Ok(Library {
                open: std::mem::transmute::<*mut c_void, extern "C" fn(u64, bool) -> c_int>(
                    symbol(handle, c"metes_dry_open")?,
                ),
                close: std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(symbol(
                    handle,
                    c"metes_dry_close",
                )?),
                hold: std::mem::transmute::<*mut c_void, extern "C" fn(*mut c_void) -> c_int>(
                    symbol(handle, c"metes_dry_hold_stream")?,
                ),
                release: std::mem::transmute::<*mut c_void, extern "C" fn(*mut c_void) -> c_int>(
                    symbol(handle, c"metes_dry_release_stream")?,
                ),
                figures: std::mem::transmute::<
                    *mut c_void,
                    unsafe extern "C" fn(*mut Figures) -> c_int,
                >(symbol(handle, c"metes_dry_figures")?),
                calls: std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*const c_char) -> u64>(
                    symbol(handle, c"metes_dry_calls")?,
                ),
            })
        }
    }

    /// A new device of `bytes` bytes in the place of the one that is, keeping what is written if
    /// `kept`. Streams, handles and addresses of the old one are void.
    ///
    /// # Errors
    /// [`Code::OutOfMemory`] if the host has no memory for it.
    pub fn open(&self, bytes: u64, kept: bool) -> Result<(), Code> {
        answer((self.open)(bytes, kept))
    }

    /// Removes the device: the next `cuInit` makes one as the environment says.
    ///
    /// # Errors
    /// None at present.
    pub fn close(&self) -> Result<(), Code> {
        answer((self.close)())
    }

    /// Keeps a stream from doing work.
    ///
    /// # Errors
    /// [`Code::InvalidHandle`] if there is no such stream.
    pub fn hold(&self, stream: *mut c_void) -> Result<(), Code> {
        answer((self.hold)(stream))
    }

    /// Lets a stream do its work, and what waited for it.
    ///
    /// # Errors
    /// [`Code::InvalidHandle`] if there is no such stream; a fault of the work.
    pub fn release(&self, stream: *mut c_void) -> Result<(), Code> {
        answer((self.release)(stream))
    }

    /// The sums of the device's memory.
    ///
    /// # Errors
    /// [`Code::NotInitialized`] if there is no device.
    pub fn figures(&self) -> Result<Figures, Code> {
        let mut figures = Figures::default();
        // SAFETY: valid for a write.
        answer(unsafe { (self.figures)(&raw mut figures) })?;
        Ok(figures)
    }

    /// How often an entry point was called since the device was opened.
    #[must_use]
    pub fn calls(&self, name: &CStr) -> u64 {
        // SAFETY: a string that ends.
        unsafe { (self.calls)(name.as_ptr()) }
    }
}

fn answer(number: c_int) -> Result<(), Code> {
    match Code::from_number(number) {
        None => Ok(()),
        Some(code) => Err(code),
    }
}

/// The address of an exported function.
fn symbol(handle: *mut c_void, name: &CStr) -> io::Result<*mut c_void> {
    // SAFETY: a handle that the loader gave, and a string that ends.
    let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
    match found.is_null() {
        false => Ok(found),
        true => Err(io::Error::other(format!(
            "{FILE} has no {}: build it again",
            name.to_string_lossy()
        ))),
    }
}
