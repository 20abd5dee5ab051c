//! Recording programs for experiments.
//!
//! Programs that are not installed are left out, and the report says so.

use std::ffi::OsString;
use std::path::Path;

use metes_explore::Events;
use metes_trace::private::PrivateDirectory;
use metes_trace::{RecordOptions, record};

use crate::error::Failure;
use crate::{interrupt, libraries, tracefile};

/// Records programs, one after another.
pub(super) struct Recorder<'a> {
    scratch: PrivateDirectory,
    options: RecordOptions,
    tell: &'a dyn Fn(&str),
    missing: Vec<&'static str>,
}

impl<'a> Recorder<'a> {
    /// A recorder that tells what it records.
    pub(super) fn new(tell: &'a dyn Fn(&str)) -> Result<Self, Failure> {
        interrupt::begin()?;
        let parent = std::env::temp_dir();
        let scratch = PrivateDirectory::new_in(&parent, "metes-cases.")
            .map_err(|error| Failure::io("make a directory in", &parent, error))?;
        Ok(Recorder {
            scratch,
            options: RecordOptions::new(libraries::recorder()?),
            tell,
            missing: Vec::new(),
        })
    }

    /// A directory for what the programs read; it goes with the recorder.
    pub(super) fn directory(&self) -> &Path {
        self.scratch.path()
    }

    /// What a program asks for; none if it cannot be recorded here.
    pub(super) fn record(
        &mut self,
        name: &'static str,
        command: &[OsString],
    ) -> Result<Option<Events>, Failure> {
        (self.tell)(&format!("recording {name}"));
        let aside = metes_tune::stdout_to_stderr()?;
        let recording = record(command, &self.options);
        drop(aside);
        if let Some(signal) = interrupt::asked_to_end() {
            return Err(Failure::ended(signal, "nothing was written"));
        }
        match recording {
            Ok(recording) if !recording.main.is_empty() => {
                Ok(Some(tracefile::events(&recording.main)?))
            }
            _ => {
                self.missing.push(name);
                Ok(None)
            }
        }
    }

    /// Which programs were left out, if any.
    pub(super) fn missing(&self) -> Option<String> {
        let names = self.missing.join(", ");
        (!names.is_empty())
            .then(|| format!("left out, for they could not be recorded here: {names}"))
    }
}
