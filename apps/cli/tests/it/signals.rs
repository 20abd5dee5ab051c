//! Signals to Metes while a program runs under it, and what is left then.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Place, recorded, status, stderr};

/// Says its number when it has allocated, and then waits, for ever if asked to
/// stay.
const WAITS: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char **argv) {
    for (int i = 0; i < 100; i++) free(malloc(100));
    if (argc > 1) signal(SIGTERM, SIG_IGN);
    FILE *file = fopen("pid.part", "w");
    fprintf(file, "%d", (int)getpid());
    fclose(file);
    rename("pid.part", "pid");
    for (;;) pause();
}
"#;

/// Long enough on the slowest machine, and no more than a test should take.
const MOST: Duration = Duration::from_secs(120);

/// Waits until `what` is so.
#[track_caller]
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < MOST, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn send(pid: i32, signal: i32) {
    // SAFETY: a process that this test started.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

fn lives(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // One that nobody waited for yet does not live.
    !stat.is_empty() && !stat.contains(") Z ")
}

/// A verb over the program that waits, in a group and a temporary directory of
/// its own; the number of the program.
fn begin(place: &Place, arguments: &[&str]) -> (Child, i32) {
    std::fs::create_dir_all(place.path("tmp")).expect("a directory");
    let _ = std::fs::remove_file(place.path("pid"));
    let mut command = place.command(arguments);
    command.env("TMPDIR", place.path("tmp")).process_group(0);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut metes = command.spawn().expect("metes runs");
    let begun = || place.path("pid").exists() || matches!(metes.try_wait(), Ok(Some(_)));
    until("the program begins", begun);
    let pid = place.read("pid").parse().expect("a number");
    (metes, pid)
}

fn left(place: &Place) -> Vec<String> {
    let entries = std::fs::read_dir(place.path("tmp")).expect("a directory");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    names
        .map(|name| name.to_string_lossy().into_owned())
        .collect()
}

fn place() -> Place {
    let place = Place::new();
    place.compile("waits", WAITS, &[]);
    place
}

#[test]
fn a_recording_that_is_told_to_end_is_kept() {
    let place = place();
    for signal in [libc::SIGTERM, libc::SIGHUP, libc::SIGINT] {
        let (metes, program) = begin(&place, &["record", "-o", "t.parquet", "--", "./waits"]);
        send(metes.id() as i32, signal);
        let output = metes.wait_with_output().expect("it ends");
        assert_eq!(status(&output), 0, "{}", stderr(&output));
        assert!(!lives(program));
        assert_eq!(left(&place), [""; 0]);
        let (_, profile) = place.json(&["profile", "t.parquet"]);
        assert!(profile["allocations"].as_u64() >= Some(100), "{profile}");
        std::fs::remove_file(place.path("t.parquet")).expect("a trace");
    }
}

#[test]
fn a_program_is_asked_to_end_when_its_seconds_are_over() {
    let place = place();
    let words = [
        "record",
        "--seconds",
        "3",
        "-o",
        "t.parquet",
        "--",
        "./waits",
    ];
    let (metes, program) = begin(&place, &words);
    let output = metes.wait_with_output().expect("it ends");
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert!(!lives(program));
    assert_eq!(left(&place), [""; 0]);
    assert!(place.path("t.parquet").exists());
    // One that ends before is not waited for.
    let words = ["record", "--seconds", "1000", "-o", "t.parquet", "--", "ls"];
    assert_eq!(status(&place.metes(&words)), 0);
}

#[test]
fn a_run_that_is_told_to_end_has_the_status_of_its_program() {
    let place = place();
    let (metes, program) = begin(&place, &["run", "--heap", "tlsf", "--", "./waits"]);
    send(metes.id() as i32, libc::SIGTERM);
    let output = metes.wait_with_output().expect("it ends");
    assert_eq!(status(&output), 128 + libc::SIGTERM, "{}", stderr(&output));
    assert!(!lives(program));
    assert_eq!(left(&place), [""; 0]);
}

#[test]
fn a_tuning_that_is_told_to_end_keeps_its_recording() {
    let place = place();
    let (metes, program) = begin(&place, &["tune", "-o", "out", "--", "./waits"]);
    send(metes.id() as i32, libc::SIGTERM);
    let output = metes.wait_with_output().expect("it ends");
    let said = stderr(&output);
    assert_eq!(status(&output), 128 + libc::SIGTERM, "{said}");
    assert!(said.contains("out/program.trace.parquet"), "{said}");
    assert!(!lives(program));
    assert_eq!(left(&place), [""; 0]);
    let (_, profile) = place.json(&["profile", "out/program.trace.parquet"]);
    assert!(profile["allocations"].as_u64() >= Some(100), "{profile}");
}

#[test]
fn a_program_that_stays_is_killed_by_the_second_signal() {
    let place = place();
    let command = ["record", "-o", "t.parquet", "--", "./waits", "stay"];
    let (mut metes, program) = begin(&place, &command);
    send(metes.id() as i32, libc::SIGTERM);
    // At once it would be the same request, sent to a process and to its group.
    std::thread::sleep(Duration::from_millis(1500));
    assert!(lives(program) && lives(metes.id() as i32));
    send(metes.id() as i32, libc::SIGTERM);
    let mut said = String::new();
    let mut errors = metes.stderr.take().expect("a pipe");
    errors.read_to_string(&mut said).expect("text");
    metes.wait().expect("it ends");
    assert!(!lives(program));
    assert_eq!(left(&place), [""; 0]);
    place.json(&["profile", "t.parquet"]);
}

#[test]
fn what_a_killed_metes_leaves_the_next_one_removes() {
    let place = place();
    let recorded = recorded();
    for verb in [
        &["record", "-o", "t.parquet", "--", "./waits"][..],
        &["run", "--heap", "tlsf", "--", "./waits"],
        &["tune", "-o", "out", "--", "./waits"],
    ] {
        let (mut metes, program) = begin(&place, verb);
        metes.kill().expect("it lives");
        metes.wait().expect("it is dead");
        until("the program ends with Metes", || !lives(program));
    }
    assert!(!left(&place).is_empty(), "nobody could remove it");
    let next = |arguments: &[&str]| {
        let mut command = recorded.command(arguments);
        let output = command.env("TMPDIR", place.path("tmp")).output();
        let output = output.expect("metes runs");
        assert_eq!(status(&output), 0, "{}", stderr(&output));
    };
    next(&["run", "--heap", "tlsf", "--", "./steady"]);
    next(&["record", "-o", "u.parquet", "--", "./steady"]);
    assert_eq!(left(&place), [""; 0]);
}

#[test]
fn a_full_temporary_directory_is_named_as_such() {
    // Needs a file system of its own, which only some users may mount.
    let place = place();
    std::fs::create_dir_all(place.path("tmp")).expect("a directory");
    let script =
        "mount -t tmpfs -o size=128k none tmp && exec \"$METES\" record -o t.parquet -- ls";
    let mut command = std::process::Command::new("unshare");
    command
        .args(["-rm", "sh", "-c", script])
        .current_dir(place.path("."));
    command.env("METES", env!("CARGO_BIN_EXE_metes"));
    command.env("METES_LIBRARY_PATH", crate::support::libraries());
    let output = command.env("TMPDIR", place.path("tmp")).output();
    let Some(output) = output
        .ok()
        .filter(|output| !stderr(output).contains("ermitted"))
    else {
        println!("not run: this user may not mount");
        return;
    };
    let said = stderr(&output);
    assert_eq!(status(&output), 2, "{said}");
    assert!(
        said.contains("no room for the recording") && said.contains("TMPDIR"),
        "{said}"
    );
}
