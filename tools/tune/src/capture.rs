//! The output of a program: aside from stdout, or copied while it passes.
//!
//! A program inherits the descriptors of this process, so they are exchanged
//! around its run and put back when the guard is dropped.
//!
//! Invariant: after a guard is gone, the descriptor is what it was before.

use std::fs::File;
use std::io::{self, PipeReader, PipeWriter, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::error::FileError;

/// How long a pipe is watched for more after the program has ended, while a
/// process that it left behind keeps it open.
const LINGER_MS: i32 = 200;

/// A descriptor that stands for another until dropped.
#[derive(Debug)]
pub struct Exchanged {
    descriptor: RawFd,
    kept: OwnedFd,
}

impl Exchanged {
    fn new(descriptor: RawFd, other: RawFd) -> io::Result<Exchanged> {
        // SAFETY: duplicates an open descriptor; the new one is ours.
        let kept = unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 3) };
        if kept < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: just made, and owned by nobody else.
        let kept = unsafe { OwnedFd::from_raw_fd(kept) };
        // SAFETY: both are open.
        if unsafe { libc::dup2(other, descriptor) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Exchanged { descriptor, kept })
    }
}

impl Drop for Exchanged {
    fn drop(&mut self) {
        // SAFETY: both are open; failing would leave the other in place.
        unsafe { libc::dup2(self.kept.as_raw_fd(), self.descriptor) };
    }
}

fn failed(error: io::Error) -> FileError {
    FileError::new("redirect", Path::new("the program's streams"), error)
}

/// Stdout goes to stderr until the guard is dropped.
///
/// # Errors
/// When the system has no descriptor left.
pub fn stdout_to_stderr() -> Result<Exchanged, FileError> {
    Exchanged::new(libc::STDOUT_FILENO, libc::STDERR_FILENO).map_err(failed)
}

/// What a program wrote.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// On standard output.
    pub stdout: Stream,
    /// On standard error.
    pub stderr: Stream,
}

/// What went through a stream: its length, a hash of all, the end of it.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Stream {
    /// Bytes in all.
    pub bytes: u64,
    hash: u64,
    tail: Vec<u8>,
}

/// Bytes kept of the end of a stream.
const TAIL: usize = 4096;

impl Stream {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            // FNV-1a, 64 bits.
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
        self.bytes += bytes.len() as u64;
        self.tail.extend_from_slice(bytes);
        let over = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..over);
    }

    /// The end of what was written, as text.
    pub fn end(&self) -> String {
        String::from_utf8_lossy(&self.tail).trim_end().to_owned()
    }
}

/// Where captured output also goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Each stream where it would have gone.
    On,
    /// Both to stderr.
    ToStderr,
    /// Nowhere.
    Away,
}

/// Captures what is written to stdout and stderr while `run` runs. Nothing else
/// in this process may print meanwhile.
///
/// # Errors
/// When the system has no descriptor left; then nothing ran.
pub fn capture<T>(pass: Pass, run: impl FnOnce() -> T) -> Result<(T, Written), FileError> {
    let ended = Arc::new(AtomicBool::new(false));
    // Both before either is exchanged: these are the real streams.
    let (to_stdout, to_stderr) = match pass {
        Pass::On => (Some(libc::STDOUT_FILENO), Some(libc::STDERR_FILENO)),
        Pass::ToStderr => (Some(libc::STDERR_FILENO), Some(libc::STDERR_FILENO)),
        Pass::Away => (None, None),
    };
    let to_stdout = to_stdout.map(duplicate).transpose().map_err(failed)?;
    let to_stderr = to_stderr.map(duplicate).transpose().map_err(failed)?;
    let stdout = Tee::begin(libc::STDOUT_FILENO, to_stdout, &ended).map_err(failed)?;
    let stderr = Tee::begin(libc::STDERR_FILENO, to_stderr, &ended).map_err(failed)?;
    let result = run();
    let (stdout, stderr) = (stdout.restore(), stderr.restore());
    ended.store(true, Ordering::Relaxed);
    let written = Written {
        stdout: stdout.join().unwrap_or_default(),
        stderr: stderr.join().unwrap_or_default(),
    };
    Ok((result, written))
}

fn duplicate(descriptor: RawFd) -> io::Result<File> {
    // SAFETY: a standard stream, open for as long as this process is.
    let borrowed = unsafe { BorrowedFd::borrow_raw(descriptor) };
    borrowed.try_clone_to_owned().map(File::from)
}

/// A pipe in the place of a stream, and a thread that empties it.
struct Tee {
    thread: JoinHandle<Stream>,
    exchanged: Exchanged,
}

