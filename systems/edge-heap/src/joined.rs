//! A chosen heap as a module that can be joined to a program: its emitted C, compiled.
//!
//! Invariant: the module takes whole pages from where it is said to begin, and asks for none.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::outline::exported_constant;
use crate::splice::PAGE;

/// Compilers that are tried, in this order, where CC_WASM names none.
const COMPILERS: [&str; 2] = ["clang-14", "clang"];
/// The environment variable that names the compiler.
const COMPILER: &str = "CC_WASM";
/// The heap, below the directory of the emitted files.
pub const HEAP: &str = "c/heap.wasm";
/// Bytes of the heap's own stack.
const STACK: u64 = 4096;
/// Where pools begin is a multiple of this, whatever the heap aligns its first block to.
pub(crate) const BEGINNING: u64 = 4096;

/// Why there is no module of a heap.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No compiler, or none for this target.
    #[error(
        "no compiler makes WebAssembly here ({0}): install clang and lld (Debian: clang-14 lld-14), or name one in the \
         environment variable CC_WASM"
    )]
    NoCompiler(String),
    /// It does not compile.
    #[error("`{compiler}` does not compile the emitted heap for WebAssembly: {said}")]
    Compile {
        /// What was started.
        compiler: String,
        /// The beginning of what it said.
        said: String,
    },
    /// The result cannot be read.
    #[error("the compiled heap cannot be read: {0}")]
    Unreadable(String),
}

/// The compiler, once it has shown that it makes modules.
///
/// # Errors
/// [`BuildError::NoCompiler`].
pub fn need_compiler() -> Result<String, BuildError> {
    let named = std::env::var(COMPILER).ok().filter(|name| !name.is_empty());
    let tried = match &named {
        Some(name) => vec![name.as_str()],
        None => COMPILERS.to_vec(),
    };
    let mut said = Vec::new();
    for compiler in tried {
        match Command::new(compiler).arg("--print-targets").output() {
            Ok(output) if String::from_utf8_lossy(&output.stdout).contains("wasm32") => {
                return Ok(compiler.to_owned());
            }
            Ok(_) => said.push(format!("{compiler} does not know the target wasm32")),
            Err(error) => said.push(format!("{compiler}: {error}")),
        }
    }
    Err(BuildError::NoCompiler(said.join(", ")))
}

/// A heap as a module.
#[derive(Debug)]
pub struct Built {
    /// The module.
    pub wasm: Vec<u8>,
    /// Pages that it takes, its pool included.
    pub pages: u64,
    /// Where it lies.
    pub path: PathBuf,
}

/// Compiles the heap that was emitted below `directory` (in `c`), with pools of `pool` bytes, to lie behind
/// `first_page` pages.
///
/// # Errors
/// [`BuildError`].
pub fn build(directory: &Path, first_page: u64, pool: u64) -> Result<Built, BuildError> {
    let compiler = need_compiler()?;
    let path = directory.join(HEAP);
    let output = Command::new(&compiler)
        .args([
            "--target=wasm32",
            "-std=c99",
            "-O2",
            "-ffreestanding",
            "-nostdlib",
        ])
        .args(["-mbulk-memory", "-DNDEBUG", "-DWASI_JOINED"])
        .args([directory.join("c/wasi.c"), directory.join("c/heap.c")])
        .args([
            "-Wl,--no-entry",
            "-Wl,--import-memory",
            "-Wl,--export=__heap_base",
        ])
        .arg(format!("-Wl,--global-base={}", first_page * PAGE))
        .arg(format!("-Wl,-z,stack-size={STACK}"))
        .arg("-o")
        .arg(&path)
        .output()
        .map_err(|error| BuildError::NoCompiler(format!("{compiler}: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said: Vec<&str> = said.lines().take(12).collect();
        return Err(BuildError::Compile {
            compiler,
            said: said.join("\n"),
        });
    }
    let wasm = std::fs::read(&path).map_err(|error| BuildError::Unreadable(error.to_string()))?;
    let base = exported_constant(&wasm, "__heap_base")
        .ok_or_else(|| BuildError::Unreadable("it has no __heap_base".to_owned()))?;
    let end = u64::from(base).next_multiple_of(BEGINNING) + pool;
    Ok(Built {
        pages: end.div_ceil(PAGE) - first_page,
        wasm,
        path,
    })
}
