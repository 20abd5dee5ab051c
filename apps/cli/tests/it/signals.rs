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

/// Asks for a block of 100 bytes each millisecond, and keeps each tenth.
const SERVES: &str = r#"
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void *volatile kept;
int main(void) {
    FILE *file = fopen("pid.part", "w");
    fprintf(file, "%d", (int)getpid());
    fclose(file);
    rename("pid.part", "pid");
    for (int i = 0;; i++) {
        kept = malloc(100);
        if (i % 10) free(kept);
        usleep(1000);
    }
}
"#;

#[test]
fn a_signal_begins_and_stops_a_recording() {
    let place = Place::new();
    place.compile("serves", SERVES, &[]);
    let words = ["record", "--on-signal", "usr2", "-o", "t.trace.parquet"];
    let (metes, program) = begin(&place, &[&words[..], &["--", "./serves"]].concat());
    let own = metes.id() as i32;
    let first = place.path("t.part0001.trace.parquet");
    for _ in 0..2 {
        assert!(!first.exists());
        send(own, libc::SIGUSR2);
        std::thread::sleep(Duration::from_millis(300));
    }
    until("the first file", || first.exists());
    send(own, libc::SIGUSR2);
    std::thread::sleep(Duration::from_millis(300));
    send(own, libc::SIGTERM);
    let output = metes.wait_with_output().expect("it ends");
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert!(!lives(program));
    assert_eq!(left(&place), [""; 0]);
    assert!(
        stderr(&output).contains("kill -USR2"),
        "{}",
        stderr(&output)
    );
    for name in ["t.part0001.trace.parquet", "t.part0002.trace.parquet"] {
        let (_, profile) = place.json(&["profile", name]);
        let allocations = profile["allocations"].as_u64().expect("a number");
        assert!(allocations > 10, "{name}: {profile}");
        assert!(allocations < 100_000, "{name}: {profile}");
    }
    assert!(!place.path("t.part0003.trace.parquet").exists());
    // What never began has nothing to show.
    let words = [
        "record",
        "--on-signal",
        "usr1",
        "-o",
        "n.trace.parquet",
        "--",
        "ls",
    ];
    let output = place.metes(&words);
    assert_eq!(status(&output), 2);
    assert!(
        stderr(&output).contains("before it was to be recorded"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_program_with_a_dormant_recorder_is_attached_to() {
    let place = Place::new();
    place.compile("serves", SERVES, &[]);
    let (mut server, program) = begin(&place, &["record", "--dormant", "--", "./serves"]);
    assert_eq!(server.id() as i32, program, "Metes has become the program");
    let pid = program.to_string();
    for name in ["a.trace.parquet", "b.trace.parquet"] {
        let words = ["record", "--attach", &pid, "--seconds", "0.4", "-o", name];
        let output = place.metes(&words);
        assert_eq!(status(&output), 0, "{}", stderr(&output));
        let (_, profile) = place.json(&["profile", name]);
        let allocations = profile["allocations"].as_u64().expect("a number");
        assert!(allocations > 10 && allocations < 2000, "{name}: {profile}");
    }
    assert!(lives(program));
    server.kill().expect("it lives");
    server.wait().expect("it ends");
    // This process has no recorder.
    let own = std::process::id().to_string();
    let output = place.metes(&["record", "--attach", &own, "-o", "n.trace.parquet"]);
    assert_eq!(status(&output), 2);
    assert!(stderr(&output).contains("--dormant"), "{}", stderr(&output));
}

/// Keeps a thousand blocks of many sizes, and replaces them half a million times.
const TURNS: &str = r#"
#include <stdlib.h>
int main(void) {
    static void *kept[1000];
    unsigned seed = 1;
    for (int i = 0; i < 500000; i++) {
        seed = seed * 1664525u + 1013904223u;
        unsigned which = (seed >> 8) % 1000;
        free(kept[which]);
        kept[which] = malloc(1 + (seed >> 20));
    }
}
"#;

#[test]
fn a_recording_is_cut_into_files_that_are_traces() {
    let place = Place::new();
    place.compile("turns", TURNS, &[]);
    let record = |more: &[&str]| {
        let words = ["record", "--rotate", "300KiB", "-o", "t.trace.parquet"];
        place.json(&[&words[..], more, &["--", "./turns"]].concat())
    };
    let (code, whole) = place.json(&["record", "-o", "w.trace.parquet", "--", "./turns"]);
    assert_eq!(code, 0);
    let (code, cut) = record(&[]);
    assert_eq!(code, 0);
    let files = cut["processes"].as_array().expect("files");
    assert!(files.len() > 2, "{cut}");
    let number = |value: &serde_json::Value| value.as_u64().unwrap_or(0);
    let mut events = 0;
    for (index, file) in files.iter().enumerate() {
        let beginning = &file["beginning"];
        assert_eq!(number(&beginning["events_before"]), events, "{file}");
        if index > 0 {
            assert_eq!(number(&beginning["part"]), index as u64 + 1);
            assert!(number(&beginning["live_blocks"]) > 500, "{file}");
        }
        events += number(&file["events"]) - number(&beginning["live_blocks"]);
        let name = file["file"].as_str().expect("a name");
        let (code, profile) = place.json(&["profile", name]);
        assert_eq!(code, 0);
        assert_eq!(profile["peak_live"], file["peak_live"], "{name}");
    }
    assert_eq!(events, number(&whole["events"]));
    // Those of an earlier recording are not mixed with others.
    let words = [
        "record",
        "--rotate",
        "1MiB",
        "-o",
        "t.trace.parquet",
        "--",
        "ls",
    ];
    let output = place.metes(&words);
    assert_eq!(status(&output), 2);
    assert!(
        stderr(&output).contains("another recording"),
        "{}",
        stderr(&output)
    );
    for file in files {
        std::fs::remove_file(place.path(file["file"].as_str().expect("a name"))).expect("there");
    }
    let (_, kept) = record(&["--keep", "2"]);
    assert_eq!(kept["processes"].as_array().map(Vec::len), Some(2));
    assert!(!place.path("t.part0001.trace.parquet").exists());
}

/// More threads, one after the other, than there may be pieces of a recording at once.
#[test]
fn threads_that_are_gone_hold_nothing_back() {
    const THREADS: usize = 12_000;
    let source = format!(
        "#include <pthread.h>\n#include <stdlib.h>\n\
         static void *ask(void *none) {{ free(malloc(100)); return none; }}\n\
         int main(void) {{\n    for (int i = 0; i < {THREADS}; i++) {{\n        pthread_t thread;\n\
         if (pthread_create(&thread, NULL, ask, NULL) != 0) return 1;\n        pthread_join(thread, NULL);\n    }}\n    return 0;\n}}\n"
    );
    let place = Place::new();
    place.compile("program", &source, &["-O0", "-pthread"]);
    let words = ["record", "-o", "a.trace.parquet", "--", "./program"];
    let (code, document) = place.json(&words);
    assert_eq!(code, 0, "{document}");
    assert_eq!(document["processes"][0]["lost_events"], 0, "{document}");
    let threads = document["processes"][0]["threads"].as_u64();
    assert_eq!(threads, Some(THREADS as u64 + 1), "{document}");
    let events = document["events"].as_u64().expect("a number");
    assert!(events >= 2 * THREADS as u64, "{document}");
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
fn a_recording_that_fills_the_disk_keeps_what_found_room() {
    // Needs a file system of its own, which only some users may mount.
    let place = place();
    place.compile("turns", TURNS, &[]);
    std::fs::create_dir_all(place.path("small")).expect("a directory");
    let script = "mount -t tmpfs -o size=5m none small && \"$METES\" record -o small/t.parquet -- ./turns \
                  && \"$METES\" --json profile small/t.parquet";
    let mut command = std::process::Command::new("unshare");
    command
        .args(["-rm", "sh", "-c", script])
        .current_dir(place.path("."));
    command.env("METES", env!("CARGO_BIN_EXE_metes"));
    command.env("METES_LIBRARY_PATH", crate::support::libraries());
    let Some(output) = command
        .output()
        .ok()
        .filter(|output| !stderr(output).contains("ermitted"))
    else {
        println!("not run: this user may not mount");
        return;
    };
    let said = stderr(&output);
    assert_eq!(status(&output), 0, "{said}");
    assert!(
        said.contains("no more room") && said.contains("--rotate"),
        "{said}"
    );
    let profile: serde_json::Value = serde_json::from_slice(&output.stdout).expect("a document");
    let allocations = profile["allocations"].as_u64().expect("a number");
    assert!(
        allocations > 50_000 && allocations < 500_000,
        "{allocations}"
    );
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
