//! The place of a run under a preloaded library: a private directory with a
//! link to the library, and the environment that leads there.
//!
//! Programs copy their environment into their heap, some string by string. So
//! that runs under different libraries make the same requests, every stage
//! gives a program variables of the same names and lengths: `LD_PRELOAD` with
//! a link of fixed name in a directory of fixed length, and the recorder's
//! directory, whether or not the library reads it.
//!
//! Invariant: the directory is readable by its owner only, and gone when the
//! stage is dropped.

use std::ffi::{CString, OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use super::error::RecordError;
use super::layout::{CHUNK_SHIFT, DIRECTORY_VARIABLE};
use crate::private::PrivateDirectory;

/// Room that shared memory must have to be used, bytes.
const PLENTY: u64 = 4 << 30;
/// What the first process needs, bytes: a chunk of words, and a little.
const LEAST: u64 = (8 << CHUNK_SHIFT) + (64 << 10);
/// Of fixed length; see the module.
const PREFIX: &str = "metes.";

/// See the module.
#[derive(Debug)]
pub struct Stage {
    directory: PrivateDirectory,
    preload: PathBuf,
}

impl Stage {
    /// A stage for `library`, in `parent` or where temporary files go. What
    /// processes that were killed left there is removed.
    ///
    /// # Errors
    /// [`RecordError::Library`], [`RecordError::Directory`],
    /// [`RecordError::NoRoom`].
    pub fn new(library: &Path, parent: Option<&Path>) -> Result<Stage, RecordError> {
        Stage::with_prefix(library, parent, PREFIX)
    }

    /// A stage for a program that this process becomes: others take it for theirs to remove once no process has
    /// this one's number.
    pub(super) fn dormant(library: &Path, parent: Option<&Path>) -> Result<Stage, RecordError> {
        let prefix = format!("{DORMANT}{}.", std::process::id());
        Stage::with_prefix(library, parent, &prefix)
    }

    /// Has the directory stay.
    pub(super) fn leave(self) {
        std::mem::forget(self.directory);
    }

    fn with_prefix(
        library: &Path,
        parent: Option<&Path>,
        prefix: &str,
    ) -> Result<Stage, RecordError> {
        let library = std::fs::canonicalize(library)
            .and_then(|path| std::fs::File::open(&path).map(|_| path))
            .map_err(|source| RecordError::Library {
                path: library.to_owned(),
                source,
            })?;
        let parent = parent.map_or_else(usual_parent, Path::to_owned);
        let bad = |reason: String| RecordError::Directory {
            path: parent.clone(),
            reason,
        };
        let parent_full = std::fs::canonicalize(&parent).map_err(|error| bad(error.to_string()))?;
        if parent_full
            .as_os_str()
            .as_bytes()
            .iter()
            .any(|byte| b" :\n\t".contains(byte))
        {
            return Err(bad(
                "LD_PRELOAD cannot name a path with spaces or colons".to_owned()
            ));
        }
        remove_dead(&parent_full);
        need_room(&parent_full)?;
        let directory = PrivateDirectory::new_in(&parent_full, prefix)
            .map_err(|error| bad(error.to_string()))?;
        let stage = Stage {
            preload: directory.path().join("preload.so"),
            directory,
        };
        std::os::unix::fs::symlink(&library, &stage.preload)
            .map_err(|error| bad(error.to_string()))?;
        Ok(stage)
    }

    /// The directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// The variables to set for the program: `LD_PRELOAD`, keeping what this
    /// process has in it, and the recorder's directory.
    #[must_use]
    pub fn environment(&self) -> [(OsString, OsString); 2] {
        let mut preload = self.preload.clone().into_os_string();
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            preload.push(OsStr::new(":"));
            preload.push(others);
        }
        [
            ("LD_PRELOAD".into(), preload),
            (
                DIRECTORY_VARIABLE.into(),
                self.directory().as_os_str().to_owned(),
            ),
        ]
    }
}

/// How directories of dormant recorders begin; the number of the process follows.
const DORMANT: &str = "metes-dormant.";

/// Removes the directories of dormant recorders whose processes are gone. What cannot be removed is another user's.
fn remove_dead(parent: &Path) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(DORMANT));
        let number = rest.and_then(|rest| rest.split_once('.')?.0.parse::<u32>().ok());
        if number.is_some_and(|number| !Path::new("/proc").join(number.to_string()).exists()) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// The directory of the recorder that process `pid` was started with.
pub(super) fn directory_of(pid: u32) -> Result<PathBuf, RecordError> {
    let refused = |reason: String| RecordError::Attach { pid, reason };
    let environment = std::fs::read(format!("/proc/{pid}/environ")).map_err(|error| {
        refused(match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such process".to_owned(),
            std::io::ErrorKind::PermissionDenied => {
                "it is another user's, or this system shows nobody its environment: become that user, or root".to_owned()
            }
            _ => error.to_string(),
        })
    })?;
    let variable = [DIRECTORY_VARIABLE.as_bytes(), b"="].concat();
    let mut entries = environment.split(|&byte| byte == 0);
    let directory = entries.find_map(|entry| entry.strip_prefix(&variable[..]));
    let directory = directory.map(|value| PathBuf::from(OsStr::from_bytes(value)));
    directory.filter(|path| path.is_dir()).ok_or_else(|| {
        refused(
            "it was started without a recorder, which cannot be put into a process that runs: start it by \
             `metes record --dormant -- CMD`, or record it from its start with --on-signal"
                .to_owned(),
        )
    })
}

fn usual_parent() -> PathBuf {
    let shared = Path::new("/dev/shm");
    if std::env::var_os("TMPDIR").is_none() && has_plenty(shared) {
        return shared.to_owned();
    }
    std::env::temp_dir()
}

fn has_plenty(path: &Path) -> bool {
    let Ok(name) = CString::new(path.as_os_str().as_bytes()) else {
        return false;
    };
    // SAFETY: `name` is a C string; `access` only looks.
    let writable = unsafe { libc::access(name.as_ptr(), libc::W_OK | libc::X_OK) } == 0;
    writable && room(path).is_some_and(|room| room >= PLENTY)
}

/// Bytes that may still be written below `path`, where the system says so.
pub(super) fn room(path: &Path) -> Option<u64> {
    let name = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: all-zero bytes are a valid value of this plain structure.
    let mut space: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: `name` is a C string, `space` a place for the answer.
    let known = unsafe { libc::statvfs(name.as_ptr(), &raw mut space) } == 0;
    // Some file systems do not know their size and say zero.
    (known && space.f_blocks > 0).then(|| space.f_bavail.saturating_mul(space.f_frsize))
}

/// That a program could write down its first requests below `path`: without
/// room a recording is empty, which has other causes, too.
pub(super) fn need_room(path: &Path) -> Result<(), RecordError> {
    match room(path) {
        Some(room) if room < LEAST => Err(RecordError::NoRoom {
            path: path.to_owned(),
        }),
        _ => Ok(()),
    }
}
