//! Processes, and what the system says that each cost: time, page faults, context switches, and, in a run of its own,
//! system calls.
//!
//! *Invariant:* whatever a process does, it is waited for: one that takes too long is killed and told of. Time is from
//! before the process is there until it has been waited for.

mod traced;

use std::io::{self, Read};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub use traced::system_calls;

/// After so long a process is killed.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// What a process cost, its own descendants included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// From before its start until it was gone.
    pub ns: u64,
    /// Pages that were found in memory or made.
    pub minor_faults: u64,
    /// Pages that were read from a disk.
    pub major_faults: u64,
    /// How often it waited.
    pub voluntary: u64,
    /// How often another took its place.
    pub involuntary: u64,
}

/// How a process ended.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its status; that of a shell where a signal ended it.
    pub status: i32,
    /// What it wrote to standard output.
    pub output: String,
    /// What it wrote to standard error.
    pub complaints: String,
    /// What it cost.
    pub cost: Cost,
}

impl Run {
    /// The last line of its complaints, or how it ended.
    #[must_use]
    pub fn complaint(&self) -> String {
        let last = self
            .complaints
            .lines()
            .rev()
            .find(|line| !line.trim().is_empty());
        match last {
            Some(line) => line.trim().chars().take(240).collect(),
            None => format!("it ended with status {}", self.status),
        }
    }
}

/// Why there is no run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProcessError {
    /// The program does not start.
    #[error("{program} does not start: {source}")]
    Start {
        /// Which.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// The system does not tell.
    #[error("{what}: {source}")]
    System {
        /// What was asked.
        what: &'static str,
        /// Why.
        source: io::Error,
    },
    /// It was killed.
    #[error("{program} was killed: it took more than {} s", PATIENCE.as_secs())]
    Patience {
        /// Which.
        program: String,
    },
}

impl ProcessError {
    /// In a line; of a command that is not there, that it is not on the path.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            ProcessError::Start { program, source }
                if source.kind() == io::ErrorKind::NotFound && !program.contains('/') =>
            {
                format!("{program} is not on the path")
            }
            _ => self.to_string(),
        }
    }
}

fn system(what: &'static str) -> ProcessError {
    ProcessError::System {
        what,
        source: io::Error::last_os_error(),
    }
}

fn name(command: &Command) -> String {
    command.get_program().to_string_lossy().into_owned()
}

fn started(command: &mut Command) -> Result<Child, ProcessError> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|source| ProcessError::Start {
            program: name(command),
            source,
        })
}

/// Has a command leave the unified hierarchy of control groups behind, where the system has both kinds and the runtime
/// refuses that: in a mount namespace of its own it is unmounted.
pub fn without_unified_groups(command: &mut Command) {
    // SAFETY: only system calls, on constant strings, between fork and exec.
    unsafe {
        command.pre_exec(|| {
            let slash = c"/".as_ptr();
            let null = std::ptr::null();
            let private = libc::MS_REC | libc::MS_PRIVATE;
            if libc::unshare(libc::CLONE_NEWNS) != 0
                || libc::mount(null, slash, null, private, null.cast()) != 0
                || libc::umount2(c"/sys/fs/cgroup/unified".as_ptr(), libc::MNT_DETACH) != 0
            {
                return Err(io::Error::last_os_error());
            }
            Ok(())
        });
    }
}

