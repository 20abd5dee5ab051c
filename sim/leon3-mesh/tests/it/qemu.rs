//! The same image on QEMU: what is left in the end is the same as on the simulator.
//!
//! *Invariant:* the same file runs on both; on QEMU nothing is set in it.

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use metes_leon3::Model;

use crate::image::{Setting, apart, machine, path, run};

/// QEMU 10, which `scripts/setup` lays beside the build, knows machines of several cores; and that of the system.
fn programs() -> (Option<PathBuf>, Option<PathBuf>) {
    let test = std::env::current_exe().expect("a test has a path");
    let mut around = test.ancestors().skip(1).take(4);
    let newer = around.find_map(|folder| {
        let program = folder.join("qemu-sparc/qemu-system-sparc");
        program.is_file().then_some(program)
    });
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path);
    let mut programs = folders.map(|folder| folder.join("qemu-system-sparc"));
    (newer, programs.find(|program| program.is_file()))
}

/// What the image prints on `cores` cores of QEMU.
fn emulated(program: &PathBuf, cores: usize, in_step: bool) -> String {
    let mut qemu = Command::new(program);
    qemu.args([
        "-M",
        "leon3_generic",
        "-m",
        "64M",
        "-nographic",
        "-monitor",
        "none",
    ]);
    qemu.args(["-serial", "stdio", "-no-reboot"]);
    if cores > 1 {
        qemu.args(["-smp", &cores.to_string()]);
    }
    if in_step {
        qemu.args(["-icount", "shift=5,sleep=off"]);
    }
    qemu.arg("-kernel").arg(path());
    // The system's modules are of the system's QEMU, and none is needed.
    qemu.env("QEMU_MODULE_DIR", "/nonexistent");
    qemu.stdin(std::process::Stdio::null());
    qemu.stdout(std::process::Stdio::piped());
    qemu.stderr(std::process::Stdio::null());
    let mut child = qemu.spawn().expect("QEMU starts");
    let begun = Instant::now();
    // One that never ends must not keep the tests.
    while child.try_wait().expect("it is a child").is_none() {
        if begun.elapsed() > Duration::from_secs(120) {
            child.kill().expect("it is a child");
            panic!("the image does not end on QEMU");
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().expect("it has ended");
    assert!(output.status.success(), "QEMU: {}", output.status);
    String::from_utf8(output.stdout).expect("text")
}

fn simulated(cores: usize) -> Vec<String> {
    let setting = Setting {
        cores,
        mesh: true,
        model: Model::Flat,
        quantum: 64,
        // What the image does unless it is told.
        rounds: 300,
    };
    run(machine(setting)).state
}

#[test]
fn a_single_core_leaves_the_same() {
    let (newer, older) = programs();
    let programs = [newer, older].into_iter().flatten();
    let mut tried = 0;
    for program in programs {
        let (state, _) = apart(&emulated(&program, 1, true));
        assert_eq!(state, simulated(1), "{}", program.display());
        tried += 1;
    }
    assert!(tried > 0, "qemu-system-sparc is missing; run scripts/setup");
}

#[test]
fn four_cores_leave_the_same() {
    let newer = programs().0;
    let newer = newer.expect("QEMU 10 for SPARC is missing; run scripts/setup");
    for in_step in [true, false] {
        let (state, way) = apart(&emulated(&newer, 4, in_step));
        assert_eq!(state, simulated(4), "{way}");
        assert!(way.contains("parked"), "{way}");
    }
}
