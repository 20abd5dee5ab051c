//! Running a program and waiting for its end.
//!
//! A signal from the terminal reaches the program by itself, since it is of the
//! same group; this process ignores SIGINT and SIGQUIT meanwhile, unless it
//! handles them. Signals that are sent to this process alone it may
//! [`pass_on`].
//!
//! Invariant: the program gets the standard streams, the signal dispositions
//! and the arguments it would have got without Metes, and does not outlive
//! this process.

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
#[derive(Clone, Copy, Debug)]
pub struct Run {
    /// Number of the process.
    pub pid: u32,
    /// How it ended.
    pub ending: Ending,
    /// Processor time of the program and the children it waited for, seconds.
    pub cpu_seconds: f64,
    /// Time that passed, seconds.
    pub wall_seconds: f64,
    /// The processor's counter and the monotonic clock (ns), after the end.
    pub(super) ticks: u64,
    pub(super) monotonic: u64,
}

/// The programs under way. A process is waited for only after it was taken out,
/// so that no number in here is that of a foreign process.
static UNDER_WAY: Mutex<Vec<libc::pid_t>> = Mutex::new(Vec::new());

fn under_way() -> MutexGuard<'static, Vec<libc::pid_t>> {
    UNDER_WAY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends a signal to the programs under way; how many they are. Not for use in
/// a signal handler.
pub fn pass_on(signal: i32) -> usize {
    let programs = under_way();
    for &pid in programs.iter() {
        // SAFETY: a child of ours that was not yet waited for.
        unsafe { libc::kill(pid, signal) };
    }
    programs.len()
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

/// Ignores the signals, but for those that this process handles: a program
/// starts with the default in the place of a handler. What they did before.
fn ignore() -> [libc::sigaction; 2] {
    // SAFETY: all-zero bytes are a valid `sigaction`: the default.
    let default: libc::sigaction = unsafe { std::mem::zeroed() };
    let mut ignore = default;
    ignore.sa_sigaction = libc::SIG_IGN;
    let mut before = [default; 2];
    for (signal, before) in KEYBOARD.into_iter().zip(&mut before) {
        // SAFETY: both places are valid; failing leaves the signal as it was.
        unsafe {
            libc::sigaction(signal, std::ptr::null(), before);
            if before.sa_sigaction == libc::SIG_DFL {
                libc::sigaction(signal, &raw const ignore, std::ptr::null_mut());
            }
        }
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
    started: &dyn Fn(u32),
) -> Result<Run, RecordError> {
    let mut child = Command::new(path);
    child.arg0(&command[0]).args(&command[1..]);
    child
        .envs(environment.iter().cloned())
        .envs(stage.environment());
    run_and_tell(child, started)
}

/// Has `command` end with this process, however that ends. A program that runs
/// with other rights is spared by the system, and so are its children.
pub fn tie(command: &mut Command) {
    let own = std::process::id();
    // SAFETY: the calls may be made between fork and exec.
    unsafe {
        command.pre_exec(move || {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0 {
                return Err(std::io::Error::last_os_error());
            }
            // Dead before it was asked for: nobody would tell.
            if libc::getppid() as u32 != own {
                libc::raise(libc::SIGKILL);
            }
            Ok(())
        });
    }
}

/// Runs `child` and waits for its end.
///
/// # Errors
/// [`RecordError::Run`] if the system does not start it.
pub fn run_command(child: Command) -> Result<Run, RecordError> {
    run_and_tell(child, &|_| {})
}

/// As [`run_command`]; `started` is told the number of the process.
fn run_and_tell(mut child: Command, started: &dyn Fn(u32)) -> Result<Run, RecordError> {
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
    tie(&mut child);
    let start = Instant::now();
    let pid = {
        // Whoever passes a signal on meanwhile waits for the program.
        let mut programs = under_way();
        let child = child.spawn().map_err(failed)?;
        programs.push(child.id() as libc::pid_t);
        child.id()
    };
    started(pid);
    let (status, usage) = wait(pid).map_err(failed)?;
    let wall_seconds = start.elapsed().as_secs_f64();
    let ending = if libc::WIFSIGNALED(status) {
        Ending::Signal(libc::WTERMSIG(status))
    } else {
        Ending::Exit(libc::WEXITSTATUS(status))
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    let (ticks, monotonic) = clocks();
    Ok(Run {
        pid,
        ending,
        cpu_seconds: seconds(usage.ru_utime) + seconds(usage.ru_stime),
        wall_seconds,
        ticks,
        monotonic,
    })
}

/// Waits for process `pid`; its status and the resources it used.
fn wait(pid: u32) -> std::io::Result<(libc::c_int, libc::rusage)> {
    // First without taking it away, so that its number stays its own.
    // SAFETY: all-zero bytes are a valid value of this plain structure, and it
    // is a valid place for the answer.
    let over = repeated(|| unsafe {
        let mut told: libc::siginfo_t = std::mem::zeroed();
        libc::waitid(
            libc::P_PID,
            pid,
            &raw mut told,
            libc::WEXITED | libc::WNOWAIT,
        )
    });
    under_way().retain(|&own| own as u32 != pid);
    over?;
    let mut status = 0;
    // SAFETY: all-zero bytes are a valid value of this plain structure.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both places are valid; the child is ours and not yet waited for
    // (dropping a `Child` does not wait).
    repeated(|| unsafe { libc::wait4(pid as libc::pid_t, &raw mut status, 0, &raw mut usage) })?;
    Ok((status, usage))
}

/// Calls again while signals interrupt the call.
fn repeated(mut call: impl FnMut() -> libc::c_int) -> std::io::Result<()> {
    loop {
        if call() >= 0 {
            return Ok(());
        }
        let error = std::io::Error::last_os_error();
        if error.kind() != std::io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}

/// The counter that the recorder reads, and the monotonic clock, nanoseconds.
pub(super) fn clocks() -> (u64, u64) {
    (ticks(), monotonic())
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
