//! What was set before, and how it comes back.
//!
//! Invariant: settings are restored once, when dropped at the latest; as long as they are not, the file with them stays,
//! so that who was killed outright can still be undone.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::domain::bounds;
use super::{MachineError, write};

/// First words of a file of saved settings.
const FORMAT: &str = "metes power settings 1";

/// Settings of a machine.
#[derive(Debug)]
pub struct Saved {
    settings: Settings,
    /// Where they stand as well.
    file: Option<PathBuf>,
    restored: bool,
}

/// As a file has them.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    format: String,
    root: PathBuf,
    settings: Vec<Setting>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Setting {
    path: PathBuf,
    text: String,
}

/// What became of a restoration.
#[derive(Debug, Default)]
pub struct Restored {
    /// Files that say again what they said.
    pub files: usize,
    /// What could not be restored.
    pub failed: Vec<MachineError>,
}

impl Saved {
    pub(super) fn new(root: PathBuf, settings: Vec<(PathBuf, String)>) -> Saved {
        let settings = settings
            .into_iter()
            .map(|(path, text)| Setting { path, text });
        Saved {
            settings: Settings {
                format: FORMAT.to_owned(),
                root,
                settings: settings.collect(),
            },
            file: None,
            restored: false,
        }
    }

    /// Writes them to a file, which must not be there: it would be what another run still has to restore.
    ///
    /// # Errors
    /// [`MachineError`] if it is there, or cannot be written.
    pub fn keep(&mut self, file: &Path) -> Result<(), MachineError> {
        let text = toml::to_string(&self.settings).map_err(|error| MachineError::NotSaved {
            path: file.to_owned(),
            why: error.to_string(),
        })?;
        let written = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(file)
            .and_then(|mut open| {
                use std::io::Write;
                open.write_all(text.as_bytes())?;
                open.sync_all()
            });
        written.map_err(|source| MachineError::File {
            action: "write the settings to",
            path: file.to_owned(),
            source,
        })?;
        self.file = Some(file.to_owned());
        Ok(())
    }

    /// Settings that a file has.
    ///
    /// # Errors
    /// [`MachineError`] if it is no such file, or names files that are none of its root.
    pub fn from_file(file: &Path) -> Result<Saved, MachineError> {
        let wrong = |why: String| MachineError::NotSaved {
            path: file.to_owned(),
            why,
        };
        let text = std::fs::read_to_string(file).map_err(|source| MachineError::File {
            action: "read",
            path: file.to_owned(),
            source,
        })?;
        let settings: Settings =
            toml::from_str(&text).map_err(|error| wrong(error.message().to_owned()))?;
        if settings.format != FORMAT {
            return Err(wrong(format!("its format is not '{FORMAT}'")));
        }
        for Setting { path, .. } in &settings.settings {
            let below = path.starts_with(&settings.root)
                && path
                    .components()
                    .all(|part| part != std::path::Component::ParentDir);
            if !below {
                let path = path.display();
                return Err(wrong(format!("{path} does not lie below its root")));
            }
        }
        Ok(Saved {
            settings,
            file: Some(file.to_owned()),
            restored: false,
        })
    }

    /// Leaves things as they are now: the file has what they were.
    pub fn leave(mut self) {
        self.restored = true;
    }

    /// Restores everything, whatever fails; removes the file if nothing did.
    pub fn restore(&mut self) -> Restored {
        let mut outcome = Restored::default();
        if std::mem::replace(&mut self.restored, true) {
            return outcome;
        }
        let mut settings = self.settings.settings.iter().peekable();
        while let Some(setting) = settings.next() {
            let pair = settings.next_if(|next| is_bounds(&setting.path, &next.path));
            let (files, done) = match pair {
                Some(most) => (
                    2,
                    bounds(&setting.path, &most.path, &setting.text, &most.text),
                ),
                None => (1, write(&setting.path, &setting.text)),
            };
            match done {
                Ok(()) => outcome.files += files,
                Err(error) => outcome.failed.push(error),
            }
        }
        if outcome.failed.is_empty()
            && let Some(file) = &self.file
        {
            // One that stays would only be restored once more.
            let _ = std::fs::remove_file(file);
        }
        outcome
    }
}

/// Whether two settings are least and most of one domain.
fn is_bounds(least: &Path, most: &Path) -> bool {
    let ends = |path: &Path, part: &str| {
        path.file_name()
            .is_some_and(|name| name.to_string_lossy().ends_with(part))
    };
    least.parent() == most.parent() && ends(least, "min_freq") && ends(most, "max_freq")
}

impl Drop for Saved {
    fn drop(&mut self) {
        self.restore();
    }
}
