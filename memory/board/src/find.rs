//! The boards of the processes that run here.
//!
//! Invariant: a board is found at the process that made it, and not at those that inherited its
//! descriptor by a fork.

use std::fs;
use std::path::{Path, PathBuf};

use crate::board::Board;
use crate::error::Error;

/// What the files of boards are called in a process's list of them.
pub const NAME: &str = "metes-device-heap";

/// All boards that this user may look at, by process and then in the order in which they were
/// made; those that cannot be read as the reason. O(processes).
pub fn find() -> Vec<Result<Board, Error>> {
    let mut found: Vec<_> = numbers(Path::new("/proc"))
        .into_iter()
        .flat_map(boards)
        .collect();
    found.sort_by_key(|board| match board {
        Ok(board) => (board.process(), board.header().serial),
        Err(_) => (u32::MAX, 0),
    });
    found
}

/// The names in a directory that are numbers.
fn numbers(directory: &Path) -> Vec<u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// The boards that a process has made.
fn boards(process: u32) -> Vec<Result<Board, Error>> {
    let directory = PathBuf::from(format!("/proc/{process}/fd"));
    let mut files: Vec<PathBuf> = numbers(&directory)
        .into_iter()
        .map(|number| directory.join(number.to_string()))
        .filter(|file| is_board(file))
        .collect();
    files.sort();
    let mut own: Vec<Board> = Vec::new();
    let mut failed = Vec::new();
    for file in files {
        match Board::open(&file) {
            // The same file may have several descriptors.
            Ok(board) if own.iter().any(|other| other.header() == board.header()) => {}
            Ok(board) if is_called(process, board.header().process) => own.push(board),
            Ok(_) => {}
            // It ended meanwhile, or is no board of ours.
            Err(Error::Read { .. } | Error::Foreign { .. }) => {}
            Err(error) => failed.push(error),
        }
    }
    own.into_iter()
        .map(Ok)
        .chain(failed.into_iter().map(Err))
        .collect()
}

fn is_board(file: &Path) -> bool {
    fs::read_link(file).is_ok_and(|target| {
        let target = target.to_string_lossy();
        target
            .strip_prefix("/memfd:")
            .and_then(|rest| rest.split(' ').next())
            == Some(NAME)
    })
}

/// Whether a process calls itself so, perhaps in a container that numbers its own.
fn is_called(process: u32, own: u32) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{process}/status")) else {
        return false;
    };
    let names = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
    match names.and_then(|names| names.split_whitespace().last()) {
        Some(name) => name.parse() == Ok(own),
        None => process == own,
    }
}

/// A process, told apart from a later one of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) number: u32,
    /// Ticks from the start of the machine to its own.
    started: u64,
}

impl Process {
    /// The process whose descriptor a path names.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let rest = path.strip_prefix("/proc").ok()?;
        let mut parts = rest.iter().map(|part| part.to_str());
        let number = match parts.next()?? {
            "self" => std::process::id(),
            number => number.parse().ok()?,
        };
        (parts.next()?? == "fd").then_some(())?;
        Self::running(number)
    }

    fn running(number: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
        // The program's name, in parentheses, may have any characters.
        let (_, rest) = text.rsplit_once(") ")?;
        let mut fields = rest.split(' ');
        // Zombies have ended, and wait for their parent only.
        if matches!(fields.next()?, "Z" | "X") {
            return None;
        }
        // The 22nd field, by proc_pid_stat(5); the state is the third.
        let started = fields.nth(18)?.parse().ok()?;
        Some(Process { number, started })
    }

    pub(crate) fn runs(&self) -> bool {
        Self::running(self.number) == Some(*self)
    }
}
