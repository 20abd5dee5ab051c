//! The program in which an engine of ours runs a module, from its start to its end.
//!
//! `run MODE FILE ARGUMENT...` loads a module and runs it once: what a cold start costs. `warm MODE FILE INSTANCES
//! ARGUMENT...` loads it once and makes an instance for each of so many runs, and prints what each took and how many pages
//! it faulted in. `compile FILE TO` makes the code that mode `ahead` takes. `floor` does nothing: what the program itself
//! costs.
//!
//! *Invariant:* what is printed is printed in one write at the end.

use std::fs;
use std::io::Write;
use std::time::Instant;

use crate::engine::{self, Ended, Mode};
use crate::process::faults_of_this_thread;

/// Status of a module that the engine does not take or stops.
const STOPPED: i32 = 70;
/// Status of wrong arguments.
const WRONG: i32 = 2;
const USAGE: &str = "usage: floor | run MODE FILE ARGUMENT... | warm MODE FILE INSTANCES ARGUMENT... | compile FILE TO";

/// Runs the program with these arguments, and answers its status.
pub fn main(arguments: &[String]) -> i32 {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["floor"] => 0,
        ["run", mode, file, ..] => run(mode, file, &arguments[3..]),
        ["warm", mode, file, instances, ..] => match instances.parse() {
            Ok(instances) => warm(mode, file, instances, &arguments[4..]),
            Err(_) => wrong(USAGE),
        },
        ["compile", file, to] => compile(file, to),
        _ => wrong(USAGE),
    }
}

fn wrong(what: &str) -> i32 {
    eprintln!("{what}");
    WRONG
}

fn stopped(error: &engine::EngineError) -> i32 {
    eprintln!("{error}");
    STOPPED
}

fn loaded(mode: &str, file: &str) -> Result<Box<dyn engine::Loaded>, i32> {
    let mode = Mode::named(mode).ok_or_else(|| wrong(USAGE))?;
    let bytes = fs::read(file).map_err(|error| wrong(&format!("cannot read {file}: {error}")))?;
    // SAFETY: the laboratory gives mode `ahead` a file that it has just had written by `compile`, in a directory that only
    // its user can write to.
    unsafe { engine::load(mode, &bytes) }.map_err(|error| stopped(&error))
}

fn run(mode: &str, file: &str, arguments: &[String]) -> i32 {
    let ended = loaded(mode, file)
        .and_then(|loaded| loaded.run(arguments).map_err(|error| stopped(&error)));
    match ended {
        Ok(Ended {
            status,
            output,
            complaints,
        }) => {
            let _ = std::io::stderr().write_all(&complaints);
            let _ = std::io::stdout().write_all(&output);
            status
        }
        Err(status) => status,
    }
}

fn warm(mode: &str, file: &str, instances: usize, arguments: &[String]) -> i32 {
    let loaded = match loaded(mode, file) {
        Ok(loaded) => loaded,
        Err(status) => return status,
    };
    let mut lines = Vec::with_capacity(instances);
    for _ in 0..instances {
        let (faults, begin) = (faults_of_this_thread(), Instant::now());
        let ended = loaded.run(arguments);
        let took = begin.elapsed().as_nanos();
        let faults = faults_of_this_thread() - faults;
        match ended {
            Ok(Ended { status: 0, .. }) => lines.push((took, faults)),
            Ok(Ended { status, .. }) => return status,
            Err(error) => return stopped(&error),
        }
    }
    let text: String = lines
        .iter()
        .map(|(took, faults)| format!("{took} {faults}\n"))
        .collect();
    i32::from(std::io::stdout().write_all(text.as_bytes()).is_err())
}

fn compile(file: &str, to: &str) -> i32 {
    let bytes = match fs::read(file) {
        Ok(bytes) => bytes,
        Err(error) => return wrong(&format!("cannot read {file}: {error}")),
    };
    match engine::compiled(&bytes) {
        Ok(code) => match fs::write(to, code) {
            Ok(()) => 0,
            Err(error) => wrong(&format!("cannot write {to}: {error}")),
        },
        Err(error) => stopped(&error),
    }
}
