//! A heap for each thread: what threads do to each other's blocks, and what of it is found.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use crate::common::{PER_THREAD, compile, preload, run, succeed};

/// Few threads with heaps of their own: the others share one.
const FEW: &str = "per-thread:threads=2";

fn kibibytes(kind: &str, heap: &str) -> i64 {
    let program = compile("threads.c", &[]);
    let done = succeed(preload(Command::new(program).arg(kind), heap));
    let printed = String::from_utf8_lossy(&done.stdout).into_owned();
    printed.trim().parse().expect("a number")
}

#[test]
fn threads_that_end_leave_their_pages_to_the_next() {
    for heap in [PER_THREAD, FEW, "per-thread:threads=1"] {
        let more = kibibytes("churn", heap);
        // One thread's blocks take 6 MiB.
        assert!(more < 2 << 10, "{more} KiB more on {heap}");
    }
}

#[test]
fn what_a_sleeping_thread_had_serves_others() {
    let more = kibibytes("asleep", PER_THREAD);
    // Twelve threads more have had 6 MiB each, and keep of it their current pages: one a class.
    assert!(more < 30 << 10, "{more} KiB more");
}

#[test]
fn threads_end_and_processes_fork_at_any_time() {
    for heap in [PER_THREAD, FEW] {
        for kind in ["late", "fork"] {
            assert_eq!(kibibytes(kind, heap), 0, "{kind} on {heap}");
        }
    }
}

#[test]
fn more_threads_than_heaps_are_served() {
    let program = compile("stress.c", &[]);
    for arguments in [["8", "40000", "15"], ["3", "40000", "0"]] {
        let done = run(preload(Command::new(&program).args(arguments), FEW));
        assert_eq!(
            String::from_utf8_lossy(&done.stdout),
            "sound\n",
            "{}",
            done.status
        );
    }
}

#[test]
fn what_another_thread_frees_wrongly_ends_the_program() {
    let program = compile("threads.c", &[]);
    for kind in ["twice-by-another", "twice-by-others", "inside-by-another"] {
        let done = run(preload(Command::new(&program).arg(kind), PER_THREAD));
        let said = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.signal(), Some(libc::SIGABRT), "{kind}: {said}");
        assert!(said.starts_with("metes: free(0x"), "{kind}: {said}");
    }
}
