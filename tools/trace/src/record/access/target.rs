//! What a program is made for, by its ELF header.
//!
//! Invariant: looks only, runs nothing.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use super::super::check::{DEPTH, Program, fill, find_program, interpreter};
use super::super::error::{Obstacle, RecordError};

/// See the module.
pub(super) struct Target {
    /// Name of the machine.
    pub(super) machine: String,
    /// The emulator's name.
    pub(super) qemu: String,
    /// A dynamic loader takes part.
    pub(super) dynamic: bool,
    /// It is the machine that this build runs on.
    pub(super) native: bool,
}

/// ELF's number of a machine, whether its words have 64 bits and are
/// big-endian where that matters, and QEMU's name of it.
const MACHINES: [(u16, Option<bool>, Option<bool>, &str); 21] = [
    (62, Some(true), None, "x86_64"),
    (3, None, None, "i386"),
    (40, None, Some(false), "arm"),
    (40, None, Some(true), "armeb"),
    (183, None, Some(false), "aarch64"),
    (183, None, Some(true), "aarch64_be"),
    (2, None, None, "sparc"),
    (18, None, None, "sparc32plus"),
    (43, None, None, "sparc64"),
    (243, Some(false), None, "riscv32"),
    (243, Some(true), None, "riscv64"),
    (92, None, None, "or1k"),
    (8, Some(false), Some(true), "mips"),
    (8, Some(false), Some(false), "mipsel"),
    (8, Some(true), Some(true), "mips64"),
    (8, Some(true), Some(false), "mips64el"),
    (20, None, None, "ppc"),
    (21, None, Some(true), "ppc64"),
    (21, None, Some(false), "ppc64le"),
    (22, Some(true), None, "s390x"),
    (258, Some(true), None, "loongarch64"),
];

const PT_INTERP: u32 = 3;

/// The program that `command` runs in the end, and the command that names it:
/// QEMU takes no scripts, so the interpreter is put in front of one.
pub(super) fn resolve(
    mut program: Program,
    command: &[OsString],
) -> Result<(Program, Vec<OsString>), RecordError> {
    let mut command = command.to_vec();
    for _ in 0..DEPTH {
        let mut head = [0u8; 256];
        let unreadable = |error: std::io::Error| RecordError::NotExecutable {
            path: program.path.clone(),
            reason: error.to_string(),
        };
        let mut file = File::open(&program.path).map_err(unreadable)?;
        let length = fill(&mut file, &mut head).map_err(unreadable)?;
        let Some(words) = interpreter(&head[..length]) else {
            return Ok((program, command));
        };
        let script = program.path.clone().into_os_string();
        let (first, rest) = words.split_first().ok_or(RecordError::NoCommand)?;
        let mut before = vec![first.clone()];
        if Path::new(first)
            .file_name()
            .is_some_and(|name| name == "env")
        {
            // `env` would replace itself by the program that it names.
            let is_program = |word: &&OsString| {
                !word.as_bytes().starts_with(b"-") && !word.as_bytes().contains(&b'=')
            };
            if let Some(at) = rest.iter().position(|word| is_program(&word)) {
                before = rest[at..].to_vec();
            }
        } else if !rest.is_empty() {
            // The kernel gives all of the line as one argument.
            let rest: Vec<&[u8]> = rest.iter().map(|word| word.as_bytes()).collect();
            before.push(OsString::from_vec(rest.join(&b' ')));
        }
        program = find_program(&before[0])?;
        before.push(script);
        before.extend_from_slice(&command[1..]);
        command = before;
    }
    Err(RecordError::CannotPreload {
        path: program.path,
        obstacle: Obstacle::Format,
    })
}

/// Looks at the ELF file `path`.
pub(super) fn look(path: &Path) -> Result<Target, RecordError> {
    let cannot = |reason: String| RecordError::CannotCount {
        path: path.to_owned(),
        reason,
    };
    let mut file = File::open(path).map_err(|error| cannot(error.to_string()))?;
    let mut head = [0u8; 64];
    let length = fill(&mut file, &mut head).map_err(|error| cannot(error.to_string()))?;
    let elf = Elf::new(&head[..length])
        .ok_or_else(|| cannot("it is neither an ELF program nor a script".to_owned()))?;
    let found = MACHINES.iter().find(|(machine, long, big, _)| {
        *machine == elf.machine
            && long.is_none_or(|long| long == elf.long)
            && big.is_none_or(|big| big == elf.big)
    });
    let (machine, .., name) = found.ok_or_else(|| {
        cannot(format!(
            "it is made for a machine (ELF number {}) that is not known here; name its emulator \
             with --qemu",
            elf.machine
        ))
    })?;
    let dynamic = elf
        .has_interpreter(&mut file)
        .map_err(|error| cannot(error.to_string()))?;
    let own = if cfg!(target_arch = "x86_64") {
        62
    } else {
        183
    };
    Ok(Target {
        machine: (*name).to_owned(),
        qemu: format!("qemu-{name}"),
        dynamic,
        native: *machine == own && elf.long && !elf.big,
    })
}

/// The part of an ELF header that matters.
struct Elf {
    long: bool,
    big: bool,
    machine: u16,
    table: u64,
    entry: u64,
    count: u64,
}

impl Elf {
    fn new(head: &[u8]) -> Option<Elf> {
        if !head.starts_with(b"\x7fELF") {
            return None;
        }
        let (long, big) = (*head.get(4)? == 2, *head.get(5)? == 2);
        let number = |at: usize, bytes: usize| {
            let bytes = head.get(at..at + bytes)?;
            Some(number(bytes, big))
        };
        let (table, sizes) = if long {
            (number(32, 8)?, 54)
        } else {
            (number(28, 4)?, 42)
        };
        Some(Elf {
            long,
            big,
            machine: number(18, 2)? as u16,
            table,
            entry: number(sizes, 2)?,
            count: number(sizes + 2, 2)?,
        })
    }

    fn has_interpreter(&self, file: &mut File) -> std::io::Result<bool> {
        for index in 0..self.count {
            let mut kind = [0u8; 4];
            let at = self.table.saturating_add(index * self.entry);
            file.seek(SeekFrom::Start(at))?;
            file.read_exact(&mut kind)?;
            if number(&kind, self.big) == u64::from(PT_INTERP) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn number(bytes: &[u8], big: bool) -> u64 {
    let add = |number: u64, &byte: &u8| number << 8 | u64::from(byte);
    if big {
        bytes.iter().fold(0, add)
    } else {
        bytes.iter().rev().fold(0, add)
    }
}
