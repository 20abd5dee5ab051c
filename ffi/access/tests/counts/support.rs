//! Building programs and libraries, and running them under the counter.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use metes_trace::record::access::{Counted, Plan, plan};
use metes_trace::{AccessOptions, Op, RecordError, Trace, count_accesses};

/// The directory of plug-in and recorder, built at the first call.
pub(crate) fn libraries() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .parent()
            .expect("below the target directory");
        let mut build = Command::new(env!("CARGO"));
        build.args([
            "build",
            "--quiet",
            "-p",
            "metes-record",
            "-p",
            "metes-access",
        ]);
        build.arg("--target-dir").arg(target);
        build.current_dir(env!("CARGO_MANIFEST_DIR"));
        assert!(build.status().expect("cargo runs").success());
        target.join("debug")
    })
}

/// A directory of the test's own.
pub(crate) fn place() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory for the test")
}

pub(crate) fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Runs a tool that must succeed.
#[track_caller]
pub(crate) fn tool(package: &str, command: &mut Command) -> Output {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}; apt install {package}"));
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Compiles `tests/programs/<name>.c` to `to`.
pub(crate) fn compile(name: &str, to: &Path) -> PathBuf {
    let program = to.join(name);
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-fno-builtin", "-pthread", "-o"])
        .arg(&program);
    gcc.arg(source(&format!("tests/programs/{name}.c")));
    tool("gcc", &mut gcc);
    program
}

/// The Valgrind tool's directory, built in `place`.
pub(crate) fn oracle(place: &Path) -> PathBuf {
    let directory = place.join("valgrind");
    let build = source("../../tools/valgrind-accesses/build");
    tool("valgrind gcc", Command::new(build).arg(&directory));
    directory
}

pub(crate) fn options(word: u32) -> AccessOptions {
    AccessOptions {
        plugin: libraries().join("libmetes_access.so"),
        recorder: libraries().join("libmetes_record.so"),
        word,
        every: false,
        slice: None,
        directory: None,
        environment: Vec::new(),
    }
}

pub(crate) fn planned(words: &[&str]) -> Result<Plan, RecordError> {
    let command: Vec<OsString> = words.iter().map(OsString::from).collect();
    plan(&command, None)
}

/// Counts the accesses of a command that can be counted.
#[track_caller]
pub(crate) fn count(words: &[&str], options: &AccessOptions) -> Counted {
    let plan = planned(words).unwrap_or_else(|error| panic!("{error}"));
    count_accesses(&plan, options).unwrap_or_else(|error| panic!("{error}"))
}

/// By size of the blocks: words read, written, bytes read, written.
pub(crate) type Counts = BTreeMap<u64, [u64; 4]>;

/// The sizes that the programs use for what is checked.
pub(crate) fn is_checked(size: u64) -> bool {
    size >= 20_000 && !(31_000..31_004).contains(&size)
}

/// The counts of a trace, by the size that a block had while it was accessed.
pub(crate) fn by_size(trace: &Trace) -> Counts {
    let mut sizes = vec![0; trace.block_count()];
    let mut counts = Counts::new();
    for event in trace.iter() {
        let size = &mut sizes[event.block as usize];
        if event.op != Op::Alloc && is_checked(*size) {
            let new = [
                event.reads,
                event.writes,
                event.read_bytes,
                event.write_bytes,
            ];
            add(&mut counts, *size, new);
        }
        if matches!(event.op, Op::Alloc | Op::Resize) {
            *size = event.size;
        }
    }
    counts
}

/// Lines of `size reads writes bytes-read bytes-written`.
pub(crate) fn parse(text: &str) -> Counts {
    let mut counts = Counts::new();
    for line in text.lines() {
        let numbers: Vec<u64> = line
            .split(' ')
            .map(|number| number.parse().expect("a number"))
            .collect();
        let [size, new @ ..] = numbers.as_slice() else {
            continue;
        };
        if is_checked(*size) {
            add(&mut counts, *size, new.try_into().expect("four counts"));
        }
    }
    counts
}

fn add(counts: &mut Counts, size: u64, new: [u64; 4]) {
    let sum = counts.entry(size).or_default();
    for (sum, new) in sum.iter_mut().zip(new) {
        *sum += new;
    }
}
