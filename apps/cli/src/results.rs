//! Directories of results: written by one Metes at a time, replaced whole, and
//! nothing else in them is touched.
//!
//! `.metes.json` lists the files that Metes wrote, each with the verb that did
//! and a hash, so that what somebody else made or changed is known. A verb
//! gathers its files in a directory of its own beside them. When all are there,
//! their list is put with them, which decides: from then on they replace the
//! earlier ones, and whoever opens the directory next does so should this
//! process be killed in between.
//!
//! Invariant: before the new list is whole, the earlier result is untouched;
//! after it, the new one is all there. A file that is not in the list as it was
//! written is replaced or removed only with `--replace`.

mod list;
mod lock;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use metes_trace::private::{self, PrivateDirectory};

use crate::error::Failure;
use list::{Entry, List, below};
use lock::Lock;

/// Beginning of the name of a directory in which results are gathered.
const GATHERED: &str = ".metes.";
/// Beginning of the name of results for which there was no place any more.
const UNSAVED: &str = "metes-unsaved.";
/// Traces are kept when their result is replaced by that of another verb: it
/// may be made of them.
const TRACE: &str = ".trace.parquet";

/// What a verb writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind<'a> {
    /// The verb, as it is called in errors.
    pub(crate) verb: &'static str,
    /// Its files, from the directory on; `NNN` stands for any number. Those
    /// that are not named are looked at when they are put in place.
    pub(crate) files: &'a [&'a str],
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Results {
    place: PathBuf,
    verb: &'static str,
    /// The directories that this process made, the deepest first.
    made: Vec<PathBuf>,
    list: List,
    // Dropped in this order: the files are gone before another may come.
    gathered: PrivateDirectory,
    _lock: Lock,
}

impl Results {
    /// Takes a directory for the results of a verb, and makes it where it is
    /// not there.
    ///
    /// # Errors
    /// Another Metes has it, it cannot be written to, or a file is in the way
    /// that would be lost.
    pub(crate) fn open(place: &Path, kind: Kind<'_>) -> Result<Results, Failure> {
        Results::take(place, kind, Some(kind.verb))
    }

    /// Takes a directory for files that become part of the result in it, of
    /// whichever verb that is.
    ///
    /// # Errors
    /// As [`Results::open`].
    pub(crate) fn open_to_add(place: &Path, kind: Kind<'_>) -> Result<Results, Failure> {
        Results::take(place, kind, None)
    }

    fn take(place: &Path, kind: Kind<'_>, of: Option<&str>) -> Result<Results, Failure> {
        let missing_before = missing(place);
        fs::create_dir_all(place).map_err(|error| Failure::io("make directory", place, error))?;
        let lock = Lock::take(place)?;
        let opened = Results::begin(place, kind.files, of).map(|(list, gathered)| Results {
            place: place.to_owned(),
            verb: kind.verb,
            made: missing_before.clone(),
            list,
            gathered,
            _lock: lock,
        });
        if opened.is_err() {
            remove_empty(&missing_before);
        }
        opened
    }

    fn begin(
        place: &Path,
        files: &[&str],
        of: Option<&str>,
    ) -> Result<(List, PrivateDirectory), Failure> {
        settle_locked(place).map_err(|error| Failure::io("write to directory", place, error))?;
        let list = List::read(place);
        for file in existing(place, files) {
            list.may_replace(place, &file, of)?;
        }
        let gathered = PrivateDirectory::new_in(place, GATHERED)
            .map_err(|error| Failure::io("write to directory", place, error))?;
        Ok((list, gathered))
    }

    /// Where the verb writes its files meanwhile.
    pub(crate) fn gathered(&self) -> &Path {
        self.gathered.path()
    }

    /// Where a file that was gathered will be.
    pub(crate) fn shown(&self, gathered: &Path) -> PathBuf {
        match gathered.strip_prefix(self.gathered.path()) {
            Ok(below) => self.place.join(below),
            Err(_) => gathered.to_owned(),
        }
    }

    /// Whether an earlier result of this verb is there.
    pub(crate) fn has_earlier(&self) -> bool {
        let mut entries = self.list.files.values();
        entries.any(|entry| entry.by == self.verb)
    }

    /// Puts what was gathered in the place of the verb's earlier result.
    pub(crate) fn replace(self) -> Result<(), Failure> {
        self.put(true)
    }

    /// Adds what was gathered to what is there, as part of it.
    pub(crate) fn add(self) -> Result<(), Failure> {
        self.put(false)
    }

