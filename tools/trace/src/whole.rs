//! Files that are written whole or not at all.
//!
//! A file grows beside its place, under a name of which there are a few, and locked. What a process that was
//! killed left there is told by its lock, which the system has released, and removed by the next one that
//! writes a file of that name.
//!
//! Invariant: nobody removes a part while its owner lives. A regular file holds what it held before, or all that was written. What is no
//! regular file (a terminal, a pipe, `/dev/null`) is written to and never replaced; a symbolic
//! link stays, and what it leads to is replaced.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Has `make` write a file, and puts it at `path` when that succeeded.
///
/// # Errors
/// Those of `make`, and of the system: what was at `path` before is then untouched, and nothing
/// is left beside it.
pub fn replace<E: From<io::Error>>(
    path: &Path,
    make: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), E> {
    let Place::File(path) = place(path)? else {
        return make(path);
    };
    let part = Part::begin(&path)?;
    make(part.path())?;
    Ok(part.put()?)
}

/// That a file can be written at `path` later on; what is there stays.
///
/// # Errors
/// What the system says.
pub fn writable(path: &Path) -> io::Result<()> {
    let Place::File(path) = place(path)? else {
        return Ok(());
    };
    Part::begin(&path).map(drop)
}

/// Names of parts beside one file; as many may be written at a time.
const PARTS: u32 = 8;
/// Tries for a part that nobody takes for left over before it is locked.
const TRIES: u32 = 100;

/// A file that is being written, beside its place. It is gone when it is dropped.
#[derive(Debug)]
pub struct Part {
    place: PathBuf,
    part: PathBuf,
    /// Whether it is in its place: its name may be another's then.
    put: bool,
    /// Holds the lock.
    _lock: File,
}

impl Part {
    /// Begins the file that is to be at `path`, and removes what processes that were killed left of it.
    ///
    /// # Errors
    /// What the system says.
    pub fn begin(path: &Path) -> io::Result<Part> {
        for _ in 0..TRIES {
            let mut own = None;
            for number in 0..PARTS {
                let part = part_of(path, &number.to_string())?;
                remove_if_left(&part);
                if own.is_none() {
                    own = Part::make(path, part)?;
                }
            }
            if own.is_none() {
                // So many at a time, or a file system without locks, where none is taken for left.
                let name = format!("of-{}", std::process::id());
                own = Part::make(path, part_of(path, &name)?)?;
            }
            if let Some(own) = own {
                return Ok(own);
            }
        }
        Err(io::Error::other("its parts are removed by others"))
    }

    /// As [`begin`](Part::begin), for a file that may be something else than a regular one: then it is written as
    /// it stands, and there is no part. Also the file to write.
    ///
    /// # Errors
    /// What the system says.
    pub fn begin_or_other(path: &Path) -> io::Result<(File, Option<Part>)> {
        let Place::File(path) = place(path)? else {
            return Ok((File::create(path)?, None));
        };
        let part = Part::begin(&path)?;
        Ok((File::create(part.path())?, Some(part)))
    }

    /// None where it is there already, or somebody was faster than the lock.
    fn make(path: &Path, part: PathBuf) -> io::Result<Option<Part>> {
        let made = File::options().write(true).create_new(true).open(&part);
        let lock = match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(None),
            made => made?,
        };
        if matches!(lock.try_lock(), Err(TryLockError::WouldBlock)) || !is_at(&lock, &part) {
            return Ok(None);
        }
        Ok(Some(Part {
            place: path.to_owned(),
            part,
            put: false,
            _lock: lock,
        }))
    }

    /// Where it grows.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.part
    }

    /// Puts it in its place.
    ///
    /// # Errors
    /// What the system says; it is gone then.
    pub fn put(self) -> io::Result<()> {
        let place = self.place.clone();
        self.put_at(&place)
    }

    /// Puts it in another place, on the same file system.
    ///
    /// # Errors
    /// What the system says; it is gone then.
    pub fn put_at(mut self, place: &Path) -> io::Result<()> {
        fs::rename(&self.part, place)?;
        self.put = true;
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if !self.put {
            // Of no use, and what counts is the error before.
            let _ = fs::remove_file(&self.part);
        }
    }
}

