//! The command that links an image with an emitted heap.
//!
//! *Invariant:* an image is taken only if the command ended well and left it where it was told to.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use metes_emit::{Home, Ranges, recorder};
use metes_trace::private::PrivateDirectory;
use metes_trace::record::{Ending, run_command};

use super::Error;
use crate::emitted;
use crate::error::FileError;

/// Where the command finds the emitted C: `bare.c` and `heap.c` are to be compiled, with this directory in the path of
/// headers.
pub const HEAP_CODE: &str = "METES_HEAP_CODE";
/// Where it finds the recorder, as `metes emit --recorder` writes it; empty where the image is to have none.
pub const RECORDER: &str = "METES_RECORDER";
/// Where it is to leave the image.
pub const IMAGE: &str = "METES_IMAGE";
/// Most bytes of what a command said that are shown.
const SAID: u64 = 2000;

/// A folder of this process's own begins so.
const PREFIX: &str = "metes-image.";
/// Bytes of the heap with which a command is tried out.
const TRIED: usize = 1 << 16;

/// A command that links images, with what it needs.
pub(super) struct Linker<'a> {
    command: &'a str,
    scratch: PrivateDirectory,
}

impl<'a> Linker<'a> {
    /// Lays the recorder down for a command.
    pub(super) fn new(command: &'a str) -> Result<Self, Error> {
        let parent = std::env::temp_dir();
        let scratch = PrivateDirectory::new_in(&parent, PREFIX)
            .map_err(|error| FileError::new("make a directory in", &parent, error))?;
        let linker = Linker { command, scratch };
        let folder = linker.recorder();
        std::fs::create_dir(&folder)
            .map_err(|error| FileError::new("make directory", &folder, error))?;
        for (name, text) in recorder::FILES {
            let path = folder.join(name);
            std::fs::write(&path, text).map_err(|error| FileError::new("write", &path, error))?;
        }
        Ok(linker)
    }

    fn recorder(&self) -> PathBuf {
        self.scratch.path().join("recorder")
    }

    /// Where an image with the recorder may lie.
    pub(super) fn recorded(&self) -> PathBuf {
        self.scratch.path().join("recorded.elf")
    }

    /// That the command links an image with some heap, before a search takes its time.
    pub(super) fn attempt(&self, recorder: bool) -> Result<(), Error> {
        let config = metes_config::resolve("tlsf")
            .map_err(|error| crate::Error::input(error.to_string()))?;
        let directory = self.scratch.path().join("tried");
        let home = Home::Bare(Ranges::single(TRIED, 16, TRIED));
        emitted::write(&emitted::emit_for(&config, home)?.files, &directory)?;
        let image = self.recorded();
        self.link(&directory, recorder, &image)?;
        std::fs::remove_file(&image).map_err(|error| FileError::new("remove", &image, error))?;
        Ok(())
    }

    /// Has an image linked with the heap emitted below `directory`.
    pub(super) fn link(&self, directory: &Path, recorder: bool, image: &Path) -> Result<(), Error> {
        let absolute = |path: &Path| {
            std::path::absolute(path).map_err(|error| FileError::new("find", path, error))
        };
        let build = Build {
            command: self.command,
            code: absolute(&directory.join("c"))?,
            recorder: recorder.then(|| self.recorder()),
            image: absolute(image)?,
        };
        build.run()
    }
}

/// What a command is to link.
struct Build<'a> {
    /// The words of the shell.
    command: &'a str,
    /// The emitted C.
    code: PathBuf,
    /// The recorder, if the image is to have one.
    recorder: Option<PathBuf>,
    /// Where the image is to lie.
    image: PathBuf,
}

impl Build<'_> {
    /// Runs the command by the shell, in the current directory.
    fn run(&self) -> Result<(), Error> {
        let mut said = tempfile::tempfile()
            .map_err(|error| FileError::new("make a file in", &std::env::temp_dir(), error))?;
        let (out, err) = (duplicate(&said)?, duplicate(&said)?);
        let recorder = self.recorder.as_ref();
        let mut command = Command::new("sh");
        command
            .args(["-c", self.command])
            .env(HEAP_CODE, &self.code)
            .env(RECORDER, recorder.map_or(OsString::new(), OsString::from))
            .env(IMAGE, &self.image)
            .stdin(Stdio::null())
            .stdout(out)
            .stderr(err);
        let run = run_command(command)?;
        match run.ending {
            Ending::Exit(0) if self.image.is_file() => Ok(()),
            Ending::Exit(0) => Err(Error::NoImage {
                command: self.command.to_owned(),
                path: self.image.clone(),
            }),
            ending => Err(Error::Build {
                command: self.command.to_owned(),
                how: match ending {
                    Ending::Exit(status) => format!("ended with status {status}"),
                    Ending::Signal(signal) => format!("was ended by signal {signal}"),
                },
                said: end(&mut said),
            }),
        }
    }
}

fn duplicate(file: &File) -> Result<File, Error> {
    let copy = file.try_clone();
    Ok(copy.map_err(|error| FileError::new("use", Path::new("the output of --build"), error))?)
}

/// The end of what the command said, from the beginning of a line.
fn end(said: &mut File) -> String {
    let mut bytes = Vec::new();
    let length = said.metadata().map_or(0, |metadata| metadata.len());
    let from = length.saturating_sub(SAID);
    // What cannot be read is not shown; that the command failed is known.
    let _ = said
        .seek(SeekFrom::Start(from))
        .and_then(|_| said.take(SAID).read_to_end(&mut bytes));
    let text = String::from_utf8_lossy(&bytes);
    let text = match from {
        0 => &text[..],
        _ => text.split_once('\n').map_or(&text[..], |(_, rest)| rest),
    };
    metes_quantity::printable(text.trim_end()).into_owned()
}
