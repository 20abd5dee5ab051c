//! The subjects that there are, and those that could be.
//!
//! *Invariant:* a subject differs from the one that it is compared with in one thing.

use std::ffi::OsString;
use std::path::Path;

use super::{Container, Launch, Layer, Subject};
use crate::engine::Mode;
use crate::programs::Build;

/// glibc neither maps large blocks apart nor gives memory back: what a program has had stays mapped.
const RETAINED: &str =
    "glibc.malloc.mmap_threshold=4294967295:glibc.malloc.trim_threshold=4294967295";

fn native() -> Subject {
    Subject {
        name: "native",
        engine: "native",
        mode: "",
        layer: Layer::Process,
        start: "cached",
        allocator: "glibc",
        vectors: "128 bits",
        start_only: false,
        build: Build::Native,
        launch: Launch::Plain(Vec::new()),
        absent: None,
    }
}

fn cranelift() -> Subject {
    Subject {
        name: "cranelift",
        engine: "wasmtime",
        mode: "Cranelift",
        layer: Layer::Sandbox,
        start: "cold",
        allocator: "dlmalloc",
        vectors: "none",
        build: Build::Wasm,
        launch: Launch::Ours(Mode::Cranelift),
        ..native()
    }
}

fn v8() -> Subject {
    Subject {
        name: "v8",
        engine: "V8",
        mode: "Liftoff, then TurboFan",
        launch: Launch::Node(&[]),
        ..cranelift()
    }
}

fn container() -> Subject {
    Subject {
        name: "crun",
        mode: "crun",
        layer: Layer::Runtime,
        allocator: "musl",
        build: Build::Musl,
        launch: Launch::Container(Container::Runtime("crun")),
        ..native()
    }
}

/// wasmer, whose compiler is a second Cranelift: its runner has a workspace of its own.
fn wasmer(name: &'static str, words: &'static str, mode: &'static str) -> Subject {
    Subject {
        name,
        engine: "wasmer",
        mode: words,
        launch: Launch::Apart {
            program: "metes-edge-wasmer",
            mode,
        },
        ..cranelift()
    }
}

/// A runtime's command line on the path.
fn outside(
    name: &'static str,
    engine: &'static str,
    mode: &'static str,
    program: &'static str,
    before: &'static [&'static str],
    behind: &'static [&'static str],
) -> Subject {
    Subject {
        name,
        engine,
        mode,
        launch: Launch::Command {
            program,
            before,
            behind,
        },
        ..cranelift()
    }
}

/// All subjects, with native code first; `preload` is the library that serves malloc from a heap of Metes. None has been
/// tried yet.
#[must_use]
pub fn all(preload: Option<&Path>) -> Vec<Subject> {
    let preload = match preload {
        Some(path) => (vec![("LD_PRELOAD", path.as_os_str().to_owned())], None),
        None => {
            let why = "libmetes_preload.so is not there: build metes-preload";
            (Vec::new(), Some(why.to_owned()))
        }
    };
    let tunables = OsString::from(RETAINED);
    let mut all = vec![
        native(),
        Subject {
            name: "native-retained",
            allocator: "glibc, retained",
            launch: Launch::Plain(vec![("GLIBC_TUNABLES", tunables)]),
            ..native()
        },
        Subject {
            name: "native-musl",
            allocator: "musl",
            build: Build::Musl,
            ..native()
        },
        Subject {
            name: "native-metes",
            allocator: "Metes, TLSF",
            launch: Launch::Plain(preload.0),
            absent: preload.1,
            ..native()
        },
        Subject {
            name: "native-scalar",
            vectors: "none",
            build: Build::Scalar,
            ..native()
        },
        Subject {
            name: "native-static",
            build: Build::Static,
            start_only: true,
            ..native()
        },
    ];
    all.extend(containers());
    all.extend(sandboxes());
    all.extend(commands());
    all
}

