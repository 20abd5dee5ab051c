//! A configuration as code, on disk and built.
//!
//! Invariant: nothing is written before the heap has been emitted whole, and
//! each file is replaced whole or not at all.

use std::path::{Path, PathBuf};

use metes_config::{Config, StoreKind};
use metes_emit::{EmittedFile, Home, Options};
use metes_explore::write_whole;

use crate::error::{Error, FileError};

/// What building adds to the emitted files.
pub const LIBRARY: &str = "c/libheap.so";

/// The code of a heap, on no disk yet.
#[derive(Clone, Debug)]
pub struct Emission {
    /// The files.
    pub files: Vec<EmittedFile>,
    /// What of the configuration they do not follow, a sentence each.
    pub remarks: Vec<&'static str>,
}

/// Refuses a heap whose blocks move under a program that knows addresses only.
///
/// # Errors
/// [`Error::Input`] for such a heap.
pub fn need_addresses(config: &Config) -> Result<(), Error> {
    match config.store {
        StoreKind::Moving(_) => Err(Error::Input(format!(
            "{} moves blocks, and an unmodified program holds their addresses: say `moving=no` \
             (compact-fit:moving=no), or write the program against handles \
             (metes_heap::compact::CompactFit); `metes replay` tells what memory it would take",
            config.name()
        ))),
        _ => Ok(()),
    }
}

/// Emits a heap, on no disk yet.
///
/// # Errors
/// [`Error::Input`] for a heap that keeps no boundary tags, [`Error::Emit`] for one that is none.
pub fn emit(config: &Config) -> Result<Emission, Error> {
    emit_for(config, Home::Host)
}

/// Emits a heap whose C replaces malloc elsewhere than on a host, on no disk yet.
///
/// # Errors
/// As [`emit`].
pub fn emit_for(config: &Config, home: Home) -> Result<Emission, Error> {
    need_addresses(config)?;
    let hardened = config.store == StoreKind::Hardened;
    if !hardened && config.store != StoreKind::Tagged {
        return Err(Error::Input(format!(
            "{} keeps its records outside the memory, and code is emitted for heaps with boundary \
             tags only: leave out the `store`",
            config.name()
        )));
    }
    let mut remarks = Vec::new();
    if config.arena.reserve != metes_config::Arena::default().reserve {
        remarks.push(
            "`reserve` is not emitted: the emitted library reserves 64 GiB of addresses for each \
             pool; `metes run` follows it",
        );
    }
    if config.arena.pages.is_some() {
        remarks.push(
            "`pages` is not emitted: the emitted library gives pages back at once; `metes run` follows \
             it, and decides the same",
        );
    }
    let options = Options {
        heap_toml: config.to_toml(),
        levels: config.level_sizes(),
        increment: config.arena.increment,
        hardened,
        mapped: config.arena.mapped,
        home,
    };
    if hardened {
        if config.arena.mapped.is_some() {
            remarks.push(
                "`mapped` is not emitted: the emitted Rust has its memory from its caller and maps \
                 nothing; `metes run` follows it",
            );
        }
        remarks.push(
            "only Rust is emitted: the verification of records is in `metes-heap` alone; C programs \
             get it by `metes run` or the C interface",
        );
    }
    let files = metes_emit::emit(&config.heap, &options)?;
    Ok(Emission { files, remarks })
}

/// The names of emitted files, and of the library.
pub fn names(files: &[EmittedFile]) -> Vec<&str> {
    let names = files.iter().filter_map(|file| file.path.to_str());
    names.chain([LIBRARY]).collect()
}

/// Writes emitted files below a directory; their paths.
///
/// # Errors
/// [`Error::File`] and [`Error::Output`] when that cannot be written.
pub fn write(files: &[EmittedFile], directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let written = files.iter().map(|file| {
        let path = directory.join(&file.path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)
                .map_err(|error| FileError::new("make directory", parent, error))?;
        }
        write_whole(&path, file.contents.as_bytes())?;
        Ok(path)
    });
    written.collect()
}

/// That there is a compiler which makes libraries, before hours are spent.
///
/// # Errors
/// [`Error::Build`] where there is none.
pub fn need_compiler(directory: &Path) -> Result<(), Error> {
    Ok(metes_emit::try_compiler(directory)?)
}

/// Builds the emitted C as a library that replaces malloc; its path.
///
/// # Errors
/// [`Error::Build`] where the compiler does not.
pub fn build(directory: &Path) -> Result<PathBuf, Error> {
    Ok(metes_emit::build_preload(directory)?)
}