/// Removes a part whose owner is gone: a file of this user that nobody has locked.
fn remove_if_left(part: &Path) {
    let Ok(found) = fs::symlink_metadata(part) else {
        return;
    };
    // SAFETY: cannot fail.
    if !found.is_file() || found.uid() != unsafe { libc::geteuid() } {
        return;
    }
    if let Ok(file) = File::open(part)
        && file.try_lock().is_ok()
        && is_at(&file, part)
    {
        let _ = fs::remove_file(part);
    }
}

fn is_at(file: &File, path: &Path) -> bool {
    let both = file
        .metadata()
        .and_then(|own| Ok((own, fs::symlink_metadata(path)?)));
    both.is_ok_and(|(own, there)| own.dev() == there.dev() && own.ino() == there.ino())
}

/// What stands at a path.
enum Place {
    /// A regular file, or nothing yet; links are followed.
    File(PathBuf),
    /// Something that takes what is written.
    Other,
}

fn place(path: &Path) -> io::Result<Place> {
    match fs::metadata(path) {
        Ok(found) if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        Ok(found) if found.is_file() => Ok(Place::File(fs::canonicalize(path)?)),
        Ok(_) => Ok(Place::Other),
        // A link to nothing is replaced: where it leads there may be no directory.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Place::File(path.to_owned())),
        Err(error) => Err(error),
    }
}

/// A name beside `path` under which the file may grow.
fn part_of(path: &Path, which: &str) -> io::Result<PathBuf> {
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the path names no file",
        ));
    };
    let mut name = name.to_owned();
    name.push(format!(".part-metes-{which}"));
    Ok(path.with_file_name(name))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{FileTypeExt, symlink};

    use super::*;

    fn write(path: &Path, text: &str) -> io::Result<()> {
        replace(path, |part| fs::write(part, text))
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_whole_or_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        write(&path, "first").unwrap();
        writable(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "first");
        write(&path, "second").unwrap();
        let failed = replace(&path, |part| {
            fs::write(part, "half")?;
            Err(io::Error::other("no more room"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "no more room");
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        assert_eq!(names(directory.path()), ["file"]);
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let stays = ["file.part-1", "file.part-metes", "other.part-metes-0"];
        for name in stays
            .iter()
            .chain(&["file.part-metes-0", "file.part-metes-3"])
        {
            fs::write(at(name), "half").unwrap();
        }
        write(&at("file"), "whole").unwrap();
        let mut left = stays.map(str::to_owned).to_vec();
        left.insert(0, "file".to_owned());
        assert_eq!(names(directory.path()), left);
    }

    #[test]
    fn a_part_that_grows_is_nobody_elses() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        let parts: Vec<Part> = (0..PARTS + 2)
            .map_while(|_| Part::begin(&path).ok())
            .collect();
        // One more has the name of the process.
        assert_eq!(parts.len() as u32, PARTS + 1);
        assert!(parts.iter().all(|part| part.path().exists()));
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        writable(&directory.path().join("more")).unwrap();
                    }
                });
            }
        });
        drop(parts);
        assert_eq!(names(directory.path()), Vec::<String>::new());
    }

    #[test]
    fn a_link_stays_and_leads_to_the_new_file() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        write(&file, "first").unwrap();
        symlink("file", &link).unwrap();
        write(&link, "second").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "second");
    }

    #[test]
    fn a_device_stays_a_device() {
        let null = Path::new("/dev/null");
        writable(null).unwrap();
        write(null, "gone").unwrap();
        assert!(fs::metadata(null).unwrap().file_type().is_char_device());
        // It takes nothing, and says so.
        let full = write(Path::new("/dev/full"), "no room").unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull);
        let full = fs::metadata("/dev/full").unwrap();
        assert!(full.file_type().is_char_device());
    }

    #[test]
    fn directories_and_their_lack_are_errors() {
        let directory = tempfile::tempdir().unwrap();
        for check in [writable, |path: &Path| write(path, "")] {
            let kind = |path: &Path| check(path).unwrap_err().kind();
            assert_eq!(kind(directory.path()), io::ErrorKind::IsADirectory);
            let missing = directory.path().join("missing/file");
            assert_eq!(kind(&missing), io::ErrorKind::NotFound);
            assert_eq!(kind(Path::new("")), io::ErrorKind::InvalidInput);
        }
    }
}
