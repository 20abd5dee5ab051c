//! Emission to a directory of its own, compilation, the driver.
//!
//! Invariant: a tool that is missing fails the test that needs it, by name.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use metes_emit::{self as emit, Home, Options, Ranges};
use metes_explore::{Arena, EventsBuilder, Replay, Replayer};
use metes_heap::description::{Description, GENERAL};
use tempfile::TempDir;

use crate::reference::Placed;
use crate::sample::Operation;

/// Most bytes of each range of memory: small, so that some requests fail.
pub(crate) const ARENA: usize = 4 << 20;

/// What a strict build must bear.
pub(crate) const STRICT: [&str; 6] = [
    "-std=c99",
    "-Wall",
    "-Wextra",
    "-Wconversion",
    "-Wpedantic",
    "-Werror",
];

/// The emission of a heap, in a directory that is removed with it.
pub(crate) fn emitted(description: &Description) -> TempDir {
    emitted_in(Placed::of(description))
}

/// The emission of a heap in memory levels, in a directory that is removed with it.
pub(crate) fn emitted_in(place: Placed<'_>) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        heap_toml: "# The description as the caller gave it.\n".to_string(),
        levels: place.sizes,
        increment: place.increment,
        ..Options::default()
    };
    emit_in(place.description, &options, directory)
}

/// The emission of a heap that maps blocks from `threshold` bytes on.
pub(crate) fn emitted_mapped(description: &Description, threshold: usize) -> TempDir {
    let options = Options {
        mapped: Some(threshold),
        ..Options::default()
    };
    emit_in(description, &options, tempfile::tempdir().unwrap())
}

/// The emission of a heap for memory that does not grow: a WebAssembly module's, or an image's.
pub(crate) fn emitted_in_ranges(description: &Description, home: fn(Ranges) -> Home) -> TempDir {
    let options = Options {
        increment: 1024,
        home: home(Ranges {
            beginning: 4096,
            pools: [1 << 20; GENERAL],
            slabs: 64,
            span: 1 << 24,
        }),
        ..Options::default()
    };
    emit_in(description, &options, tempfile::tempdir().unwrap())
}

/// What a replay says of operations.
pub(crate) fn replayed(
    description: &Description,
    operations: &[Operation],
    arena: Arena,
) -> Replay {
    use metes_explore::Operation as Does;
    let mut builder = EventsBuilder::new();
    for &operation in operations {
        let (does, id, size, align) = match operation {
            Operation::Allocate { id, size, align } => (Does::Allocate, id, size, align),
            Operation::Free { id } => (Does::Free, id, 0, 1),
            Operation::Resize { id, size, align } => (Does::Resize, id, size, align),
        };
        builder
            .push(does, id as u64, size as u64, align as u64)
            .unwrap();
    }
    let options = metes_explore::Options {
        arena,
        ..metes_explore::Options::default()
    };
    let (replay, _) = Replayer::new().replay("heap", description, &builder.finish(), &options);
    replay
}

/// The emission of a hardened heap.
pub(crate) fn emitted_hardened(description: &Description) -> TempDir {
    let options = Options {
        hardened: true,
        ..Options::default()
    };
    emit_in(description, &options, tempfile::tempdir().unwrap())
}

fn emit_in(description: &Description, options: &Options, directory: TempDir) -> TempDir {
    let files = emit::emit(description, options).unwrap();
    emit::write(&files, directory.path()).unwrap();
    directory
}

/// Runs a tool that the test cannot do without.
pub(crate) fn run_tool(command: &mut Command) -> Output {
    match command.output() {
        Ok(output) => output,
        Err(cause) => panic!(
            "{:?} is needed by this test: {cause}",
            command.get_program()
        ),
    }
}

/// Runs a tool and demands success.
pub(crate) fn succeed(command: &mut Command) -> Output {
    let output = run_tool(command);
    assert!(
        output.status.success(),
        "{command:?} failed:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Builds the driver of an emission with further flags.
pub(crate) fn build_driver(directory: &Path, flags: &[&str]) -> PathBuf {
    build_program(directory, "driver", flags)
}

/// Builds one of the C programs beside this file with an emitted heap.
pub(crate) fn build_program(directory: &Path, name: &str, flags: &[&str]) -> PathBuf {
    let program = directory.join(name);
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/emit");
    let driver = sources.join(name).with_extension("c");
    succeed(
        Command::new("cc")
            .args(STRICT)
            .args([
                "-D_POSIX_C_SOURCE=200809L",
                &format!("-DDRIVER_ARENA={ARENA}"),
            ])
            .args(flags)
            .arg("-I")
            .arg(directory.join("c"))
            .arg("-o")
            .arg(&program)
            .arg(driver)
            .arg(directory.join("c/heap.c")),
    );
    program
}

/// An operation in the driver's words.
pub(crate) fn line(operation: &Operation) -> String {
    match *operation {
        Operation::Allocate { id, size, align } => format!("a {id} {size} {align}"),
        Operation::Free { id } => format!("f {id}"),
        Operation::Resize { id, size, align } => format!("r {id} {size} {align}"),
    }
}

/// What the driver prints for the operations.
pub(crate) fn drive(program: &Path, operations: &[Operation]) -> Vec<String> {
    let lines: Vec<String> = operations.iter().map(line).collect();
    drive_lines(program, &lines)
}

/// What the driver prints for operations in its own words.
pub(crate) fn drive_lines(program: &Path, operations: &[String]) -> Vec<String> {
    let input = operations.join("\n") + "\n";
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // Written beside the reading, or both pipes would fill.
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().unwrap();
    let written = writer.join().unwrap();
    assert!(
        output.status.success() && written.is_ok(),
        "the driver failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(str::to_string)
        .collect()
}
