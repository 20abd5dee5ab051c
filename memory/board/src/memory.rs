//! The file in memory behind a board.
//!
//! Invariant: a mapping is as long as its words for its whole life: the file was sealed against
//! shrinking before it was mapped, and its memory was there before anyone wrote to it. So no
//! access raises a signal.

use core::ffi::c_int;
use core::ptr::{self, NonNull};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::cells::AtomicU64;
use crate::error::Error;
use crate::find::NAME;
use crate::header::{self, About};

/// The module that begins a script on the dry device, as Python's `-m` names it.
const LAUNCHER: &str = "metes._dry_run";

const WORD: usize = size_of::<u64>();

/// Words of a file that other processes may have, too.
#[derive(Debug)]
pub(crate) struct Mapping {
    first: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: the words are atomic, and stay where they are until the mapping is dropped.
unsafe impl Send for Mapping {}
// SAFETY: as before.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// # Safety
    /// The file has so many words and never fewer.
    unsafe fn new(file: RawFd, words: usize, protection: c_int) -> Result<Self, Error> {
        // SAFETY: a new mapping, where the system chooses.
        let mapped = unsafe {
            libc::mmap(
                ptr::null_mut(),
                words * WORD,
                protection,
                libc::MAP_SHARED,
                file,
                0,
            )
        };
        let first = NonNull::new(mapped.cast::<AtomicU64>());
        match first {
            Some(first) if mapped != libc::MAP_FAILED => Ok(Mapping { first, words }),
            _ => Err(Error::system("map the board")),
        }
    }

    /// The words of a file, to be read, if it can never shrink; `None` if it might.
    pub(crate) fn of(file: &File, words: usize) -> Result<Option<Self>, Error> {
        // SAFETY: a question about an open file.
        let seals = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) };
        if seals < 0 || seals & libc::F_SEAL_SHRINK == 0 {
            return Ok(None);
        }
        // One that was cut after it was measured, and then sealed, is found here.
        let length = file.metadata().map_err(|source| Error::System {
            action: "measure the board",
            source,
        })?;
        if length.len() < (words * WORD) as u64 {
            return Ok(None);
        }
        // SAFETY: sealed, and long enough since.
        unsafe { Mapping::new(file.as_raw_fd(), words, libc::PROT_READ) }.map(Some)
    }

    pub(crate) fn words(&self) -> &[AtomicU64] {
        // SAFETY: mapped, aligned as pages are, and as long, until this is dropped; bytes of a
        // file are valid atomic words whatever they are. What can only be read is loaded with
        // relaxed ordering alone, which words of eight bytes allow.
        unsafe { core::slice::from_raw_parts(self.first.as_ptr(), self.words) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: what `new` mapped, which nobody has any more.
        unsafe { libc::munmap(self.first.as_ptr().cast(), self.words * WORD) };
    }
}

/// A board's file as its writer has it.
#[derive(Debug)]
pub(crate) struct Shared {
    mapping: Mapping,
    file: RawFd,
    /// Of the file, as programs may close descriptors that they did not open.
    inode: libc::ino_t,
}

impl Shared {
    /// A file of so many words with its header.
    pub(crate) fn create(about: &About<'_>, words: usize) -> Result<Self, Error> {
        let bytes = words * WORD;
        within_limit(bytes as u64)?;
        let file = anonymous()?;
        let made = fill(file, bytes).and_then(|inode| {
            // SAFETY: it has the memory, and is sealed.
            let mapping = unsafe { Mapping::new(file, words, libc::PROT_READ | libc::PROT_WRITE) }?;
            // Nobody else writes to it from now on. Linux before 5.1 does not know this one.
            // SAFETY: a request about an open file.
            unsafe { libc::fcntl(file, libc::F_ADD_SEALS, libc::F_SEAL_FUTURE_WRITE) };
            Ok(Shared {
                mapping,
                file,
                inode,
            })
        });
        let shared = made.inspect_err(|_| {
            // SAFETY: opened here.
            unsafe { libc::close(file) };
        })?;
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        let began = since.map_or(0, |since| since.as_micros() as u64);
        let header = header::words(about, std::process::id(), began, &command_line());
        // The first word last, without which it is no board.
        for (place, value) in header.into_iter().enumerate().rev() {
            shared.words()[place].store(value, crate::cells::Ordering::Release);
        }
        Ok(shared)
    }

