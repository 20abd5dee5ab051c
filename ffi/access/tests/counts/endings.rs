//! Programs that die, fork, or become another, and what is in the way of
//! counting: what was counted is kept, and what was not is said.

use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use metes_trace::record::Ending;
use metes_trace::record::access::plan;
use metes_trace::{Op, Trace, count_accesses};

use crate::support::{compile, count, options, place, planned};

/// Words read and written of the block of 12345 bytes, and whether it was freed.
fn of_the_block(trace: &Trace) -> (u64, u64, bool) {
    let made = trace.iter().find(|e| e.op == Op::Alloc && e.size == 12_345);
    let block = made.expect("the block").block;
    let rows: Vec<_> = trace.iter().filter(|event| event.block == block).collect();
    (
        rows.iter().map(|event| event.reads).sum(),
        rows.iter().map(|event| event.writes).sum(),
        rows.iter().any(|event| event.op == Op::Free),
    )
}

#[test]
fn what_was_counted_survives_the_program() {
    let place = place();
    let program = compile("loops", place.path());
    let program = program.to_str().expect("a name");
    let endings = [
        ("", Ending::Exit(0), true),
        ("seven", Ending::Exit(7), true),
        ("noexec", Ending::Exit(0), true),
        ("kill", Ending::Signal(libc_signal::KILL), false),
        ("fault", Ending::Signal(libc_signal::SEGV), false),
    ];
    for (how, ending, freed) in endings {
        let counted = count(&[program, how], &options(4));
        assert_eq!(counted.ending, ending, "{how}");
        assert_eq!(of_the_block(&counted.trace), (0, 321, freed), "{how}");
        assert!(counted.trace.provenance.instructions > 0, "{how}");
        assert_eq!(counted.forks, 0, "{how}");
    }
}

/// Numbers of signals, the same on every Linux that Metes runs on.
mod libc_signal {
    pub(super) const KILL: i32 = 9;
    pub(super) const SEGV: i32 = 11;
}

#[test]
fn children_are_told_apart() {
    let place = place();
    let program = compile("loops", place.path());
    let counted = count(&[program.to_str().expect("a name"), "fork"], &options(4));
    assert_eq!((counted.forks, counted.child_programs), (2, 1));
    // What the children wrote is not in it.
    assert_eq!(of_the_block(&counted.trace), (0, 321, true));
}

#[test]
fn a_program_that_becomes_another_is_refused() {
    let place = place();
    let program = compile("loops", place.path());
    let plan = planned(&[program.to_str().expect("a name"), "exec"]).expect("it can be counted");
    let error = count_accesses(&plan, &options(4)).expect_err("the other one runs outside");
    assert!(error.to_string().contains("replaced itself"), "{error}");
}

#[test]
fn scripts_lead_to_their_interpreter() {
    let place = place();
    let script = |name: &str, line: &str| {
        let path = place.path().join(name);
        std::fs::write(&path, format!("{line}\n:\n")).expect("a script");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("rights");
        path.to_str().expect("a name").to_owned()
    };
    let shell = script("a", "#!/bin/sh -e");
    let planned_shell = planned(&[&shell, "x"]).expect("a shell");
    assert_eq!(planned_shell.program, Path::new("/bin/sh"));
    assert_eq!(planned_shell.command, ["/bin/sh", "-e", &shell, "x"]);
    // Not `env`, which would replace itself.
    let shell = script("b", "#!/usr/bin/env sh");
    let planned_env = planned(&[&shell]).expect("a shell");
    assert!(planned_env.program.ends_with("sh"));
    assert_eq!(planned_env.command, ["sh", &shell]);
}

#[test]
fn what_is_in_the_way_is_named() {
    let place = place();
    let program = compile("loops", place.path());
    let command = [program.clone().into_os_string()];
    let says = |error: metes_trace::RecordError, words: &[&str]| {
        let error = error.to_string();
        for word in words {
            assert!(error.contains(word), "{word:?} is missing in: {error}");
        }
    };
    let missing = plan(&command, Some(OsStr::new("qemu-none"))).expect_err("no such emulator");
    says(missing, &["qemu-none", "qemu-user", "--qemu"]);
    // Another program is no emulator.
    let wrong = plan(&command, Some(OsStr::new("true"))).expect("a program");
    let error = count_accesses(&wrong, &options(4)).expect_err("it does not emulate");
    says(error, &["before the program began", "7.2"]);
    says(
        planned(&["no-such-program"]).expect_err("none"),
        &["not found"],
    );
    let mut without = options(4);
    without.plugin = place.path().join("libnone.so");
    let planned = planned(&[program.to_str().expect("a name")]).expect("it can be counted");
    let error = count_accesses(&planned, &without).expect_err("no plug-in");
    says(error, &["libnone.so"]);
}
