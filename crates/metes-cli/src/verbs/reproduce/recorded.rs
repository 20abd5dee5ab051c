//! Recording programs for experiments.
//!
//! Programs that are not installed are left out, and the report says so.

use std::ffi::OsString;
use std::path::Path;

use metes_explore::Events;
use metes_trace::{RecordOptions, record};

use crate::error::Failure;
use crate::{libraries, tracefile};

/// Records programs, one after another.
pub(super) struct Recorder<'a> {
    scratch: tempfile::TempDir,
    options: RecordOptions,
    tell: &'a dyn Fn(&str),
    missing: Vec<&'static str>,
}

impl<'a> Recorder<'a> {
    /// A recorder that tells what it records.
    pub(super) fn new(tell: &'a dyn Fn(&str)) -> Result<Self, Failure> {
        Ok(Recorder {
            scratch: tempfile::tempdir().map_err(|error| Failure::input(error.to_string()))?,
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
        let aside = crate::capture::stdout_to_stderr()?;
        let recording = record(command, &self.options);
        drop(aside);
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
