//! The system calls of the recorder.
//!
//! Invariant: nothing here allocates, is a cancellation point, goes through a
//! function that the program may have replaced, or leaves `errno` changed
//! (callers hold a [`Quiet`]).

use core::ffi::CStr;
use core::ptr;

/// While it lives, the calling thread takes no signal; at its end the signal
/// mask and `errno` are what they were.
pub(crate) struct Quiet {
    mask: u64,
    errno: i32,
}

/// Bytes of the kernel's signal set.
const SET_BYTES: usize = 8;

impl Quiet {
    pub(crate) fn begin() -> Quiet {
        let mut mask = 0u64;
        let all = u64::MAX;
        // SAFETY: both sets are eight valid bytes, as the size says.
        unsafe {
            let errno = *libc::__errno_location();
            libc::syscall(
                libc::SYS_rt_sigprocmask,
                libc::SIG_SETMASK,
                &raw const all,
                &raw mut mask,
                SET_BYTES,
            );
            Quiet { mask, errno }
        }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // SAFETY: `mask` is eight valid bytes; errno is the thread's own.
        unsafe {
            libc::syscall(
                libc::SYS_rt_sigprocmask,
                libc::SIG_SETMASK,
                &raw const self.mask,
                ptr::null_mut::<u64>(),
                SET_BYTES,
            );
            *libc::__errno_location() = self.errno;
        }
    }
}

/// An open file, closed at the end of its life.
pub(crate) struct File(libc::c_long);

impl File {
    /// Opens `path` with `flags` (close-on-exec is added); None if refused.
    pub(crate) fn open(path: &CStr, flags: libc::c_int) -> Option<File> {
        // SAFETY: `path` ends with a zero byte.
        let descriptor = unsafe {
            libc::syscall(
                libc::SYS_openat,
                libc::AT_FDCWD,
                path.as_ptr(),
                flags | libc::O_CLOEXEC,
                0o600,
            )
        };
        (descriptor >= 0).then_some(File(descriptor))
    }

    /// Reads until `place` is full or the file ends; the bytes read.
    pub(crate) fn read(&self, place: &mut [u8]) -> usize {
        let mut read = 0;
        while let Some(rest) = place.get_mut(read..).filter(|rest| !rest.is_empty()) {
            // SAFETY: `rest` is valid for writes of its length.
            let n = unsafe { libc::syscall(libc::SYS_read, self.0, rest.as_mut_ptr(), rest.len()) };
            if n <= 0 {
                break;
            }
            read += n as usize;
        }
        read
    }

    /// Makes sure that the file has `length` bytes from `offset` on with disk
    /// space behind them, so that no later write through a mapping can fault.
    pub(crate) fn reserve(&self, offset: usize, length: usize) -> bool {
        let end = (offset + length) as u64;
        // Growing past the limit would raise SIGXFSZ in the program.
        let mut limit = [u64::MAX; 2];
        // SAFETY: `limit` has the layout of rlimit64; null asks for no change.
        let known = unsafe {
            libc::syscall(
                libc::SYS_prlimit64,
                0,
                libc::RLIMIT_FSIZE,
                ptr::null::<u64>(),
                limit.as_mut_ptr(),
            )
        };
        if known == 0 && end > limit[0] {
            return false;
        }
        // SAFETY: plain values only.
        let done = unsafe { libc::syscall(libc::SYS_fallocate, self.0, 0, offset, length) };
        if done == 0 {
            return true;
        }
        // SAFETY: errno is the thread's own.
        let errno = unsafe { *libc::__errno_location() };
        // File systems without fallocate: grow sparsely. Chunks are mapped
        // under a lock, so the file never shrinks here.
        (errno == libc::EOPNOTSUPP || errno == libc::ENOSYS)
            // SAFETY: plain values only.
            && unsafe { libc::syscall(libc::SYS_ftruncate, self.0, end) } == 0
    }

