//! Building the emitted C with the system's compiler.
//!
//! Invariant: a library is returned only if the compiler said that it made one.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Why nothing was built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// There is no compiler of that name.
    #[error(
        "the C compiler `{0}` was not found: install one (Debian: `apt install gcc libc6-dev`) or name it in the environment variable CC"
    )]
    NoCompiler(String),
    /// The compiler could not be started.
    #[error("the C compiler `{compiler}` could not be started: {cause}")]
    Start {
        /// What was started.
        compiler: String,
        /// Why it failed.
        cause: std::io::Error,
    },
    /// The compiler refused the code.
    #[error("the C compiler `{compiler}` failed on {directory}: {output}")]
    Refused {
        /// What was started.
        compiler: String,
        /// Where the code lies.
        directory: String,
        /// What it wrote to its standard error.
        output: String,
    },
}

/// Compiles `c/preload.c` and `c/heap.c` below `directory`, where [`emit`]'s
/// files were written, to `c/libheap.so`; returns its path. The compiler is
/// `$CC` or `cc`.
///
/// [`emit`]: super::emit
///
/// # Errors
/// [`BuildError`] when there is no compiler or it refuses.
pub fn build_preload(directory: &Path) -> Result<PathBuf, BuildError> {
    build_preload_with(directory, &std::env::var("CC").unwrap_or_default())
}

/// As [`build_preload`], with a compiler of the caller's choice; it may carry
/// flags, as `$CC` may, and is `cc` when empty.
///
/// # Errors
/// As [`build_preload`].
pub fn build_preload_with(directory: &Path, compiler: &str) -> Result<PathBuf, BuildError> {
    let library = directory.join("c/libheap.so");
    let sources = [directory.join("c/preload.c"), directory.join("c/heap.c")];
    build(&library, &sources, directory, compiler)?;
    Ok(library)
}

/// That the compiler of [`build_preload`] makes libraries of C, on a small one
/// in `directory`, of which nothing stays. A tenth of a second; better known
/// before a search than after it.
///
/// # Errors
/// As [`build_preload`], and [`BuildError::Start`] where `directory` cannot be
/// written to.
pub fn try_compiler(directory: &Path) -> Result<(), BuildError> {
    let compiler = std::env::var("CC").unwrap_or_default();
    let (source, library) = (directory.join("try.c"), directory.join("try.so"));
    let text = "#include <pthread.h>\n#include <stdlib.h>\nvoid *try(void) { return malloc(1); }\n";
    let written = std::fs::write(&source, text).map_err(|cause| BuildError::Start {
        compiler: compiler.clone(),
        cause,
    });
    let sources = [source.clone()];
    let built = written.and_then(|()| build(&library, &sources, directory, &compiler));
    for file in [source, library] {
        // Not there, if it was not built.
        let _ = std::fs::remove_file(file);
    }
    built
}

/// Compiles one file of C to a program, with the compiler of [`build_preload`].
///
/// # Errors
/// As [`build_preload`].
pub fn build_program(source: &Path, program: &Path) -> Result<(), BuildError> {
    let compiler = std::env::var("CC").unwrap_or_default();
    let directory = source.parent().unwrap_or(source);
    compile(&[], program, &[source.to_owned()], directory, &compiler)
}

fn build(
    library: &Path,
    sources: &[PathBuf],
    directory: &Path,
    compiler: &str,
) -> Result<(), BuildError> {
    compile(&["-shared", "-fPIC"], library, sources, directory, compiler)
}

fn compile(
    kind: &[&str],
    output: &Path,
    sources: &[PathBuf],
    directory: &Path,
    compiler: &str,
) -> Result<(), BuildError> {
    let mut words = compiler.split_whitespace();
    let compiler = words.next().unwrap_or("cc").to_string();
    let mut command = Command::new(&compiler);
    command
        .args(words)
        .args(["-std=c99", "-O2"])
        .args(kind)
        .arg("-o")
        .arg(output)
        .args(sources)
        // What is preloaded is not to preload itself into its compiler.
        .env_remove("LD_PRELOAD");
    match command.output() {
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
            Err(BuildError::NoCompiler(compiler))
        }
        Err(cause) => Err(BuildError::Start { compiler, cause }),
        Ok(output) if !output.status.success() => Err(BuildError::Refused {
            compiler,
            directory: directory.display().to_string(),
            output: String::from_utf8_lossy(&output.stderr).trim().to_string(),
        }),
        Ok(_) => Ok(()),
    }
}
