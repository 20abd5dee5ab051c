//! The list of the files that Metes wrote into a directory.
//!
//! Invariant: a list is there whole or not at all; its names lie below its
//! directory.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Component, Path};

use serde::{Deserialize, Serialize};

use crate::error::Failure;
use crate::own;

/// File name of the list.
const NAME: &str = ".metes.json";

/// See the module.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct List {
    /// Version of Metes that wrote it.
    metes: String,
    /// The files, by their path from the directory on.
    pub(super) files: BTreeMap<String, Entry>,
    /// Files of the result before, which go when this list takes its place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) stale: Vec<String>,
}

/// A file as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// The verb whose result it belongs to.
    pub(super) by: String,
    bytes: u64,
    /// FNV-1a, 64 bits, in hexadecimal.
    hash: String,
}

impl Entry {
    /// The file at `path` as it is now. O(bytes).
    pub(super) fn of(path: &Path, by: String) -> io::Result<Entry> {
        let mut file = File::open(path)?;
        let mut chunk = vec![0; 1 << 16];
        let (mut bytes, mut hash) = (0, 0xcbf2_9ce4_8422_2325_u64);
        loop {
            let length = file.read(&mut chunk)?;
            if length == 0 {
                break;
            }
            bytes += length as u64;
            for byte in &chunk[..length] {
                hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        let hash = format!("{hash:016x}");
        Ok(Entry { by, bytes, hash })
    }

    fn is_at(&self, path: &Path) -> bool {
        Entry::of(path, self.by.clone()).is_ok_and(|found| found == *self)
    }
}

impl List {
    pub(super) fn new() -> List {
        List {
            metes: env!("CARGO_PKG_VERSION").to_owned(),
            ..List::default()
        }
    }

    /// The list of a directory; an empty one where there is none, or no sound
    /// one: then nothing in it is known to be ours.
    pub(super) fn read(place: &Path) -> List {
        let text = fs::read(place.join(NAME)).unwrap_or_default();
        let mut list: List = serde_json::from_slice(&text).unwrap_or_default();
        list.files.retain(|file, _| lies_below(file));
        list.stale.retain(|file| lies_below(file));
        list
    }

    pub(super) fn is_in(place: &Path) -> bool {
        place.join(NAME).is_file()
    }

    pub(super) fn write(&self, place: &Path) -> io::Result<()> {
        let text = serde_json::to_string_pretty(self).map_err(io::Error::other)?;
        metes_trace::whole::replace(&place.join(NAME), |part| {
            fs::write(part, text)?;
            File::open(part)?.sync_all()
        })
    }

    /// Puts the list of one directory into another.
    pub(super) fn move_to(from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from.join(NAME), to.join(NAME))
    }

    /// Takes over what stays of an earlier list, and notes what goes: the rest
    /// of the result of `verb`, and of those of which a file is replaced. What
    /// was changed by somebody else is theirs.
    pub(super) fn keep_of(&mut self, before: &List, place: &Path, verb: Option<&str>) {
        let new = &self.files;
        let replaced = before
            .files
            .iter()
            .filter(|(file, _)| new.contains_key(*file));
        let replaced: Vec<&str> = replaced.map(|(_, entry)| entry.by.as_str()).collect();
        let mut kept = Vec::new();
        for (file, entry) in &before.files {
            if new.contains_key(file) {
                continue;
            }
            let goes = verb.is_some_and(|verb| {
                entry.by == verb
                    || (replaced.contains(&entry.by.as_str()) && !file.ends_with(super::TRACE))
            });
            match goes {
                true if entry.is_at(&place.join(file)) => self.stale.push(file.clone()),
                true => {}
                false => kept.push((file.clone(), entry.clone())),
            }
        }
        self.files.extend(kept);
    }

    /// That `file` may be written: nothing is there, or what Metes wrote, by
    /// `verb` where one is given. With `--replace` what others wrote, too.
    pub(super) fn may_replace(
        &self,
        place: &Path,
        file: &str,
        verb: Option<&str>,
    ) -> Result<(), Failure> {
        let mut way = place.to_owned();
        let mut parts = Path::new(file).components().peekable();
        while let Some(part) = parts.next() {
            way.push(part);
            let Ok(found) = fs::symlink_metadata(&way) else {
                return Ok(());
            };
            let last = parts.peek().is_none();
            let why = match (last, found.file_type()) {
                (false, kind) if kind.is_dir() => continue,
                // Never written through, and never emptied.
                (false, _) => return Err(in_the_way(&way, "is no directory of Metes")),
                (true, kind) if kind.is_dir() => {
                    return Err(in_the_way(&way, "is a directory, and a file goes there"));
                }
                (true, kind) if kind.is_file() => self.why_not(&way, file, verb),
                (true, _) => Some("is no file that Metes wrote".to_owned()),
            };
            if let Some(why) = why.filter(|_| !own::may_replace_all()) {
                return Err(Failure::input(format!(
                    "{} {why}: give another directory with -o, or add --replace",
                    way.display()
                )));
            }
        }
        Ok(())
    }

    /// Why a file is not to be replaced.
    fn why_not(&self, path: &Path, file: &str, verb: Option<&str>) -> Option<String> {
        match self.files.get(file) {
            None => Some("is there and was not written by Metes".to_owned()),
            Some(entry) if verb.is_some_and(|verb| entry.by != verb) => {
                Some(format!("belongs to a result of `metes {}`", entry.by))
            }
            Some(entry) if !entry.is_at(path) => {
                Some("was changed since Metes wrote it".to_owned())
            }
            Some(_) => None,
        }
    }
}

fn in_the_way(path: &Path, why: &str) -> Failure {
    Failure::input(format!(
        "{} {why}: move it away, or give another directory with -o",
        path.display()
    ))
}

fn lies_below(file: &str) -> bool {
    let mut parts = Path::new(file).components();
    file != NAME && parts.all(|part| matches!(part, Component::Normal(_))) && !file.is_empty()
}

/// The files below a directory by their path from there on, without the list
/// and what is half written.
pub(super) fn below(directory: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    let mut open = vec![String::new()];
    while let Some(within) = open.pop() {
        for entry in fs::read_dir(directory.join(&within))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let name = match within.is_empty() {
                true => name,
                false => format!("{within}/{name}"),
            };
            match entry.file_type()? {
                kind if kind.is_dir() => open.push(name),
                _ if name == NAME || name.contains(".part-") => {}
                _ => found.push(name),
            }
        }
    }
    found.sort();
    Ok(found)
}
