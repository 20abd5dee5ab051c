//! The recorder in C beside that in Rust: the same bytes of the same calls; and what it keeps interrupts blocked for.

use std::cell::Cell;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use metes_emit::recorder::FILES;
use metes_random::Random;
use metes_target_recorder::{Recorder, Target};
use tempfile::TempDir;

const EVENTS: usize = 64;

thread_local! {
    static NOW: Cell<u32> = const { Cell::new(0) };
}

struct Host;

// SAFETY: each recorder here is of one thread, without interrupts.
unsafe impl Target for Host {
    const FREQUENCY: u32 = 25_000_000;

    fn now() -> u32 {
        NOW.get()
    }

    fn exclusively<R>(work: impl FnOnce() -> R) -> R {
        work()
    }
}

/// The files of the recorder, in a directory of their own.
fn files() -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in FILES {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    directory
}

fn compile(directory: &Path, compiler: &str, arguments: &[&str]) {
    let done = Command::new(compiler)
        .args([
            "-std=c99",
            "-O2",
            "-Wall",
            "-Wextra",
            "-Wconversion",
            "-Wpedantic",
            "-Werror",
        ])
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap();
    assert!(
        done.status.success(),
        "{}",
        String::from_utf8_lossy(&done.stderr)
    );
}

/// Calls as the driver reads them, and what the recorder in Rust writes of them.
fn drawn(seed: u64) -> (String, Vec<u8>) {
    let recorder: Recorder<Host, EVENTS> = Recorder::new();
    let mut random = Random::new(seed);
    let (mut text, mut bytes) = (String::new(), Vec::new());
    for _ in 0..2000 {
        let address = random.below(1 << 32) & !7;
        let size = random.below(1 << 33);
        let align = 1 << random.below(12);
        let (what, one, two) = match random.below(24) {
            0..8 => ('a', address, size),
            8 => ('a', 0, size),
            9..15 => ('f', address, 0),
            15 => ('r', address, size),
            16 => ('m', address, random.below(1 << 32)),
            17 => ('m', address, 0),
            18 => ('t', random.below(1 << 32), 0),
            20 => ('x', random.below(1 << 32), random.below(1 << 32)),
            19 => ('d', 0, 0),
            _ => ('s', 0, 0),
        };
        writeln!(text, "{what} {one} {two} {align}").unwrap();
        let (at, other) = (one as usize, two as usize);
        match what {
            't' => NOW.set(one as u32),
            'a' => recorder.allocated(at, other, align),
            'f' => recorder.freed(at),
            'r' => recorder.resizing(at, other, 16),
            'm' => recorder.resized(at, other),
            'x' => recorder.tell(align as u32, one as u32, two as u32),
            's' => drop(recorder.send(|part| bytes.extend_from_slice(part))),
            _ => {
                let (ring, length) = recorder.dump();
                // SAFETY: so many bytes of a recorder that nobody writes to now.
                bytes.extend_from_slice(unsafe { std::slice::from_raw_parts(ring, length) });
            }
        }
    }
    (text, bytes)
}

#[test]
fn c_and_rust_leave_the_same_bytes() {
    let directory = files();
    std::fs::write(
        directory.path().join("driver.c"),
        include_str!("recorder.c"),
    )
    .unwrap();
    std::fs::write(
        directory.path().join("now.h"),
        "extern uint32_t driver_now;\n",
    )
    .unwrap();
    let events = format!("-DMETES_RECORD_EVENTS={EVENTS}");
    compile(
        directory.path(),
        "cc",
        &[
            &events,
            "-DMETES_RECORD_FREQUENCY=25000000",
            "-DMETES_RECORD_NOW()=driver_now",
            "-DMETES_RECORD_ENTER(was)=((was)=0)",
            "-DMETES_RECORD_LEAVE(was)=((void)(was))",
            "-include",
            "stdint.h",
            "-include",
            "now.h",
            "driver.c",
            "metes_record.c",
            "-o",
            "driver",
        ],
    );
    for seed in 0..40 {
        NOW.set(0);
        let (text, bytes) = drawn(seed);
        let mut driver = Command::new(directory.path().join("driver"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut input = driver.stdin.take().unwrap();
        let writer = std::thread::spawn(move || input.write_all(text.as_bytes()).unwrap());
        let done = driver.wait_with_output().unwrap();
        writer.join().unwrap();
        assert!(done.status.success());
        assert!(
            done.stdout == bytes,
            "seed {seed}: {} and {} bytes",
            done.stdout.len(),
            bytes.len()
        );
    }
}

/// Most instructions between the one that blocks interrupts and the one that sets them back: what the header promises, six
/// accesses and a look at the clock, and the header of the ring at the first event.
const MOST_BLOCKED: usize = 36;

#[test]
fn interrupts_are_blocked_for_a_handful_of_instructions() {
    let directory = files();
    for (target, flags, block, back) in [
        ("thumbv7m-none-eabi", "-mcpu=cortex-m3", "cpsid", "msr"),
        ("thumbv6m-none-eabi", "-mcpu=cortex-m0", "cpsid", "msr"),
        (
            "riscv32-unknown-none-elf",
            "-march=rv32imac",
            "csrrci",
            "csrs",
        ),
    ] {
        let target = format!("--target={target}");
        compile(
            directory.path(),
            "clang",
            &[
                &target,
                flags,
                "-ffreestanding",
                "-S",
                "metes_record.c",
                "-o",
                "out.s",
            ],
        );
        let text = std::fs::read_to_string(directory.path().join("out.s")).unwrap();
        let code: Vec<&str> = text
            .lines()
            .map(str::trim)
            .filter(|line| {
                !line.is_empty() && !line.starts_with(['.', '@', '#']) && !line.ends_with(':')
            })
            .collect();
        let mut blocked = 0;
        let mut places = code
            .iter()
            .enumerate()
            .filter(|(_, line)| line.starts_with(block));
        for (from, _) in places.by_ref() {
            let length = code[from..]
                .iter()
                .position(|line| line.starts_with(back))
                .unwrap();
            assert!(length <= MOST_BLOCKED, "{target}: {length}");
            // No loop, and no call, makes them more than they are.
            let inside = &code[from..from + length];
            assert!(
                inside
                    .iter()
                    .all(|line| !line.starts_with("bl\t") && !line.starts_with("call"))
            );
            blocked += 1;
        }
        assert!(blocked > 0, "{target}");
    }
}

#[test]
fn it_compiles_for_sparc_and_says_what_lacks_elsewhere() {
    let directory = files();
    compile(
        directory.path(),
        "sparc64-linux-gnu-gcc",
        &[
            "-m32",
            "-mcpu=v8",
            "-ffreestanding",
            "-c",
            "metes_record.c",
            "-o",
            "out.o",
        ],
    );
    // On a host nobody knows how others are kept out.
    let done = Command::new("cc")
        .args(["-c", "metes_record.c"])
        .current_dir(directory.path())
        .output()
        .unwrap();
    assert!(!done.status.success());
    assert!(
        String::from_utf8_lossy(&done.stderr)
            .contains("METES_RECORD_ENTER(was) and METES_RECORD_LEAVE(was)")
    );
}
