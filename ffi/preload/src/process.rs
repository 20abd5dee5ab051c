//! What the library needs of the process before the process is ready: its
//! environment, files, and a way to say why it ends.
//!
//! Invariant: nothing here calls a function that may call malloc.

use core::ffi::{CStr, c_char};

/// Why a start failed, and how the process ends then.
const BAD_INPUT: i32 = 2;

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// The value of an environment variable, as bytes.
pub(crate) fn variable(name: &str) -> Option<Vec<u8>> {
    // SAFETY: reads a variable of the C library; nothing writes it while the
    // first allocation of the process or one of its constructors runs.
    let mut entry = unsafe { environ };
    if entry.is_null() {
        // Before the C library is ready the kernel still knows.
        let all = read(c"/proc/self/environ").ok()?;
        return all
            .split(|&byte| byte == 0)
            .find_map(|entry| value_of(entry, name));
    }
    loop {
        // SAFETY: `environ` is an array of strings that ends with a null.
        let text = unsafe { *entry };
        if text.is_null() {
            return None;
        }
        // SAFETY: as above.
        let text = unsafe { CStr::from_ptr(text) };
        if let Some(value) = value_of(text.to_bytes(), name) {
            return Some(value);
        }
        entry = entry.wrapping_add(1);
    }
}

fn value_of(entry: &[u8], name: &str) -> Option<Vec<u8>> {
    let rest = entry.strip_prefix(name.as_bytes())?;
    rest.strip_prefix(b"=").map(<[u8]>::to_vec)
}

/// Reads a file; the error is errno.
pub(crate) fn read(path: &CStr) -> Result<Vec<u8>, i32> {
    // SAFETY: a string that ends with a zero byte.
    let file = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    if file < 0 {
        return Err(errno());
    }
    let mut bytes = Vec::new();
    let mut chunk = [0u8; 4096];
    let result = loop {
        // SAFETY: the buffer is as long as said.
        let got = unsafe { libc::read(file, chunk.as_mut_ptr().cast(), chunk.len()) };
        match got {
            0 => break Ok(bytes),
            got if got > 0 => bytes.extend_from_slice(&chunk[..got as usize]),
            _ if errno() == libc::EINTR => {}
            _ => break Err(errno()),
        }
    };
    // SAFETY: the descriptor opened above.
    unsafe { libc::close(file) };
    result
}

/// Appends to a file, which is made if there is none; the error is errno. A link is not followed to a file,
/// which might be anybody's, but to what this process has open already and to what is no file
/// (`/dev/stderr`, a terminal, a pipe).
pub(crate) fn append(path: &CStr, bytes: &[u8]) -> Result<(), i32> {
    let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CLOEXEC;
    // SAFETY: a string that ends with a zero byte.
    let open = |more| unsafe { libc::open(path.as_ptr(), flags | more, 0o666) };
    let mut file = open(libc::O_CREAT | libc::O_NOFOLLOW);
    if file < 0 && errno() == libc::ELOOP {
        file = open(0);
        if file >= 0 && is_file_of_others(file) {
            // SAFETY: the descriptor opened above.
            unsafe { libc::close(file) };
            return Err(libc::ELOOP);
        }
    }
    if file < 0 {
        return Err(errno());
    }
    let written = write(file, bytes);
    // SAFETY: the descriptor opened above.
    unsafe { libc::close(file) };
    written
}

/// Whether a descriptor is of a regular file that is neither standard output nor standard error.
fn is_file_of_others(file: i32) -> bool {
    let Some(own) = status(file) else { return true };
    let same = |open| {
        status(open).is_some_and(|open| (open.st_dev, open.st_ino) == (own.st_dev, own.st_ino))
    };
    own.st_mode & libc::S_IFMT == libc::S_IFREG && !same(1) && !same(2)
}

fn status(file: i32) -> Option<libc::stat> {
    let mut status = core::mem::MaybeUninit::<libc::stat>::uninit();
    // SAFETY: room for what the system writes.
    let known = unsafe { libc::fstat(file, status.as_mut_ptr()) } == 0;
    // SAFETY: written, as the call succeeded.
    known.then(|| unsafe { status.assume_init() })
}

fn write(file: i32, mut bytes: &[u8]) -> Result<(), i32> {
    while !bytes.is_empty() {
        // SAFETY: the buffer is as long as said.
        let put = unsafe { libc::write(file, bytes.as_ptr().cast(), bytes.len()) };
        match usize::try_from(put) {
            Ok(put) => bytes = &bytes[put..],
            Err(_) if errno() == libc::EINTR => {}
            Err(_) => return Err(errno()),
        }
    }
    Ok(())
}

/// Writes to standard error; a closed one is no matter.
pub(crate) fn say(text: &str) {
    let _ = write(2, text.as_bytes());
}

/// Says why the program cannot start, and ends it.
pub(crate) fn refuse(why: &str) -> ! {
    say(&format!("metes: {why}\n"));
    leave(BAD_INPUT)
}

/// Ends the process at once: no handler runs.
pub(crate) fn leave(status: i32) -> ! {
    loop {
        // SAFETY: does not return.
        unsafe { libc::syscall(libc::SYS_exit_group, status) };
    }
}

/// A random number: from the kernel, or where it gives none, of where it put the
/// process and when.
pub(crate) fn random() -> u64 {
    let mut number = 0_u64;
    let length = size_of_val(&number);
    // SAFETY: a buffer of that length.
    let got = unsafe { libc::getrandom((&raw mut number).cast(), length, libc::GRND_NONBLOCK) };
    if got == length as isize {
        return number;
    }
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: fills in the struct it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    let place = (&raw const number).addr() as u64;
    place.rotate_left(32) ^ (now.tv_nsec as u64) ^ (now.tv_sec as u64).rotate_left(48)
}

/// What an errno says, in words. Not `strerror`, which may allocate.
pub(crate) fn reason(errno: i32) -> String {
    let words = match errno {
        libc::ENOENT => "no such file or directory",
        libc::EACCES | libc::EPERM => "permission denied",
        libc::ELOOP => "it is a link, which is not followed",
        libc::EISDIR => "it is a directory",
        libc::ENOTDIR => "part of the path is not a directory",
        libc::ENOSPC => "no space is left",
        libc::EROFS => "the file system is read-only",
        libc::EMFILE | libc::ENFILE => "too many open files",
        libc::EINVAL => "not a path",
        other => return format!("error {other}"),
    };
    words.to_owned()
}

pub(crate) fn errno() -> i32 {
    // SAFETY: this thread's own variable.
    unsafe { *libc::__errno_location() }
}

pub(crate) fn set_errno(value: i32) {
    // SAFETY: this thread's own variable.
    unsafe { *libc::__errno_location() = value };
}
