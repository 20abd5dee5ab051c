//! Where the preloaded libraries of Metes lie.
//!
//! Invariant: a library is looked for in stated places only, in their order;
//! the error lists them.

use std::path::PathBuf;

use crate::error::Failure;

/// Directories, separated by colons, that are searched first.
pub(crate) const PATH_VARIABLE: &str = "METES_LIBRARY_PATH";

/// The library that records.
pub(crate) fn recorder() -> Result<PathBuf, Failure> {
    find("libmetes_record.so", "metes-record")
}

/// The plug-in that counts accesses.
pub(crate) fn access_counter() -> Result<PathBuf, Failure> {
    find("libmetes_access.so", "metes-access")
}

/// The library that serves malloc from a heap described at run time.
pub(crate) fn preload() -> Result<PathBuf, Failure> {
    find("libmetes_preload.so", "metes-preload")
}

fn find(file: &str, package: &str) -> Result<PathBuf, Failure> {
    let mut places: Vec<PathBuf> = std::env::var_os(PATH_VARIABLE)
        .map(|paths| std::env::split_paths(&paths).collect())
        .unwrap_or_default();
    let own = std::env::current_exe().ok();
    if let Some(beside) = own.as_deref().and_then(|own| own.parent()) {
        places.push(beside.to_owned());
        places.push(beside.join("../lib/metes"));
        places.push(beside.join("deps"));
        // A test or an example lies one directory deeper.
        places.push(beside.join(".."));
    }
    let found = places
        .iter()
        .map(|place| place.join(file))
        .find(|path| path.is_file());
    found.ok_or_else(|| {
        let places: Vec<String> = places
            .iter()
            .map(|place| place.display().to_string())
            .collect();
        Failure::input(format!(
            "library {file} is in none of {}: build it with `cargo build --release -p {package}`, \
             or name its directory in {PATH_VARIABLE}",
            places.join(", ")
        ))
    })
}
