//! Directories of a process's own, which are gone when it is.
//!
//! A directory that is dropped removes itself; one whose process was killed is
//! removed by the next process that makes one beside it. Which of them are
//! dead is told by a lock that the owner holds on its directory: the system
//! releases it however the owner ended, and it is never taken over by another
//! process of the same number.
//!
//! Invariant: nobody removes a directory while its owner lives. A directory is
//! its owner's from the moment that [`PrivateDirectory::new_in`] returns.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The random end of a name.
const TEMPLATE: &str = "XXXXXX";
/// Tries for a directory that no cleaner takes before it is locked.
const TRIES: usize = 100;

/// A directory that only its owner's user may enter. See the module.
#[derive(Debug)]
pub struct PrivateDirectory {
    path: PathBuf,
    /// Holds the lock.
    _lock: Option<File>,
}

/// The directories of this process that are not yet dropped.
static LIVING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn living() -> MutexGuard<'static, Vec<PathBuf>> {
    LIVING.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PrivateDirectory {
    /// Makes a directory in `parent`, whose name is `prefix` and six more
    /// characters, and removes those of processes that were killed.
    ///
    /// # Errors
    /// What the system says.
    pub fn new_in(parent: &Path, prefix: &str) -> io::Result<PrivateDirectory> {
        for dead in dead_in(parent, prefix) {
            dead.remove();
        }
        let mut template = parent.join(prefix).into_os_string();
        template.push(TEMPLATE);
        let template = CString::new(template.into_vec())?.into_bytes_with_nul();
        for _ in 0..TRIES {
            if let Some(made) = PrivateDirectory::make(template.clone())? {
                return Ok(made);
            }
        }
        Err(io::Error::other("its directories are removed by others"))
    }

    /// None if a cleaner was faster than the lock.
    fn make(mut template: Vec<u8>) -> io::Result<Option<PrivateDirectory>> {
        // SAFETY: a C string that mkdtemp may write to. Its mode is 0700.
        let made = unsafe { libc::mkdtemp(template.as_mut_ptr().cast()) };
        if made.is_null() {
            return Err(io::Error::last_os_error());
        }
        template.pop();
        let path = PathBuf::from(OsString::from_vec(template));
        let lock = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let lock = match lock_of(&lock) {
            Lock::Taken => Some(lock),
            Lock::Others => return Ok(None),
            // Where directories cannot be locked, none is ever taken for dead.
            Lock::Unknown => None,
        };
        // A cleaner may have removed it between the two.
        let same = |file: &File| {
            let (own, there) = (file.metadata()?, fs::symlink_metadata(&path)?);
            Ok::<_, io::Error>(own.dev() == there.dev() && own.ino() == there.ino())
        };
        if let Some(lock) = &lock
            && !same(lock).unwrap_or(false)
        {
            return Ok(None);
        }
        living().push(path.clone());
        Ok(Some(PrivateDirectory { path, _lock: lock }))
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        // What cannot be removed is for the next one, or for the system's
        // cleaning of temporary files.
        let _ = fs::remove_dir_all(&self.path);
        living().retain(|path| *path != self.path);
    }
}

/// Removes every directory of this process, for one that ends without dropping
/// them.
pub fn remove_all() {
    for path in living().drain(..) {
        let _ = fs::remove_dir_all(path);
    }
}

/// A directory whose owner was killed.
#[derive(Debug)]
pub struct Dead {
    /// Where it is.
    pub path: PathBuf,
    /// Keeps others from it.
    _lock: File,
}

impl Dead {
    /// Removes it with all that is in it.
    pub fn remove(self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

/// The directories `prefix`… in `parent` whose owners were killed; none where
/// `parent` cannot be listed. O(entries of `parent`).
#[must_use]
pub fn dead_in(parent: &Path, prefix: &str) -> Vec<Dead> {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let ours = entries.filter(|entry| is_one(&entry.file_name(), prefix));
    // SAFETY: cannot fail.
    let user = unsafe { libc::geteuid() };
    ours.filter_map(|entry| {
        let path = entry.path();
        // Not through a link, and nothing of another user.
        let found = fs::symlink_metadata(&path).ok()?;
        if !found.is_dir() || found.uid() != user {
            return None;
        }
        let lock = File::open(&path).ok()?;
        matches!(lock_of(&lock), Lock::Taken).then_some(Dead { path, _lock: lock })
    })
    .collect()
}

fn is_one(name: &OsStr, prefix: &str) -> bool {
    let end = name.as_bytes().strip_prefix(prefix.as_bytes());
    end.is_some_and(|end| end.len() == TEMPLATE.len() && end.iter().all(u8::is_ascii_alphanumeric))
}

/// What became of a try to lock a directory.
enum Lock {
    Taken,
    /// Somebody else has it.
    Others,
    /// The file system has no locks on directories.
    Unknown,
}

fn lock_of(directory: &File) -> Lock {
    match directory.try_lock() {
        Ok(()) => Lock::Taken,
        Err(TryLockError::WouldBlock) => Lock::Others,
        Err(TryLockError::Error(_)) => Lock::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn it_is_its_owners_alone_and_gone_when_dropped() {
        let parent = tempfile::tempdir().unwrap();
        let own = PrivateDirectory::new_in(parent.path(), "own.").unwrap();
        let path = own.path().to_owned();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o700
        );
        fs::write(path.join("file"), "text").unwrap();
        // Another one beside it does not take it for dead.
        let other = PrivateDirectory::new_in(parent.path(), "own.").unwrap();
        assert!(path.join("file").exists());
        drop((own, other));
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let at = |name: &str| parent.path().join(name);
        for name in ["own.abcdef", "own.abcdefg", "own.ab-def", "other.abcdef"] {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join("file"), "text").unwrap();
        }
        fs::write(at("own.file00"), "text").unwrap();
        std::os::unix::fs::symlink(at("other.abcdef"), at("own.link00")).unwrap();
        drop(PrivateDirectory::new_in(parent.path(), "own.").unwrap());
        assert!(!at("own.abcdef").exists());
        for name in ["own.abcdefg", "own.ab-def", "other.abcdef", "own.link00"] {
            assert!(at(name).join("file").exists(), "{name}");
        }
        assert!(at("own.file00").exists());
    }

    #[test]
    fn makers_and_cleaners_at_once_do_not_meet() {
        let parent = tempfile::tempdir().unwrap();
        let work = || {
            for _ in 0..200 {
                let own = PrivateDirectory::new_in(parent.path(), "own.").unwrap();
                fs::write(own.path().join("file"), "text").unwrap();
                assert!(own.path().join("file").exists());
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(work);
            }
        });
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);
    }
}
