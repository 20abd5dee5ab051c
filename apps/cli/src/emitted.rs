//! Emitted code on disk.
//!
//! Invariant: nothing is written before the heap has been emitted whole, and
//! what is in a directory is replaced whole or not at all.

use std::path::{Path, PathBuf};

use metes_config::{Config, StoreKind};
use metes_emit::{self as emit, EmittedFile, Options};

use crate::error::Failure;
use crate::results::{Kind, Results};
use crate::{heap, output};

/// What building adds to the emitted files.
pub(crate) const LIBRARY: &str = "c/libheap.so";

/// Emits a heap, on no disk yet.
pub(crate) fn emit(config: &Config) -> Result<Vec<EmittedFile>, Failure> {
    heap::need_addresses(config)?;
    let hardened = config.store == StoreKind::Hardened;
    if !hardened && config.store != StoreKind::Tagged {
        return Err(Failure::input(format!(
            "{} keeps its records outside the memory, and code is emitted for heaps with boundary \
             tags only: leave out the `store`",
            config.name()
        )));
    }
    if config.arena.reserve != metes_config::Arena::default().reserve {
        output::note(
            "`reserve` is not emitted: the emitted library reserves 64 GiB of addresses for each \
             pool; `metes run` follows it",
        );
    }
    let options = Options {
        heap_toml: config.to_toml(),
        levels: config.level_sizes(),
        increment: config.arena.increment,
        hardened,
        mapped: config.arena.mapped,
    };
    if hardened {
        if config.arena.mapped.is_some() {
            output::note(
                "`mapped` is not emitted: the emitted Rust has its memory from its caller and maps \
                 nothing; `metes run` follows it",
            );
        }
        output::note(
            "only Rust is emitted: the verification of records is in `metes-heap` alone; C programs \
             get it by `metes run` or the C interface",
        );
    }
    Ok(emit::emit(&config.heap, &options)?)
}

/// The names of emitted files, and of the library.
pub(crate) fn names(files: &[EmittedFile]) -> Vec<&str> {
    let names = files.iter().filter_map(|file| file.path.to_str());
    names.chain([LIBRARY]).collect()
}

/// Writes emitted files below a directory; their paths.
pub(crate) fn write(files: &[EmittedFile], directory: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut paths = Vec::with_capacity(files.len());
    for file in files {
        let path = directory.join(&file.path);
        if let Some(parent) = path.parent() {
            output::directory(parent)?;
        }
        output::write_file(&path, file.contents.as_bytes())?;
        paths.push(path);
    }
    Ok(paths)
}

/// Emits a heap into a directory of its own, and builds it if asked to; the
/// files there.
pub(crate) fn into(config: &Config, place: &Path, build: bool) -> Result<Vec<PathBuf>, Failure> {
    let files = emit(config)?;
    let kind = Kind {
        verb: "emit",
        files: &names(&files),
    };
    let results = Results::open(place, kind)?;
    let mut paths = write(&files, results.gathered())?;
    if build {
        paths.push(self::build(results.gathered())?);
    }
    let paths = paths.iter().map(|path| results.shown(path)).collect();
    results.replace()?;
    Ok(paths)
}

/// That there is a compiler which makes libraries, before hours are spent.
pub(crate) fn need_compiler(directory: &Path) -> Result<(), Failure> {
    Ok(emit::try_compiler(directory)?)
}

/// Builds the emitted C as a library that replaces malloc.
pub(crate) fn build(directory: &Path) -> Result<PathBuf, Failure> {
    Ok(emit::build_preload(directory)?)
}