fn containers() -> Vec<Subject> {
    let namespaces = |name, around| Subject {
        name,
        mode: name,
        layer: Layer::Namespaces,
        start_only: true,
        launch: Launch::Container(around),
        ..container()
    };
    let engine = |name, around| Subject {
        name,
        mode: name,
        layer: Layer::Engine,
        launch: Launch::Container(around),
        ..container()
    };
    vec![
        namespaces("unshare", Container::Unshare),
        namespaces("bwrap", Container::Bubblewrap),
        container(),
        Subject {
            name: "runc",
            mode: "runc",
            start_only: true,
            launch: Launch::Container(Container::Runtime("runc")),
            ..container()
        },
        Subject {
            start_only: true,
            ..engine("podman", Container::Podman)
        },
        engine("docker", Container::Docker),
    ]
}

fn sandboxes() -> Vec<Subject> {
    let simd = |name, subject: Subject| Subject {
        name,
        vectors: "128 bits",
        build: Build::WasmSimd,
        ..subject
    };
    vec![
        Subject {
            name: "floor",
            mode: "the runner alone",
            start_only: true,
            launch: Launch::Floor,
            ..cranelift()
        },
        cranelift(),
        simd("cranelift-simd", cranelift()),
        Subject {
            name: "cranelift-heap",
            allocator: "metes-heap, TLSF",
            build: Build::WasmHeap,
            ..cranelift()
        },
        Subject {
            name: "winch",
            mode: "Winch",
            launch: Launch::Ours(Mode::Winch),
            ..cranelift()
        },
        Subject {
            name: "ahead",
            mode: "Cranelift, ahead of time",
            start: "cached",
            launch: Launch::Ours(Mode::Ahead),
            ..cranelift()
        },
        Subject {
            name: "wasmi",
            engine: "wasmi",
            mode: "interpreter",
            launch: Launch::Ours(Mode::Interpreter),
            ..cranelift()
        },
        wasmer("wasmer-cranelift", "Cranelift", "cranelift"),
        wasmer("wasmer-singlepass", "Singlepass", "singlepass"),
        v8(),
        simd("v8-simd", v8()),
    ]
}

/// Command lines of runtimes, where somebody has installed them.
fn commands() -> Vec<Subject> {
    vec![
        outside(
            "wasmtime-cli",
            "wasmtime",
            "its command, uncached",
            "wasmtime",
            &["run", "-C", "cache=n"],
            &[],
        ),
        outside(
            "wasmer-cli",
            "wasmer",
            "its command, Cranelift",
            "wasmer",
            &["run", "--cranelift", "--disable-cache"],
            &["--"],
        ),
        outside(
            "wamr-interpreter",
            "WAMR",
            "interpreter",
            "iwasm",
            &["--interp"],
            &[],
        ),
        outside(
            "wamr-fast",
            "WAMR",
            "Fast JIT",
            "iwasm",
            &["--fast-jit"],
            &[],
        ),
        outside(
            "wamr-llvm",
            "WAMR",
            "LLVM JIT",
            "iwasm",
            &["--llvm-jit"],
            &[],
        ),
        outside(
            "wamr-tiers",
            "WAMR",
            "multi-tier JIT",
            "iwasm",
            &["--multi-tier-jit"],
            &[],
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_differ_and_the_first_is_native() {
        let all = all(None);
        assert_eq!(all[0].name, "native");
        let names: BTreeSet<&str> = all.iter().map(|subject| subject.name).collect();
        assert_eq!(names.len(), all.len());
        let absent: Vec<&str> = all
            .iter()
            .filter(|subject| subject.absent.is_some())
            .map(|subject| subject.name)
            .collect();
        assert_eq!(absent, ["native-metes"]);
    }

    #[test]
    fn vectors_and_code_are_those_of_the_build() {
        for subject in all(None) {
            let vectors = !matches!(subject.build, Build::Scalar | Build::Wasm | Build::WasmHeap);
            assert_eq!(subject.vectors == "128 bits", vectors, "{}", subject.name);
            assert_eq!(
                subject.is_wasm(),
                subject.layer == Layer::Sandbox,
                "{}",
                subject.name
            );
        }
    }
}