    pub(crate) fn words(&self) -> &[AtomicU64] {
        self.mapping.words()
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: zeros are a valid answer to be written over.
        let mut now: libc::stat = unsafe { core::mem::zeroed() };
        // SAFETY: a question about a descriptor, which may be closed or another's by now.
        let known = unsafe { libc::fstat(self.file, &raw mut now) } == 0;
        if known && now.st_ino == self.inode {
            // SAFETY: it is the one that was opened.
            unsafe { libc::close(self.file) };
        }
    }
}

/// A limit on the size of files ends a process that exceeds it.
fn within_limit(wanted: u64) -> Result<(), Error> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: a valid place for the answer.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0;
    if known && limit.rlim_cur != libc::RLIM_INFINITY && limit.rlim_cur < wanted {
        return Err(Error::Limit {
            wanted,
            limit: limit.rlim_cur,
        });
    }
    Ok(())
}

/// A new file in memory.
fn anonymous() -> Result<RawFd, Error> {
    // `MFD_NOEXEC_SEAL`, which Linux knows from 6.3 on, and newer ones ask for.
    const NOEXEC: libc::c_uint = 8;
    let name = std::ffi::CString::new(NAME).unwrap_or_default();
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    for flags in [flags | NOEXEC, flags] {
        // SAFETY: a text that ends with a zero.
        let file = unsafe { libc::memfd_create(name.as_ptr(), flags) };
        if file >= 0 {
            return Ok(file);
        }
    }
    Err(Error::system("make a file in memory (memfd_create)"))
}

/// Gives a file its memory, its rights and its seals; its inode.
fn fill(file: RawFd, bytes: usize) -> Result<libc::ino_t, Error> {
    // SAFETY: a request about a file that was opened just now.
    if unsafe { libc::fchmod(file, 0o600) } < 0 {
        return Err(Error::system("restrict the board to its owner"));
    }
    let mut tries = 0;
    loop {
        // SAFETY: as before. Memory that is there now need not be found when it is written.
        let code = unsafe { libc::posix_fallocate(file, 0, bytes as libc::off_t) };
        match code {
            0 => break,
            libc::EINTR if tries < 100 => tries += 1,
            code => {
                return Err(Error::System {
                    action: "take memory for the board",
                    source: io::Error::from_raw_os_error(code),
                });
            }
        }
    }
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
    // SAFETY: as before.
    if unsafe { libc::fcntl(file, libc::F_ADD_SEALS, seals) } < 0 {
        return Err(Error::system("seal the board"));
    }
    // SAFETY: zeros are a valid answer to be written over.
    let mut about: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: a question about an open file.
    if unsafe { libc::fstat(file, &raw mut about) } < 0 {
        return Err(Error::system("look at the board"));
    }
    Ok(about.st_ino)
}

/// What this program was started with: its name without its directory, and its arguments.
fn command_line() -> String {
    let words: Vec<_> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    shown(&words)
}

/// A command line as people know it: a script's, without what launches it on the dry device.
fn shown(words: &[String]) -> String {
    let Some((program, arguments)) = words.split_first() else {
        return String::new();
    };
    let program = std::path::Path::new(program).file_name();
    let program = program.unwrap_or_default().to_string_lossy();
    let arguments = match arguments {
        // Behind the launcher stand two files of its own.
        [m, launcher, _, _, script @ ..] if m == "-m" && launcher == LAUNCHER => script,
        all => all,
    };
    let words = core::iter::once(&*program).chain(arguments.iter().map(String::as_str));
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn a_launcher_is_not_shown() {
        let line = |text: &str| {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            shown(&words)
        };
        assert_eq!(
            line("/usr/bin/python3 -m metes._dry_run /tmp/r.json  train.py --steps 2"),
            "python3 train.py --steps 2"
        );
        assert_eq!(
            line("python3 -m metes._dry_run r.json s.pickle -m metes.torch train.py"),
            "python3 -m metes.torch train.py"
        );
        for whole in ["python3 -m metes._dry_run", "python3 -m http.server", "a b"] {
            assert_eq!(line(whole), whole);
        }
        assert_eq!(line("/bin/ls"), "ls");
    }
}
