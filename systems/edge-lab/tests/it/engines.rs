//! Every engine beside native code, bit by bit.

use std::path::Path;
use std::process::Command;

use metes_edge_lab::engine::{EngineError, Mode, compiled, load};
use metes_edge_lab::{Build, KERNELS, Own, Printed, Size, Suite, process};

/// What each kernel gives by `run`, which answers what the program printed.
fn compare(what: &str, size: Size, run: impl Fn(&[String]) -> String) {
    for kernel in KERNELS {
        let words = [kernel.name, size.name(), "2"].map(str::to_owned);
        let printed = run(&words);
        let printed =
            Printed::read(&printed).unwrap_or_else(|| panic!("{what}: {}: {printed}", kernel.name));
        assert_eq!(
            printed.checksum,
            kernel.run(size),
            "{what}: {} {size}",
            kernel.name
        );
        assert_eq!(printed.times.len(), 2);
    }
}

fn built(build: Build, directory: &Path) -> std::path::PathBuf {
    Own.program(build, "gemm", Size::Mini, directory)
        .expect("a program")
}

#[test]
fn engines_of_ours_compute_what_native_code_computes() {
    let directory = tempfile::tempdir().expect("a directory");
    for build in [Build::Wasm, Build::WasmSimd, Build::WasmHeap] {
        let bytes = std::fs::read(built(build, directory.path())).expect("a module");
        for mode in Mode::ALL {
            if mode == Mode::Interpreter && build == Build::WasmSimd {
                // wasmi is built without vectors.
                // SAFETY: no code is given, but a module.
                assert!(unsafe { load(mode, &bytes) }.is_err());
                continue;
            }
            let given = match mode {
                Mode::Ahead => compiled(&bytes).expect("code"),
                _ => bytes.clone(),
            };
            // SAFETY: what mode `ahead` is given has just been compiled.
            let loaded = unsafe { load(mode, &given) }.expect("a module of ours");
            compare(&format!("{} {build:?}", mode.name()), Size::Mini, |words| {
                let ended = loaded.run(words).expect("it runs");
                assert_eq!(ended.status, 0);
                String::from_utf8(ended.output).expect("text")
            });
        }
    }
}

#[test]
fn programs_of_this_machine_compute_what_the_library_computes() {
    let directory = tempfile::tempdir().expect("a directory");
    for build in [Build::Native, Build::Scalar, Build::Musl, Build::Static] {
        let program = built(build, directory.path());
        for size in [Size::Mini, Size::Small] {
            compare(&format!("{build:?}"), size, |words| {
                process::run(Command::new(&program).args(words))
                    .expect("it runs")
                    .output
            });
        }
    }
}

#[test]
fn wrong_arguments_and_modules_are_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let program = built(Build::Native, directory.path());
    let status = |words: &[&str]| {
        process::run(Command::new(&program).args(words))
            .expect("it runs")
            .status
    };
    for words in [
        &["gemm", "mini"][..],
        &["gemm", "tiny", "1"],
        &["gemm", "mini", "one"],
        &["none", "mini", "1"],
    ] {
        assert_eq!(status(words), 2, "{words:?}");
    }
    for mode in [Mode::Cranelift, Mode::Winch, Mode::Interpreter] {
        // SAFETY: no code is given, but modules.
        let refused = unsafe { load(mode, b"no module") }.err();
        assert!(
            matches!(refused, Some(EngineError::Refused { .. })),
            "{}",
            mode.name()
        );
        // The smallest module there is has no `_start`.
        // SAFETY: as above.
        let empty = unsafe { load(mode, b"\0asm\x01\0\0\0") }.expect("a module");
        assert!(
            matches!(empty.run(&[]), Err(EngineError::Stopped(_))),
            "{}",
            mode.name()
        );
    }
    let runner = super::runner();
    let status = |words: &[&str]| {
        process::run(Command::new(&runner.program).args(words))
            .expect("it runs")
            .status
    };
    assert_eq!(status(&["floor"]), 0);
    for words in [
        &[][..],
        &["run", "none", "x"],
        &["run", "winch", "/none/such"],
        &["warm", "winch", "x", "many"],
    ] {
        assert_eq!(status(words), 2, "{words:?}");
    }
}
