//! The heap that `--heap` names: a spec, a `heap.toml`, or a directory with one.

use std::path::Path;

use metes_config::Config;

use crate::error::Failure;

/// The heap that `text` names. A directory is one that `tune` or `emit` wrote.
pub(crate) fn resolve(text: &str) -> Result<Config, Failure> {
    let path = Path::new(text);
    if path.is_dir() {
        return metes_config::load(path.join("heap.toml")).map_err(Failure::Heap);
    }
    metes_config::resolve(text).map_err(Failure::Heap)
}