    fn put(mut self, whole: bool) -> Result<(), Failure> {
        let place = self.place.clone();
        let failed = |error| Failure::io("write to directory", &place, error);
        let mut new = List::new();
        for file in below(self.gathered()).map_err(failed)? {
            let verb = if whole { Some(self.verb) } else { None };
            if let Err(refused) = self.list.may_replace(&self.place, &file, verb) {
                return Err(self.unsaved(refused));
            }
            let by = match self.list.files.get(&file) {
                Some(before) if !whole => before.by.clone(),
                _ => self.verb.to_owned(),
            };
            let entry = Entry::of(&self.gathered().join(&file), by).map_err(failed)?;
            new.files.insert(file, entry);
        }
        new.keep_of(&self.list, &self.place, whole.then_some(self.verb));
        new.write(self.gathered()).map_err(failed)?;
        // Decided. Should it be cut short, the next Metes goes on from here.
        settle_one(&self.place, self.gathered()).map_err(failed)?;
        self.made.clear();
        Ok(())
    }

    /// Keeps what was gathered under a name of its own, for want of a place.
    fn unsaved(&self, why: Failure) -> Failure {
        let name = self.gathered().file_name().unwrap_or_default();
        let end = name.to_string_lossy().replacen(GATHERED, "", 1);
        let kept = self.place.join(format!("{UNSAVED}{end}"));
        match fs::rename(self.gathered(), &kept) {
            Ok(()) => Failure::input(format!(
                "{why} (that came while Metes worked: the new result is in {})",
                kept.display()
            )),
            Err(_) => why,
        }
    }
}

impl Drop for Results {
    fn drop(&mut self) {
        if !self.made.is_empty() {
            let _ = fs::remove_dir_all(self.gathered.path());
            remove_empty(&self.made);
        }
    }
}

/// The directory and those above it that are not there, the deepest first.
fn missing(place: &Path) -> Vec<PathBuf> {
    let above = place.ancestors();
    let missing = above.take_while(|path| !path.as_os_str().is_empty() && !path.exists());
    missing.map(Path::to_owned).collect()
}

/// Removes directories that were made in vain; one that is not empty stays, and those above it.
fn remove_empty(directories: &[PathBuf]) {
    for directory in directories {
        if fs::remove_dir(directory).is_err() {
            break;
        }
    }
}

/// Finishes what a Metes that was killed had decided on; for verbs that read a
/// directory. Where that is not possible now, it is read as it is.
pub(crate) fn settle(place: &Path) {
    if place.is_dir()
        && let Ok(_lock) = Lock::take(place)
    {
        let _ = settle_locked(place);
    }
}

fn settle_locked(place: &Path) -> io::Result<()> {
    for dead in private::dead_in(place, GATHERED) {
        if List::is_in(&dead.path) {
            settle_one(place, &dead.path)?;
        }
        dead.remove();
    }
    Ok(())
}

/// Puts gathered files with their list in place; again from where it was.
fn settle_one(place: &Path, gathered: &Path) -> io::Result<()> {
    let new = List::read(gathered);
    for file in &new.stale {
        if leads_through(place, file).is_none() {
            remove_with_parents(place, file);
        }
    }
    for file in below(gathered)? {
        if let Some(link) = leads_through(place, &file) {
            let link = link.display();
            return Err(io::Error::other(format!(
                "{link} is no directory of its own"
            )));
        }
        let to = place.join(&file);
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::rename(gathered.join(&file), to)?;
    }
    List::move_to(gathered, place)
}

/// What is no directory on the way to a file below `place`, such as a link, which may lead anywhere: who made
/// the directory, and what it says is decided, may be somebody else.
fn leads_through(place: &Path, file: &str) -> Option<PathBuf> {
    let parents = Path::new(file).ancestors().skip(1);
    let parents = parents.filter(|parent| !parent.as_os_str().is_empty());
    let mut paths = parents.map(|parent| place.join(parent));
    paths.find(|path| fs::symlink_metadata(path).is_ok_and(|found| !found.is_dir()))
}

/// Removes a file, and the directories that are empty then.
fn remove_with_parents(place: &Path, file: &str) {
    let path = place.join(file);
    if fs::remove_file(&path).is_err() {
        return;
    }
    let mut parent = path.parent();
    while let Some(directory) = parent.filter(|directory| *directory != place) {
        if fs::remove_dir(directory).is_err() {
            return;
        }
        parent = directory.parent();
    }
}

/// The files of a kind that are there, as far as they can be known beforehand.
fn existing(place: &Path, patterns: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for pattern in patterns {
        let Some((directory, ending)) = pattern.split_once("/NNN") else {
            found.push((*pattern).to_owned());
            continue;
        };
        // A link or a file in the place of the directory is found, too.
        found.push(format!("{directory}/001{ending}"));
        for entry in fs::read_dir(place.join(directory)).into_iter().flatten() {
            let Ok(name) = entry.map(|entry| entry.file_name()) else {
                continue;
            };
            let name = name.to_string_lossy();
            let number = name.strip_suffix(ending).unwrap_or_default();
            if number.len() >= 3 && number.bytes().all(|byte| byte.is_ascii_digit()) {
                found.push(format!("{directory}/{name}"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests;