impl Tee {
    fn begin(own: RawFd, onward: Option<File>, ended: &Arc<AtomicBool>) -> io::Result<Tee> {
        let (reader, writer) = io::pipe()?;
        let exchanged = Exchanged::new(own, writer.as_raw_fd())?;
        let ended = Arc::clone(ended);
        let thread = std::thread::spawn(move || copy(reader, onward, &ended));
        Ok(Tee { thread, exchanged })
    }

    fn restore(self) -> JoinHandle<Stream> {
        drop(self.exchanged);
        self.thread
    }
}

/// Reads until the last writer is gone, or the program is and nothing comes.
fn copy(mut reader: PipeReader, mut onward: Option<File>, ended: &AtomicBool) -> Stream {
    let mut stream = Stream::default();
    let mut chunk = vec![0; 1 << 16];
    loop {
        let mut wait = libc::pollfd {
            fd: reader.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one descriptor, described by one structure.
        let ready = unsafe { libc::poll(&raw mut wait, 1, LINGER_MS) };
        if ready <= 0 {
            if ended.load(Ordering::Relaxed) {
                return stream;
            }
            continue;
        }
        match reader.read(&mut chunk) {
            Ok(0) => return stream,
            Ok(length) => {
                stream.add(&chunk[..length]);
                // A reader that went away: the program is still heard out.
                let passed = onward.as_mut().map(|file| file.write_all(&chunk[..length]));
                if matches!(passed, Some(Err(_))) {
                    onward = None;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return stream,
        }
    }
}

/// Standard input for a program that runs more than once.
///
/// A file is read again from where it was; what comes through a pipe is kept
/// the first time and given again. A terminal is asked again.
#[derive(Debug)]
pub enum Input {
    /// Position of the file.
    File(u64),
    /// A copy of the pipe, filled while the first run reads.
    Pipe(File),
    /// What a file holds, or nothing.
    Of(PathBuf),
    /// Anything else is as it was.
    Other,
}

impl Input {
    /// Looks at standard input.
    ///
    /// # Errors
    /// When it cannot be looked at, or there is no place to keep a pipe's bytes in.
    pub fn look() -> Result<Input, FileError> {
        let mut file = duplicate(libc::STDIN_FILENO).map_err(failed);
        let kind = match &file {
            Ok(file) => file.metadata().map_err(failed)?.file_type(),
            // A closed stdin.
            Err(_) => return Ok(Input::Other),
        };
        Ok(if kind.is_file() {
            match file.as_mut().map(|file| file.stream_position()) {
                Ok(Ok(position)) => Input::File(position),
                _ => Input::Other,
            }
        } else if kind.is_fifo() || kind.is_socket() {
            Input::Pipe(tempfile::tempfile().map_err(failed)?)
        } else {
            Input::Other
        })
    }

    /// Runs `run` with the input as it was the first time. `first` is true for
    /// that first time.
    ///
    /// # Errors
    /// When the input of the first time cannot be given again; then nothing ran.
    pub fn give<T>(&self, first: bool, run: impl FnOnce() -> T) -> Result<T, FileError> {
        match self {
            Input::Other => Ok(run()),
            Input::Of(path) => {
                let file = File::open(path).map_err(|error| FileError::new("read", path, error))?;
                let _guard =
                    Exchanged::new(libc::STDIN_FILENO, file.as_raw_fd()).map_err(failed)?;
                Ok(run())
            }
            Input::File(position) => {
                let mut file = duplicate(libc::STDIN_FILENO).map_err(failed)?;
                file.seek(SeekFrom::Start(*position)).map_err(failed)?;
                Ok(run())
            }
            Input::Pipe(copy) => {
                let mut copy = copy.try_clone().map_err(failed)?;
                let mut source = if first {
                    duplicate(libc::STDIN_FILENO).map_err(failed)?
                } else {
                    copy.rewind().map_err(failed)?;
                    copy.try_clone().map_err(failed)?
                };
                let (reader, writer) = io::pipe().map_err(failed)?;
                let _guard =
                    Exchanged::new(libc::STDIN_FILENO, reader.as_raw_fd()).map_err(failed)?;
                drop(reader);
                // Not waited for: it may wait for input that nobody wants.
                std::thread::spawn(move || feed(&mut source, writer, first.then_some(copy)));
                Ok(run())
            }
        }
    }
}

/// Passes input on, and keeps a copy.
fn feed(source: &mut File, mut to: PipeWriter, mut copy: Option<File>) {
    let mut chunk = vec![0; 1 << 16];
    loop {
        let length = match source.read(&mut chunk) {
            Ok(0) => return,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => return,
        };
        let kept = copy.as_mut().map(|copy| copy.write_all(&chunk[..length]));
        if matches!(kept, Some(Err(_))) || to.write_all(&chunk[..length]).is_err() {
            return;
        }
    }
}
