//! Modules that are measured, built for this target.
//!
//! Invariant: each is built once a process, beside the workspace's own builds and without their features.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use metes_edge_heap::run::Input;
use metes_edge_heap::tune::Tuning;
use metes_explore::{Events, Preference, Wanted};

/// Bytes of memory of modules in C: the same at the beginning and at the most.
pub(crate) const MEMORY: u32 = 8 << 20;
/// What the C of wasi-libc is built with.
const CLANG: &str = "clang-14";

pub(crate) fn crate_directory() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn built() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target
        .unwrap_or_else(|| crate_directory().join("../../target"))
        .join("guests")
}

pub(crate) fn succeed(command: &mut Command) {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}; run scripts/setup"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}:\n{said}");
}

/// Builds a package for WebAssembly.
pub(crate) fn cargo(directory: &Path, target: &Path, arguments: &[&str]) {
    succeed(
        Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .current_dir(directory)
            .args([
                "build",
                "--release",
                "--target",
                "wasm32-wasip1",
                "--target-dir",
            ])
            .arg(target)
            .args(arguments)
            .env_remove("CARGO_ENCODED_RUSTFLAGS")
            .env_remove("RUSTFLAGS"),
    );
}

fn release() -> PathBuf {
    built().join("wasm32-wasip1/release")
}

/// A module over an allocator of Rust, by the name of the example that it is.
pub(crate) fn guest(name: &str, peers: bool) -> Vec<u8> {
    let features: &[&str] = if peers { &["--features", "peers"] } else { &[] };
    let mut arguments = vec!["--example", name];
    arguments.extend(features);
    cargo(&crate_directory().join("guests"), &built(), &arguments);
    let path = release().join("examples").join(format!("{name}.wasm"));
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// `libmetes_wasi.a`.
pub(crate) fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        cargo(&crate_directory().join("../../ffi/wasi"), &built(), &[]);
        release().join("libmetes_wasi.a")
    })
}

/// A module of C, with the library or with wasi-libc's own allocator.
pub(crate) fn compiled(sources: &[&str], ours: bool, options: &[&str]) -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a directory");
    let module = directory.path().join("module.wasm");
    let mut command = Command::new(CLANG);
    // What is known of malloc as a builtin says that it leaves errno alone.
    command.args(["--target=wasm32-wasi", "-O2", "-fno-builtin"]);
    for source in sources {
        command.arg(crate_directory().join("tests/c").join(source));
    }
    if ours {
        command.arg(library());
        command.args([
            format!("-Wl,--initial-memory={MEMORY}"),
            format!("-Wl,--max-memory={MEMORY}"),
        ]);
    }
    succeed(command.args(options).arg("-o").arg(&module));
    std::fs::read(&module).expect("what clang has written")
}

/// What programs ask of an allocator, recorded in a module: of C, counting words and growing buffers, and of Rust.
pub(crate) fn recorded() -> &'static [(String, Events)] {
    static RECORDED: OnceLock<Vec<(String, Events)>> = OnceLock::new();
    RECORDED.get_or_init(|| {
        let grow = crate_directory().join("../../examples/programs/grow.c");
        let grow = compiled(&[&grow.display().to_string()], false, &[]);
        let words = compiled(&["words.c"], false, &[]);
        let of_rust = rust("words.rs", &[]);
        let runs: [(&[u8], &[&str]); 5] = [
            (&words, &["words", "3"]),
            (&of_rust, &["words"]),
            (&grow, &["grow", "steps", "300000", "1000", "64"]),
            (&grow, &["grow", "doubles", "50", "300000"]),
            (&grow, &["grow", "comes", "5000", "777"]),
        ];
        let trace = |&(wasm, arguments): &(&[u8], &[&str])| {
            let tuning = Tuning {
                wasm,
                input: Input {
                    arguments: arguments.iter().map(|&word| word.to_owned()).collect(),
                    stdin: include_bytes!("../c/contract.c").repeat(4),
                    stop: None,
                },
                seconds: 0.0,
                configurations: None,
                preference: Preference::Balanced,
                heap_limit: None,
                guarantee: Wanted::default(),
                stop: Arc::default(),
            };
            let directory = tempfile::tempdir().expect("a directory");
            let recorded = tuning.record(directory.path(), &mut |_| {});
            (arguments.join(" "), recorded.expect("a recording").events)
        };
        runs.iter().map(trace).collect()
    })
}

/// A program of Rust, on the standard library's own allocator unless it has another.
pub(crate) fn rust(source: &str, options: &[&str]) -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a directory");
    let module = directory.path().join("module.wasm");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    succeed(
        Command::new(rustc)
            .args(["--edition=2024", "-O", "--target=wasm32-wasip1"])
            .args(options)
            .arg(crate_directory().join("tests/rust").join(source))
            .arg("-o")
            .arg(&module),
    );
    std::fs::read(&module).expect("what rustc has written")
}

/// A module that exports C's allocator and has nothing else.
pub(crate) fn allocator_of_c(ours: bool) -> Vec<u8> {
    compiled(
        &["nothing.c"],
        ours,
        &[
            "-mexec-model=reactor",
            "-Wl,--export=malloc",
            "-Wl,--export=free",
            "-Wl,--export=calloc",
            "-Wl,--export=realloc",
        ],
    )
}
