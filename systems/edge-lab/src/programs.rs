//! The kernels as programs: built by the user's own compiler, for native code and WebAssembly, from one source.
//!
//! *Invariant:* two builds of one suite differ in nothing but what their names say.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use metes_edge_kernels::{KERNELS, SOURCES, Size};

use crate::process;
use crate::suite::Suite;

/// What a program is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Build {
    /// This machine, with its C library.
    Native,
    /// The same, without vector code.
    Scalar,
    /// This machine, without any library beside it: musl's inside.
    Musl,
    /// This machine, without any library beside it: the machine's own inside.
    Static,
    /// WebAssembly.
    Wasm,
    /// WebAssembly with 128-bit vectors.
    WasmSimd,
    /// WebAssembly with `metes-heap` as its allocator.
    WasmHeap,
}

/// Memory of the heap inside a module.
const HEAP_BYTES: u64 = 96 << 20;

impl Build {
    /// All.
    pub const ALL: [Build; 7] = [
        Build::Native,
        Build::Scalar,
        Build::Musl,
        Build::Static,
        Build::Wasm,
        Build::WasmSimd,
        Build::WasmHeap,
    ];

    fn file(self) -> &'static str {
        match self {
            Build::Native => "native",
            Build::Scalar => "scalar",
            Build::Musl => "musl",
            Build::Static => "static",
            Build::Wasm => "plain.wasm",
            Build::WasmSimd => "simd.wasm",
            Build::WasmHeap => "heap.wasm",
        }
    }

    /// What it is built for, where that is not this machine as it is.
    fn target(self) -> Option<&'static str> {
        match self {
            Build::Native | Build::Scalar | Build::Static => None,
            Build::Musl => Some(MUSL),
            Build::Wasm | Build::WasmSimd | Build::WasmHeap => Some("wasm32-wasip1"),
        }
    }

    fn flags(self) -> &'static [&'static str] {
        match self {
            Build::Native | Build::Musl | Build::Wasm | Build::WasmHeap => &[],
            Build::Scalar => &["-C", "no-vectorize-loops", "-C", "no-vectorize-slp"],
            Build::Static => &["-C", "target-feature=+crt-static"],
            Build::WasmSimd => &["-C", "target-feature=+simd128"],
        }
    }
}

#[cfg(target_arch = "aarch64")]
const MUSL: &str = "aarch64-unknown-linux-musl";
#[cfg(not(target_arch = "aarch64"))]
const MUSL: &str = "x86_64-unknown-linux-musl";

/// Why there is no program.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A compiler did not do its work.
    #[error("{compiler} cannot build it: {why}")]
    Compiler {
        /// Which.
        compiler: String,
        /// What it says.
        why: String,
    },
    /// A file that the system does not give.
    #[error("{path}: {source}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The source of a part is not there.
    #[error(
        "the source of metes-heap is not there: build Metes from its repository, and leave that in its place"
    )]
    NoHeap,
    /// The suite has no such build.
    #[error("a suite in C is not built so")]
    NotInC,
}

fn file_error(path: &Path) -> impl FnOnce(io::Error) -> BuildError + '_ {
    move |source| BuildError::File {
        path: path.to_owned(),
        source,
    }
}

/// Runs a compiler to its end.
pub(crate) fn compile(command: &mut Command) -> Result<(), BuildError> {
    let compiler = command.get_program().to_string_lossy().into_owned();
    match process::run(command) {
        Ok(run) if run.status == 0 => Ok(()),
        Ok(run) => {
            // The first error says more than the last line, which counts them.
            let first = run.complaints.lines().find(|line| line.contains("error"));
            let why = first.map_or_else(|| run.complaint(), |line| line.trim().to_owned());
            Err(BuildError::Compiler { compiler, why })
        }
        Err(error) => Err(BuildError::Compiler {
            compiler,
            why: error.to_string(),
        }),
    }
}

/// The kernels of Metes, in Rust.
#[derive(Debug, Default)]
pub struct Own;

impl Own {
    fn compiler() -> Command {
        let compiler = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let mut command = Command::new(compiler);
        command.args(["--edition", "2024", "--cap-lints", "allow"]);
        command.args([
            "-C",
            "opt-level=3",
            "-C",
            "panic=abort",
            "-C",
            "codegen-units=1",
        ]);
        command.args(["-C", "strip=symbols"]);
        command
    }

    /// The root of the program: that of the kernels, and for a module with a heap of ours the heap.
    fn root(build: Build, root: &str) -> String {
        match build {
            Build::WasmHeap => format!(
                "{root}\n#[global_allocator]\n\
                 static HEAP: metes_heap::global::StaticHeap<metes_heap::lock::Spin, metes_heap::Tlsf<16>, {HEAP_BYTES}, \
                 false> = metes_heap::global::StaticHeap::new(metes_heap::lock::Spin::new(), metes_heap::Tlsf::new());\n"
            ),
            _ => root.to_owned(),
        }
    }

    /// `metes-heap` for WebAssembly, from its source beside ours.
    fn heap(directory: &Path) -> Result<PathBuf, BuildError> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../core/heap/src/lib.rs");
        if !source.is_file() {
            return Err(BuildError::NoHeap);
        }
        let library = directory.join("libmetes_heap.rlib");
        if !library.is_file() {
            let mut command = Own::compiler();
            command.args(["--crate-name", "metes_heap", "--crate-type", "rlib"]);
            command.args(["--target", "wasm32-wasip1", "-o"]);
            compile(command.arg(&library).arg(source))?;
        }
        Ok(library)
    }
}

impl Suite for Own {
    fn name(&self) -> String {
        "kernels of Metes".to_owned()
    }

    fn kernels(&self) -> Vec<String> {
        KERNELS
            .iter()
            .map(|kernel| kernel.name.to_owned())
            .collect()
    }

    fn checksum(&self, kernel: &str, size: Size) -> Option<u64> {
        metes_edge_kernels::kernel(kernel).map(|kernel| kernel.run(size))
    }

    fn program(
        &self,
        build: Build,
        _: &str,
        _: Size,
        directory: &Path,
    ) -> Result<PathBuf, BuildError> {
        let program = directory.join(build.file());
        if program.is_file() {
            return Ok(program);
        }
        let sources = directory.join(format!("{}.sources", build.file()));
        fs::create_dir_all(&sources).map_err(file_error(&sources))?;
        for (name, text) in SOURCES {
            let text = match name {
                "lib.rs" => Own::root(build, text),
                _ => text.to_owned(),
            };
            let path = sources.join(name);
            fs::write(&path, text).map_err(file_error(&path))?;
        }
        let mut command = Own::compiler();
        command.args(["--crate-name", "kernel", "--crate-type", "bin"]);
        if let Some(target) = build.target() {
            command.args(["--target", target]);
        }
        command.args(build.flags());
        if build == Build::WasmHeap {
            let library = Own::heap(directory)?;
            command.arg("--extern");
            command.arg(format!("metes_heap={}", library.display()));
        }
        command.arg("-o").arg(&program).arg(sources.join("lib.rs"));
        compile(&mut command).map(|()| program)
    }
}
