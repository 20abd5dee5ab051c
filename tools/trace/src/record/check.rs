//! Whether a program can be recorded by preloading.
//!
//! Invariant: looks only, runs nothing. What cannot be found out beforehand
//! (a program that brings its own malloc) shows in an empty recording.

use std::ffi::{CString, OsStr, OsString};
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::error::{Obstacle, RecordError};

/// A program that the system would run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The file.
    pub path: PathBuf,
}

/// Finds `name` as a shell would: a path if it has a slash, else in PATH.
///
/// # Errors
/// [`RecordError::NotFound`], [`RecordError::NotExecutable`].
pub fn find_program(name: &OsStr) -> Result<Program, RecordError> {
    let given = name.to_string_lossy().into_owned();
    if name.as_bytes().contains(&b'/') {
        let path = PathBuf::from(name);
        return match executable(&path) {
            Ok(()) => Ok(Program { path }),
            Err(Some(reason)) => Err(RecordError::NotExecutable { path, reason }),
            Err(None) => Err(RecordError::NotFound {
                program: given,
                searched: "",
            }),
        };
    }
    let mut refused = None;
    let path = std::env::var_os("PATH").unwrap_or_else(|| OsString::from("/bin:/usr/bin"));
    for directory in std::env::split_paths(&path) {
        let path = directory.join(name);
        match executable(&path) {
            Ok(()) => return Ok(Program { path }),
            Err(Some(reason)) => {
                refused = refused.or(Some(RecordError::NotExecutable { path, reason }));
            }
            Err(None) => {}
        }
    }
    Err(refused.unwrap_or(RecordError::NotFound {
        program: given,
        searched: " in PATH",
    }))
}

/// Err(None) if there is no such file, Err(why) if it cannot be run.
fn executable(path: &Path) -> Result<(), Option<String>> {
    let metadata = std::fs::metadata(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => None,
        _ => Some(error.to_string()),
    })?;
    if !metadata.is_file() {
        return Err(Some("it is no file; name a program".to_owned()));
    }
    let name = CString::new(path.as_os_str().as_bytes())
        .map_err(|_| Some("its name holds a zero byte".to_owned()))?;
    // SAFETY: `name` is a C string.
    if unsafe { libc::access(name.as_ptr(), libc::X_OK) } != 0 {
        return Err(Some(
            "it is not executable; set its x bit with chmod +x".to_owned(),
        ));
    }
    Ok(())
}

/// Interpreters of interpreters that are followed, as the kernel does.
pub(super) const DEPTH: usize = 5;

impl Program {
    /// Checks that the loader would load a library before this program, or
    /// before the interpreter if it is a script.
    ///
    /// # Errors
    /// [`RecordError::CannotPreload`], or an unreadable or missing interpreter.
    pub fn check_preload(&self) -> Result<(), RecordError> {
        let mut path = self.path.clone();
        for _ in 0..DEPTH {
            let unreadable = |error: io::Error| RecordError::NotExecutable {
                path: path.clone(),
                reason: error.to_string(),
            };
            let mut file = File::open(&path).map_err(unreadable)?;
            let metadata = file.metadata().map_err(unreadable)?;
            let mut head = [0u8; 256];
            let length = fill(&mut file, &mut head).map_err(unreadable)?;
            let head = &head[..length];
            match interpreter(head) {
                Some(next) => path = follow(next)?,
                None => {
                    return privileges(&path, &metadata)
                        .and_then(|()| elf(&mut file, head))
                        .map_err(|obstacle| RecordError::CannotPreload { path, obstacle });
                }
            }
        }
        Err(RecordError::CannotPreload {
            path,
            obstacle: Obstacle::Format,
        })
    }
}

pub(super) fn fill(file: &mut File, place: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < place.len() {
        match file.read(&mut place[length..])? {
            0 => break,
            n => length += n,
        }
    }
    Ok(length)
}

