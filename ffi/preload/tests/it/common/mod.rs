//! Builds the library, and runs programs with and without it.
#![allow(dead_code, reason = "each test uses a part")]

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

/// More than any command of these tests takes.
const PATIENCE: Duration = Duration::from_secs(300);

/// A heap with pools of every kind.
pub(crate) const COMPOSITE: &str = r#"
[[pool]]
kind = "object"
size = 16
[[pool]]
kind = "object"
size = 32
[[pool]]
kind = "object"
size = 48
[[pool]]
kind = "object"
size = 112
[[pool]]
kind = "dedicated"
size = 1024
[[pool]]
kind = "dedicated"
size = 4096
[[pool]]
kind = "general"
index = "segregated-fit"
second_level = 4
probes = 8
up_to = 8192
coalesce_up_to = "64 KiB"
[[pool]]
kind = "general"
index = "tlsf"
second_level = 8
"#;

/// The library.
pub(crate) fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| metes_libraries::released().join("libmetes_preload.so"))
}

/// A heap for each thread.
pub(crate) const PER_THREAD: &str = "per-thread";

/// The heaps of [`heaps`] that place blocks alike in every run.
pub(crate) fn predicted() -> impl Iterator<Item = &'static String> {
    heaps().iter().filter(|heap| *heap != PER_THREAD)
}

/// Every named heap, two trees, a heap for each thread, and one with all kinds of pools, as METES_HEAP takes them.
pub(crate) fn heaps() -> &'static [String] {
    static HEAPS: OnceLock<Vec<String>> = OnceLock::new();
    HEAPS.get_or_init(|| {
        let mut heaps: Vec<String> = metes_config::named()
            .into_iter()
            .map(|(name, _)| name.to_owned())
            .collect();
        let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("composite-{}.toml", std::process::id()));
        std::fs::write(&path, COMPOSITE).expect("the temporary directory is writable");
        let trees =
            ["", ",summary=class"].map(|more| format!("first-fit:search=tree,span=64MiB{more}"));
        heaps.extend(trees);
        heaps.push(PER_THREAD.to_owned());
        heaps.push(path.display().to_string());
        heaps
    })
}

/// Whether a heap searches lists, so that large inputs would take long.
pub(crate) fn is_slow(heap: &str) -> bool {
    [
        "first-fit",
        "next-fit",
        "best-fit",
        "worst-fit",
        "exact-fit",
    ]
    .contains(&heap)
}

/// A new empty directory.
pub(crate) fn directory(name: &str) -> PathBuf {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join(format!("{name}-{}-{number}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("the temporary directory is writable");
    path
}

/// Preloads the library into a command, with the given heap.
pub(crate) fn preload<'c>(command: &'c mut Command, heap: &str) -> &'c mut Command {
    command
        .env("LD_PRELOAD", library())
        .env("METES_HEAP", heap)
        .env_remove("METES_REPORT")
}

/// Runs a command to its end. One that waits for ever (a lock that nobody gives
/// back) is ended after five minutes, and fails by its status.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> Output {
    let command = command.stdin(Stdio::null()).process_group(0);
    let started = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let child = match started {
        Ok(child) => child,
        Err(error) => panic!("{command:?} cannot be run: {error} (is it installed?)"),
    };
    let process = libc::pid_t::try_from(child.id()).expect("a process number");
    let (ended, watched) = std::sync::mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        if watched.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
            // SAFETY: has no precondition; the child is waited for below only,
            // so that the number is still its own and its group's.
            unsafe { libc::kill(-process, libc::SIGKILL) };
        }
    });
    let output = child.wait_with_output();
    drop(ended);
    watch.join().expect("the watch does not panic");
    output.expect("a child can be waited for")
}

/// Runs a command to its end, which must be a success.
#[track_caller]
pub(crate) fn succeed(command: &mut Command) -> Output {
    let output = run(command);
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Compiles a C program of this directory; `flags` go to the compiler.
#[track_caller]
pub(crate) fn compile(source: &str, flags: &[&str]) -> PathBuf {
    let directory = directory("compiled");
    let output = directory.join(source).with_extension("");
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/c")
        .join(source);
    succeed(
        Command::new("gcc")
            .args([
                "-std=gnu11",
                "-O1",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-fno-builtin",
                "-pthread",
                "-Wno-use-after-free",
            ])
            .arg(&source)
            .arg("-o")
            .arg(&output)
            .args(flags),
    );
    output
}
