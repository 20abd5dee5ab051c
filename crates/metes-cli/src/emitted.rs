//! Emitted code on disk.
//!
//! Invariant: nothing is written before the heap has been emitted whole, and
//! each file replaces its predecessor whole.

use std::path::{Path, PathBuf};

use metes_config::{Config, StoreKind};
use metes_explore::emit::{self, Options};

use crate::error::Failure;
use crate::{heap, output};

/// Emits a heap below `directory`; the files written.
pub(crate) fn write(config: &Config, directory: &Path) -> Result<Vec<PathBuf>, Failure> {
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
        metes_heap: checkout(),
        levels: config.level_sizes(),
        increment: config.arena.increment,
        hardened,
    };
    if hardened {
        output::note(
            "only Rust is emitted: the verification of records is in `metes-heap` alone; C programs \
             get it by `metes run` or the C interface",
        );
    }
    let files = emit::emit(&config.heap, &options)?;
    output::directory(directory)?;
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

/// The crate `metes-heap` of the checkout that this program was built from, if
/// it is still there: emitted Rust builds against it, and otherwise against the
/// published version.
fn checkout() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../metes-heap");
    own.canonicalize()
        .ok()
        .filter(|path| path.join("Cargo.toml").is_file())
}

/// Builds the emitted C as a library that replaces malloc.
pub(crate) fn build(directory: &Path) -> Result<PathBuf, Failure> {
    Ok(emit::build_preload(directory)?)
}