    /// Maps `length` bytes from `offset`, shared and writable; `at_once` if all
    /// pages will be used, which is cheaper together than one by one.
    pub(crate) fn map(&self, offset: usize, length: usize, at_once: bool) -> Option<*mut u8> {
        let populate = if at_once { libc::MAP_POPULATE } else { 0 };
        // SAFETY: a new mapping at a place the kernel picks harms nobody.
        let place = unsafe {
            libc::syscall(
                libc::SYS_mmap,
                ptr::null_mut::<u8>(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | populate,
                self.0,
                offset,
            )
        };
        (!failed(place)).then_some(place as *mut u8)
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // SAFETY: this value owns the descriptor.
        unsafe { libc::syscall(libc::SYS_close, self.0) };
    }
}

/// True if `result`, from `mmap`, is an error and no address.
fn failed(result: libc::c_long) -> bool {
    (-4095..0).contains(&result)
}

/// A zeroed private page that a forked child finds zeroed again; None if the
/// kernel (before 4.14) cannot do that.
pub(crate) fn page_wiped_on_fork(length: usize) -> Option<*mut u8> {
    // SAFETY: a new anonymous mapping, given back if the advice fails.
    unsafe {
        let page = libc::syscall(
            libc::SYS_mmap,
            ptr::null_mut::<u8>(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if failed(page) {
            return None;
        }
        if libc::syscall(libc::SYS_madvise, page, length, libc::MADV_WIPEONFORK) != 0 {
            unmap(page as *mut u8, length);
            return None;
        }
        Some(page as *mut u8)
    }
}

/// Gives a mapping back.
///
/// # Safety
/// Nobody uses the mapping afterwards.
pub(crate) unsafe fn unmap(place: *mut u8, length: usize) {
    // SAFETY: the caller's promise.
    unsafe { libc::syscall(libc::SYS_munmap, place, length) };
}

/// Lets the kernel take the pages of a shared mapping out of this process's
/// resident set; the file keeps the data.
///
/// # Safety
/// The mapping is shared, file-backed and lives.
pub(crate) unsafe fn let_go(place: *mut u8, length: usize) {
    // SAFETY: on a shared file mapping DONTNEED loses nothing.
    unsafe { libc::syscall(libc::SYS_madvise, place, length, libc::MADV_DONTNEED) };
}

/// The calling process and its parent.
pub(crate) fn process() -> (u32, u32) {
    // SAFETY: these calls cannot fail and touch no memory.
    unsafe {
        (
            libc::syscall(libc::SYS_getpid) as u32,
            libc::syscall(libc::SYS_getppid) as u32,
        )
    }
}

/// Where the link `path` points; the bytes written to `place`.
pub(crate) fn read_link(path: &CStr, place: &mut [u8]) -> usize {
    // SAFETY: `path` ends with a zero byte, `place` is valid for its length.
    let n = unsafe {
        libc::syscall(
            libc::SYS_readlinkat,
            libc::AT_FDCWD,
            path.as_ptr(),
            place.as_mut_ptr(),
            place.len(),
        )
    };
    n.max(0) as usize
}

/// Lets another thread run.
pub(crate) fn yield_now() {
    // SAFETY: takes nothing, touches nothing.
    unsafe { libc::syscall(libc::SYS_sched_yield) };
}

/// The system's number of the calling thread.
pub(crate) fn thread() -> u32 {
    // SAFETY: takes nothing, touches nothing, and cannot fail.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

/// Whether process `pid` lives.
pub(crate) fn lives(pid: u32) -> bool {
    let _quiet = Quiet::begin();
    // SAFETY: signal 0 only asks; another user's process lives, too.
    let asked = unsafe { libc::syscall(libc::SYS_kill, pid, 0) };
    // SAFETY: the thread's own variable.
    pid != 0 && (asked == 0 || unsafe { *libc::__errno_location() } == libc::EPERM)
}

/// Sleeps for less than a second.
pub(crate) fn pause(nanoseconds: u64) {
    let time = libc::timespec {
        tv_sec: 0,
        tv_nsec: nanoseconds as i64,
    };
    let _quiet = Quiet::begin();
    // SAFETY: a time, and no place for what is left of it.
    unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, ptr::null_mut::<u64>()) };
}

/// Whether the eight bytes at `address` can be read. Leaves `errno` alone.
pub(crate) fn readable(address: u64) -> bool {
    // The kernel copies the set before it looks at what is to be done with it, and nothing is
    // to be done.
    const NOTHING: i64 = -1;
    let result: i64;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the kernel reads at most, and says where it cannot.
    unsafe {
        core::arch::asm!(
            "syscall",
            inout("rax") libc::SYS_rt_sigprocmask => result,
            in("rdi") NOTHING,
            in("rsi") address,
            in("rdx") 0,
            in("r10") SET_BYTES,
            out("rcx") _,
            out("r11") _,
            options(nostack),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        core::arch::asm!(
            "svc 0",
            in("x8") libc::SYS_rt_sigprocmask,
            inout("x0") NOTHING => result,
            in("x1") address,
            in("x2") 0,
            in("x3") SET_BYTES,
            options(nostack),
        );
    }
    result != -i64::from(libc::EFAULT)
}

/// The working directory, with its zero byte; the bytes written to `place`.
pub(crate) fn working_directory(place: &mut [u8]) -> usize {
    // SAFETY: `place` is valid for its length.
    let n = unsafe { libc::syscall(libc::SYS_getcwd, place.as_mut_ptr(), place.len()) };
    n.max(0) as usize
}