/// The words of a `#!` line.
pub(super) fn interpreter(head: &[u8]) -> Option<Vec<OsString>> {
    let line = head.strip_prefix(b"#!")?;
    let line = line.split(|&byte| byte == b'\n').next()?;
    let words = line
        .split(|byte| byte.is_ascii_whitespace())
        .filter(|word| !word.is_empty());
    let words: Vec<_> = words
        .map(|word| OsString::from_vec(word.to_vec()))
        .collect();
    (!words.is_empty()).then_some(words)
}

/// The file that a `#!` line leads to; `env` leads to the program it names.
fn follow(words: Vec<OsString>) -> Result<PathBuf, RecordError> {
    let path = PathBuf::from(&words[0]);
    let named = words[1..].iter().find(|word| {
        let bytes = word.as_bytes();
        !bytes.starts_with(b"-") && !bytes.contains(&b'=')
    });
    if let (Some("env"), Some(named)) = (path.file_name().and_then(OsStr::to_str), named) {
        return Ok(find_program(named)?.path);
    }
    Ok(find_program(path.as_os_str())?.path)
}

/// The cases in which the kernel has the loader ignore LD_PRELOAD.
fn privileges(path: &Path, metadata: &Metadata) -> Result<(), Obstacle> {
    // SAFETY: these calls cannot fail.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    if metadata.mode() & libc::S_ISUID != 0 && metadata.uid() != user {
        return Err(Obstacle::Privileged("setuid"));
    }
    let group_bits = libc::S_ISGID | libc::S_IXGRP;
    if metadata.mode() & group_bits == group_bits && metadata.gid() != group {
        return Err(Obstacle::Privileged("setgid"));
    }
    let name = CString::new(path.as_os_str().as_bytes()).unwrap_or_default();
    let attribute = c"security.capability";
    // SAFETY: two C strings; a size of zero asks for the length only.
    let length =
        unsafe { libc::getxattr(name.as_ptr(), attribute.as_ptr(), std::ptr::null_mut(), 0) };
    if user != 0 && length > 0 {
        return Err(Obstacle::Privileged("file capabilities"));
    }
    Ok(())
}

const EI_CLASS: usize = 4;
const ELFCLASS64: u8 = 2;
const PT_INTERP: u32 = 3;
#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = 183;

/// Checks kind of processor, dynamic linking and C library.
fn elf(file: &mut File, head: &[u8]) -> Result<(), Obstacle> {
    if !head.starts_with(b"\x7fELF") {
        return Err(Obstacle::Format);
    }
    if head.get(EI_CLASS) != Some(&ELFCLASS64) {
        return Err(Obstacle::Machine);
    }
    let short = |offset: usize| Some(u16::from_le_bytes(*head.get(offset..)?.first_chunk()?));
    if short(18).ok_or(Obstacle::Format)? != MACHINE {
        return Err(Obstacle::Machine);
    }
    let table = head
        .get(32..)
        .and_then(|rest| rest.first_chunk())
        .ok_or(Obstacle::Format)?;
    let table = u64::from_le_bytes(*table);
    let entry = u64::from(short(54).ok_or(Obstacle::Format)?);
    let count = u64::from(short(56).ok_or(Obstacle::Format)?);
    for index in 0..count {
        let mut bytes = [0u8; 56];
        let offset = table.checked_add(index * entry).ok_or(Obstacle::Format)?;
        read_at(file, offset, &mut bytes).map_err(|_| Obstacle::Format)?;
        let (kind, rest) = bytes.split_first_chunk().ok_or(Obstacle::Format)?;
        if u32::from_le_bytes(*kind) != PT_INTERP {
            continue;
        }
        let word = |offset: usize| {
            rest.get(offset..)
                .and_then(|rest| rest.first_chunk())
                .map_or(0, |b| u64::from_le_bytes(*b))
        };
        // Offset and size in the file; `rest` begins at byte 4 of the entry.
        let mut loader = vec![0u8; word(28).min(4096) as usize];
        read_at(file, word(4), &mut loader).map_err(|_| Obstacle::Format)?;
        let musl = loader.windows(7).any(|window| window == b"ld-musl");
        return if musl { Err(Obstacle::Musl) } else { Ok(()) };
    }
    Err(Obstacle::Static)
}

fn read_at(file: &mut File, offset: u64, place: &mut [u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(place)
}