/// Runs a command to its end. Its output may be some ten thousand bytes.
///
/// # Errors
/// When it does not start, or does not end.
pub fn run(command: &mut Command) -> Result<Run, ProcessError> {
    let begin = Instant::now();
    let mut child = started(command)?;
    let pid = child.id().cast_signed();
    let in_time = wait_until_over(pid, PATIENCE)?;
    if !in_time {
        // SAFETY: our own child, which nobody has waited for.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
    let mut status = 0;
    // SAFETY: all zeros is a valid value of a structure of numbers.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: both are written by the call and live until it returns.
    if unsafe { libc::wait4(pid, &raw mut status, 0, &raw mut usage) } != pid {
        return Err(system("wait4"));
    }
    let ns = begin.elapsed().as_nanos() as u64;
    if !in_time {
        return Err(ProcessError::Patience {
            program: name(command),
        });
    }
    let (output, complaints) = said(&mut child);
    let number = |value: libc::c_long| u64::try_from(value).unwrap_or(0);
    Ok(Run {
        status: shell_status(status),
        output,
        complaints,
        cost: Cost {
            ns,
            minor_faults: number(usage.ru_minflt),
            major_faults: number(usage.ru_majflt),
            voluntary: number(usage.ru_nvcsw),
            involuntary: number(usage.ru_nivcsw),
        },
    })
}

/// What a process that is over has left in its pipes. A descendant that it left behind may hold them open: what is not
/// there is not waited for.
fn said(child: &mut Child) -> (String, String) {
    fn all(pipe: Option<impl Read + AsRawFd>) -> String {
        let Some(mut pipe) = pipe else {
            return String::new();
        };
        // SAFETY: a flag of a descriptor that is ours.
        unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
        let mut bytes = Vec::new();
        // An error is that of a pipe that is still held open: what came before it is there.
        let _ = pipe.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }
    (all(child.stdout.take()), all(child.stderr.take()))
}

fn shell_status(status: i32) -> i32 {
    if libc::WIFEXITED(status) {
        libc::WEXITSTATUS(status)
    } else {
        128 + libc::WTERMSIG(status)
    }
}

/// Waits until a child is over, without taking its status; false: it is not.
fn wait_until_over(pid: i32, patience: Duration) -> Result<bool, ProcessError> {
    // SAFETY: a system call on numbers.
    let descriptor = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let Ok(descriptor) = i32::try_from(descriptor)
        .map_err(|_| ())
        .and_then(|descriptor| {
            if descriptor < 0 {
                Err(())
            } else {
                Ok(descriptor)
            }
        })
    else {
        return Err(system("pidfd_open"));
    };
    // SAFETY: just opened, and nobody else's.
    let descriptor = unsafe { OwnedFd::from_raw_fd(descriptor) };
    let until = Instant::now() + patience;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let mut poll = libc::pollfd {
            fd: descriptor.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // Rounded up, or the last millisecond would be spent turning.
        let left = i32::try_from(left.as_millis() + 1).unwrap_or(i32::MAX);
        // SAFETY: one structure, which lives until the call returns.
        match unsafe { libc::poll(&raw mut poll, 1, left) } {
            1.. => return Ok(true),
            0 => return Ok(false),
            _ if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            _ => return Err(system("poll")),
        }
    }
}

/// Page faults of the calling thread until now.
pub(crate) fn faults_of_this_thread() -> u64 {
    // SAFETY: all zeros is a valid value; the call writes it.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the structure lives until the call returns.
    unsafe { libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage) };
    u64::try_from(usage.ru_minflt + usage.ru_majflt).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(text: &str) -> Command {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", text]);
        command
    }

    #[test]
    fn a_process_is_told_of_with_its_status_words_and_cost() {
        let run = run(&mut shell("echo one; echo two >&2; exit 3")).expect("it runs");
        assert_eq!((run.status, run.output.as_str()), (3, "one\n"));
        assert_eq!(run.complaint(), "two");
        assert!(run.cost.ns > 0 && run.cost.minor_faults > 0);
        let killed = super::run(&mut shell("kill -9 $$")).expect("it runs");
        assert_eq!(killed.status, 137);
        assert_eq!(killed.complaint(), "it ended with status 137");
    }

    #[test]
    fn a_program_that_is_not_there_does_not_start() {
        let error = run(&mut Command::new("/none/such")).expect_err("it is not there");
        assert!(
            error.to_string().starts_with("/none/such does not start: "),
            "{error}"
        );
    }

    #[test]
    fn a_descendant_that_stays_is_not_waited_for() {
        let run = run(&mut shell("sleep 30 & echo $!")).expect("it runs");
        let left: i32 = run.output.trim().parse().expect("its number");
        // SAFETY: the shell's own child, which has just been told of.
        assert_eq!(unsafe { libc::kill(left, libc::SIGKILL) }, 0);
    }

    #[test]
    fn system_calls_are_those_that_were_made_in_every_process_and_thread() {
        let count = |text: &str| system_calls(&mut shell(text)).expect("it is counted");
        let (one, two) = (count(":"), count(": > /dev/null"));
        assert!(one > 10);
        // An opened file, made standard output and closed again.
        assert!(two >= one + 3, "{one} {two}");
        // Twice the same, and it counts twice; what starts a process comes on top.
        assert!(count("/bin/sh -c :; /bin/sh -c :") > 2 * one);
    }
}
