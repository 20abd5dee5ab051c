//! Files that are written whole or not at all.
//!
//! Invariant: a regular file holds what it held before, or all that was written. What is no
//! regular file (a terminal, a pipe, `/dev/null`) is written to and never replaced; a symbolic
//! link stays, and what it leads to is replaced.

use std::fs::{self, File};
use std::io;
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
    let part = part_of(&path)?;
    let done = make(&part).and_then(|()| Ok(fs::rename(&part, &path)?));
    if done.is_err() {
        // The error that counts is the first; what is left is of no use.
        let _ = fs::remove_file(&part);
    }
    done
}

/// That a file can be written at `path` later on; what is there stays.
///
/// # Errors
/// What the system says.
pub fn writable(path: &Path) -> io::Result<()> {
    let Place::File(path) = place(path)? else {
        return Ok(());
    };
    let part = part_of(&path)?;
    File::create(&part)?;
    fs::remove_file(&part)
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

/// The name beside `path` under which the file grows.
fn part_of(path: &Path) -> io::Result<PathBuf> {
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the path names no file",
        ));
    };
    let mut name = name.to_owned();
    name.push(format!(".part-{}", std::process::id()));
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
