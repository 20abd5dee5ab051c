//! What the tests of every backend do alike.

use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};

use metes_device::backend::conformance::{Plan, Tally, check};
use metes_device::backend::{Backend, Error};

/// One test at a time: a process has one device, and what is free is compared.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The backend's answers to 1000 random calls for each of so many seeds, all of which must be the
/// model's, and each of `answers` must have come.
pub(crate) fn conforms(
    backend: &mut dyn Backend,
    seeds: u64,
    pages: u64,
    alone: bool,
    answers: &[&str],
) -> Tally {
    let mut all = Tally::default();
    for seed in 0..seeds {
        let plan = Plan {
            seed,
            calls: 1000,
            pages,
            alone,
        };
        match check(backend, plan) {
            Ok(tally) => all.add(&tally),
            Err(failure) => panic!("{failure}"),
        }
    }
    for answer in answers {
        assert!(all.times(answer) > 20, "{answer} hardly came: {all:?}");
    }
    all
}

/// A device that was opened before a fork refuses every call in the child, and serves the parent
/// as before.
#[cfg(target_os = "linux")]
pub(crate) fn refused_in_a_fork<B: Backend>(mut backend: B) -> B {
    let bytes = backend.granularity();
    let memory = backend.create(bytes).unwrap();
    let refused = |error| matches!(error, Error::Process { .. });
    // SAFETY: the child only compares process identities, and leaves without unwinding.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: ends the child if it waits for a lock that nobody holds in it.
        unsafe { libc::alarm(100) };
        let all = backend.create(bytes).is_err_and(refused)
            && backend.reserve(bytes).is_err_and(refused)
            && backend.capacity().is_err_and(refused)
            && backend.release(memory).is_err_and(refused);
        drop(backend);
        // SAFETY: ends this process.
        unsafe { libc::_exit(if all { 0 } else { 1 }) };
    }
    let mut status = -1;
    // SAFETY: our child, and a place for its status.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child was not refused everything");
    backend.release(memory).unwrap();
    backend
}

/// Whether a test runs again, in a process of its own.
pub(crate) fn is_child() -> bool {
    std::env::var_os("METES_CHILD").is_some()
}

/// Runs a test again in a process of its own, and gives what it said.
pub(crate) fn child(test: &str, environment: &[(&str, &str)]) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env("METES_CHILD", "1")
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}{errors}");
    assert!(said.contains("1 passed"), "no such test: {test}");
    print!("{said}");
    said
}

/// A directory in which the library of that name is none.
pub(crate) fn without(library: &str) -> String {
    let directory = format!("{}/without-{library}", env!("CARGO_TARGET_TMPDIR"));
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(format!("{directory}/{library}"), "no library").unwrap();
    directory
}
