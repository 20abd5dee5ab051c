//! How many system calls a command makes, in all its processes and threads: it is run under `ptrace`, which makes it
//! slow, so nothing else of that run is looked at.
//!
//! *Invariant:* a tracer waits for its own thread's children alone, so that others of the process stay whose they are.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

use super::{ProcessError, said, started, system};

const OPTIONS: i32 = libc::PTRACE_O_TRACESYSGOOD
    | libc::PTRACE_O_TRACEFORK
    | libc::PTRACE_O_TRACEVFORK
    | libc::PTRACE_O_TRACECLONE
    | libc::PTRACE_O_EXITKILL;

/// System calls of a command, from after it was loaded until the last of its processes is over.
///
/// # Errors
/// When it does not start, is not to be traced, or ends with another status than 0.
pub fn system_calls(command: &mut Command) -> Result<u64, ProcessError> {
    // SAFETY: one system call between fork and exec.
    unsafe {
        command.pre_exec(|| match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        });
    }
    let mut child = started(command)?;
    let first = child.id().cast_signed();
    let counted = follow(first);
    let (_, complaints) = said(&mut child);
    match counted? {
        (calls, 0) => Ok(calls),
        (_, status) => Err(ProcessError::System {
            what: "a traced run",
            source: io::Error::other(format!("status {status}: {complaints}")),
        }),
    }
}

/// Follows all processes until none is left: system calls, and the status of the first.
fn follow(first: i32) -> Result<(u64, i32), ProcessError> {
    let mut calls = 0;
    let mut first_status = 0;
    // Whether a thread is inside a system call.
    let mut inside: BTreeMap<i32, bool> = BTreeMap::new();
    loop {
        let mut status = 0;
        // SAFETY: the status is written by the call and lives until it returns.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::__WALL | libc::__WNOTHREAD) };
        if pid < 0 {
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::ECHILD) => return Ok((calls, first_status)),
                Some(libc::EINTR) => continue,
                _ => return Err(system("waitpid")),
            }
        }
        if libc::WIFEXITED(status) || libc::WIFSIGNALED(status) {
            inside.remove(&pid);
            if pid == first {
                first_status = super::shell_status(status);
            }
            continue;
        }
        let signal = libc::WSTOPSIG(status);
        let mut deliver = 0;
        if signal == libc::SIGTRAP | 0x80 {
            let within = inside.entry(pid).or_insert(false);
            calls += u64::from(!*within);
            *within = !*within;
        } else if let Entry::Vacant(new) = inside.entry(pid) {
            // New: stopped by its first exec, or by having been made.
            new.insert(false);
            // SAFETY: a thread that is stopped and ours to trace.
            unsafe { libc::ptrace(libc::PTRACE_SETOPTIONS, pid, 0, OPTIONS) };
        } else if status >> 16 == 0 && signal != libc::SIGTRAP {
            // A signal for it, which is no event of tracing.
            deliver = signal;
        }
        // SAFETY: as above; a thread that is gone by now is waited for next.
        unsafe { libc::ptrace(libc::PTRACE_SYSCALL, pid, 0, deliver) };
    }
}
