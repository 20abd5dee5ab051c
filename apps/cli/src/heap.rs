//! The heap that `--heap` names: a spec, a `heap.toml`, or a directory with one.

use std::path::Path;

use metes_config::{AnyHeap, Config};

use crate::error::Failure;

/// The heap that `text` names. A directory is one that `tune` or `emit` wrote.
pub(crate) fn resolve(text: &str) -> Result<Config, Failure> {
    let path = Path::new(text);
    if path.is_dir() {
        return metes_config::load(path.join("heap.toml")).map_err(Failure::Heap);
    }
    metes_config::resolve(text).map_err(Failure::Heap)
}

/// The heap that `text` names, as it serves a program on this host: large blocks are mapped unless
/// the spec says otherwise. A `heap.toml` means what it says.
pub(crate) fn resolve_on_host(text: &str) -> Result<Config, Failure> {
    match Path::new(text).is_dir() {
        true => resolve(text),
        false => metes_config::resolve_on_host(text).map_err(Failure::Heap),
    }
}

/// The heap that `text` names, also one of handles.
pub(crate) fn named(text: &str) -> Result<AnyHeap, Failure> {
    match metes_config::handle_heap(text) {
        Some(heap) => heap.map(AnyHeap::Handles).map_err(Failure::Heap),
        None => resolve(text).map(|config| AnyHeap::Pointers(Box::new(config))),
    }
}
