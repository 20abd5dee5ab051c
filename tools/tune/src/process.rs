//! Which process of a recording is tuned.
//!
//! Invariant: a process that came from `fork` without running a program of its
//! own is chosen only when it is asked for: part of its heap is its parent's.

use metes_trace::record::ProcessTrace;
use metes_trace::{RecordError, Recording, Trace};

use crate::error::Error;

/// Another process is taken for the one that matters if it makes this many
/// times the requests of the command itself.
const MUCH_MORE: u64 = 2;

/// The process that was chosen.
#[derive(Clone, Debug)]
pub struct Process {
    /// The name it was called by.
    pub name: String,
    /// It is the command itself.
    pub is_main: bool,
    /// The program that it replaced itself by (`exec`): of its heap nothing can
    /// be measured then.
    pub replaced_by: Option<String>,
    /// The program that ran in the same process before it.
    pub in_place_of: Option<String>,
    /// Number of recorded processes.
    pub of: usize,
}

/// The process that `wanted` names, or the one that matters, with its trace. All
/// else of the recording is given up: a trace may take as much memory as there is.
pub(super) fn choose(
    recording: Recording,
    wanted: Option<&str>,
) -> Result<(Process, Trace), Error> {
    let (chosen, child) = find(&recording, wanted)?;
    Ok((chosen, child.unwrap_or(recording.main)))
}

/// The process that `wanted` names, or the one that matters, without its trace if that is of the
/// command itself.
fn find(recording: &Recording, wanted: Option<&str>) -> Result<(Process, Option<Trace>), Error> {
    let processes: Vec<&ProcessTrace> = recording.processes().collect();
    let of = processes.len();
    let main = recording.main_process.as_ref();
    let process = match wanted {
        Some(wanted) => Some(named(&processes, wanted)?),
        None => matters(main, &recording.children),
    };
    let process = process.ok_or_else(|| {
        Error::input("no process of this program made a request that could be recorded")
    })?;
    let is_main = main.is_some_and(|main| std::ptr::eq(main, process));
    let child = match is_main {
        true => None,
        false => Some(process.load()?.trace),
    };
    if child.as_ref().unwrap_or(&recording.main).is_empty() {
        return Err(Error::input(format!(
            "process {} made no request, so there is nothing to tune: name another with --process \
             ({})",
            called(process),
            list(&processes)
        )));
    }
    let same = |other: &&&ProcessTrace| other.pid == process.pid && other.replaced_by.is_some();
    let chosen = Process {
        name: called(process).to_owned(),
        is_main,
        replaced_by: process.replaced_by.clone(),
        in_place_of: (processes.iter().find(same))
            .filter(|_| process.replaced_by.is_none() && !process.forked)
            .map(|before| before.name().to_owned()),
        of,
    };
    Ok((chosen, child))
}

fn matters<'r>(
    main: Option<&'r ProcessTrace>,
    children: &'r [ProcessTrace],
) -> Option<&'r ProcessTrace> {
    // One that replaced itself by another program leaves nothing to compare with.
    let own = children.iter();
    let own = own.filter(|child| !child.forked && child.replaced_by.is_none());
    // The first of equals, so that equal recordings choose equally.
    let largest = own.reduce(|best, child| {
        if child.raw_words > best.raw_words {
            child
        } else {
            best
        }
    });
    match (main, largest) {
        (Some(main), Some(child)) if child.raw_words > MUCH_MORE * main.raw_words => Some(child),
        (Some(main), _) => Some(main),
        (None, largest) => largest,
    }
}

fn named<'r>(processes: &[&'r ProcessTrace], wanted: &str) -> Result<&'r ProcessTrace, Error> {
    let found = match wanted.parse::<usize>() {
        Ok(number) => processes.get(number),
        Err(_) => (processes.iter().find(|process| process.name() == wanted))
            .or_else(|| processes.iter().find(|process| called(process) == wanted)),
    };
    found.copied().ok_or_else(|| {
        let there_are = list(processes);
        RecordError::NoSuchProcess { there_are }.into()
    })
}

/// What a process was called by: a program may have several names, as links to one
/// file, and its file that of another.
fn called(process: &ProcessTrace) -> &str {
    let word = process.command.first().map_or("", String::as_str);
    let name = word.rsplit('/').next().unwrap_or_default();
    // A login shell is called by a name with a dash before.
    match name.trim_start_matches('-') {
        "" => process.name(),
        name => name,
    }
}

fn list(processes: &[&ProcessTrace]) -> String {
    /// A build may have thousands.
    const SHOWN: usize = 20;
    let names = processes.iter().enumerate().take(SHOWN);
    let names: Vec<String> = names
        .map(|(number, process)| format!("{number} is {}", called(process)))
        .collect();
    let more = if processes.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", names.join(", "))
}
