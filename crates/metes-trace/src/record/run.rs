//! Running the program and waiting for its end.
//!
//! Invariant: the program gets the standard streams, the signal dispositions
//! and the arguments it would have got without Metes.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use super::error::RecordError;
use super::stage::Stage;

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It returned this exit status.
    Exit(i32),
    /// This signal ended it.
    Signal(i32),
}

impl Ending {
    /// The exit status a shell would report.
    #[must_use]
    pub fn shell_status(self) -> i32 {
        match self {
            Ending::Exit(status) => status,
            Ending::Signal(signal) => 128 + signal,
        }
    }
}

/// A run that ended.
pub(super) struct Run {
    pub(super) pid: u32,
    pub(super) ending: Ending,
    pub(super) cpu_seconds: f64,
    pub(super) wall_seconds: f64,
    /// The processor's counter and the monotonic clock (ns), after the end.
    pub(super) ticks: u64,
    pub(super) monotonic: u64,
}

/// SIGINT and SIGQUIT, ignored while one lives.
struct Patience;

const KEYBOARD: [libc::c_int; 2] = [libc::SIGINT, libc::SIGQUIT];

/// What the signals did before the first of the runs under way, and how many
/// those are: dispositions belong to the process, not to a thread.
struct Waiting {
    runs: usize,
    before: Option<[libc::sigaction; 2]>,
}

static WAITING: Mutex<Waiting> = Mutex::new(Waiting {
    runs: 0,
    before: None,
});

fn waiting() -> MutexGuard<'static, Waiting> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Patience {
    /// Also gives what the signals did before.
    fn begin() -> (Patience, [libc::sigaction; 2]) {
        let mut waiting = waiting();
        waiting.runs += 1;
        let before = *waiting.before.get_or_insert_with(ignore);
        (Patience, before)
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        let mut waiting = waiting();
        waiting.runs -= 1;
        if waiting.runs == 0
            && let Some(before) = waiting.before.take()
        {
            restore(&before);
        }
    }
}

/// Ignores the signals; what they did before.
fn ignore() -> [libc::sigaction; 2] {
    // SAFETY: all-zero bytes are a valid `sigaction`: the default.
    let mut ignore: libc::sigaction = unsafe { std::mem::zeroed() };
    ignore.sa_sigaction = libc::SIG_IGN;
    let mut before = [ignore; 2];
    for (signal, before) in KEYBOARD.into_iter().zip(&mut before) {
        // SAFETY: both are valid; failing leaves the signal as it was.
        unsafe { libc::sigaction(signal, &raw const ignore, before) };
    }
    before
}

fn restore(actions: &[libc::sigaction; 2]) {
    for (signal, action) in KEYBOARD.into_iter().zip(actions) {
        // SAFETY: an action that the system gave us.
        unsafe { libc::sigaction(signal, action, std::ptr::null_mut()) };
    }
}

/// Runs `command` (its first word only names it; the file is `path`).
pub(super) fn run(
    path: &Path,
    command: &[OsString],
    stage: &Stage,
    environment: &[(OsString, OsString)],
) -> Result<Run, RecordError> {
    let mut child = Command::new(path);
    child.arg0(&command[0]).args(&command[1..]);
    child
        .envs(environment.iter().cloned())
        .envs(stage.environment());
    run_command(child)
}

/// Runs `child` and waits for its end.
pub(super) fn run_command(mut child: Command) -> Result<Run, RecordError> {
    let path = std::path::PathBuf::from(child.get_program());
    let failed = |source| RecordError::Run {
        path: path.clone(),
        source,
    };
    let (_patience, before) = Patience::begin();
    // SAFETY: `sigaction` may be called between fork and exec. The program
    // must not inherit the ignored signals.
    unsafe {
        child.pre_exec(move || {
            restore(&before);
            Ok(())
        });
    }
    let start = Instant::now();
    let child = child.spawn().map_err(failed)?;
    let pid = child.id();
    let (status, usage) = wait(pid).map_err(failed)?;
    let wall_seconds = start.elapsed().as_secs_f64();
    let ending = if libc::WIFSIGNALED(status) {
        Ending::Signal(libc::WTERMSIG(status))
    } else {
        Ending::Exit(libc::WEXITSTATUS(status))
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    Ok(Run {
        pid,
        ending,
        cpu_seconds: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        wall_seconds,
        ticks: ticks(),
        monotonic: monotonic(),
    })
}

/// Waits for process `pid`; its status and the resources it used.
fn wait(pid: u32) -> std::io::Result<(libc::c_int, libc::rusage)> {
    let mut status = 0;
    // SAFETY: all-zero bytes are a valid value of this plain structure.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    loop {
        // SAFETY: both places are valid; the child is ours and not yet waited
        // for (dropping a `Child` does not wait).
        let waited = unsafe { libc::wait4(pid as libc::pid_t, &raw mut status, 0, &raw mut usage) };
        if waited >= 0 {
            return Ok((status, usage));
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// The counter that the recorder reads.
#[cfg(target_arch = "x86_64")]
fn ticks() -> u64 {
    // SAFETY: reads a counter; every x86-64 processor has it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The counter that the recorder reads.
#[cfg(target_arch = "aarch64")]
fn ticks() -> u64 {
    let ticks: u64;
    // SAFETY: reads the virtual counter, which Linux lets user space read.
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack)) };
    ticks
}

fn monotonic() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: a valid place for the answer.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
