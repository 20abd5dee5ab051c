//! The lock of a directory of results.
//!
//! Invariant: the system releases it however its owner ends.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::Failure;

/// Where a directory itself cannot be locked (NFS), this file in it is.
const FILE: &str = ".metes.lock";
/// Tries for a directory that others remove as soon as it is made.
const TRIES: usize = 20;

/// Held while it lives. Programs that are started do not inherit it.
#[derive(Debug)]
pub(super) struct Lock(#[allow(dead_code, reason = "open as long as the lock")] File);

impl Lock {
    /// Takes the lock of a directory that is there.
    ///
    /// # Errors
    /// Another Metes has it.
    pub(super) fn take(place: &Path) -> Result<Lock, Failure> {
        let failed = |error| Failure::io("open directory", place, error);
        for _ in 0..TRIES {
            let directory = match File::open(place) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    fs::create_dir_all(place).map_err(failed)?;
                    continue;
                }
                opened => opened.map_err(failed)?,
            };
            match directory.try_lock() {
                // Another one may have removed it, empty, before the lock.
                Ok(()) if is_at(&directory, place) => return Ok(Lock(directory)),
                Ok(()) => {}
                Err(fs::TryLockError::WouldBlock) => return Err(taken(place)),
                Err(fs::TryLockError::Error(_)) => return Lock::of_file(place),
            }
        }
        Err(taken(place))
    }

    fn of_file(place: &Path) -> Result<Lock, Failure> {
        let path = place.join(FILE);
        let mut options = File::options();
        let file = options.create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(|error| Failure::io("write", &path, error))?;
        match file.try_lock() {
            Err(fs::TryLockError::WouldBlock) => Err(taken(place)),
            // A file system without locks: nobody can be kept out.
            _ => Ok(Lock(file)),
        }
    }
}

fn is_at(directory: &File, place: &Path) -> bool {
    let both = directory
        .metadata()
        .and_then(|own| Ok((own, fs::metadata(place)?)));
    both.is_ok_and(|(own, there)| own.dev() == there.dev() && own.ino() == there.ino())
}

fn taken(place: &Path) -> Failure {
    Failure::input(format!(
        "another Metes is writing to {}: wait until it has ended, or give another directory \
         with -o",
        place.display()
    ))
}
