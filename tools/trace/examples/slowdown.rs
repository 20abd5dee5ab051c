//! What recording costs: runs a command alternately without and with the
//! recorder and prints the ratio of the least processor times.
//!
//!     cargo build --release -p metes-record
//!     cargo run --release -p metes-trace --example slowdown -- \
//!         target/release/libmetes_record.so 7 sqlite3 :memory: '.read fill.sql'

use std::ffi::OsString;
use std::fs::File;
use std::process::{Command, ExitCode, Stdio};

use metes_trace::{RecordOptions, record};

/// Processor time of the children waited for so far, seconds.
fn children_seconds() -> f64 {
    // SAFETY: all-zero bytes are a valid value, and the place is valid.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let library = arguments.next();
    let runs = arguments
        .next()
        .and_then(|text| text.to_str()?.parse::<u32>().ok());
    let command: Vec<OsString> = arguments.collect();
    let (Some(library), Some(runs), [program, rest @ ..]) = (library, runs, &command[..]) else {
        eprintln!("usage: slowdown LIBRARY RUNS COMMAND...");
        return ExitCode::from(2);
    };
    // The recorded program inherits our standard output: point it elsewhere.
    let null = File::options()
        .write(true)
        .open("/dev/null")
        .expect("/dev/null is there");
    // SAFETY: duplicates descriptors that are open.
    let real = unsafe {
        let real = libc::dup(1);
        libc::dup2(std::os::fd::AsRawFd::as_raw_fd(&null), 1);
        real
    };
    let (mut plain, mut recorded, mut events, mut words) = (f64::MAX, f64::MAX, 0, 0);
    for _ in 0..runs {
        let before = children_seconds();
        let status = Command::new(program)
            .args(rest)
            .stdin(Stdio::null())
            .status();
        if let Err(error) = status {
            eprintln!("{}: {error}", program.display());
            return ExitCode::from(2);
        }
        plain = plain.min(children_seconds() - before);
        match record(&command, &RecordOptions::new(&library)) {
            Ok(recording) => {
                recorded = recorded.min(recording.cpu_seconds);
                events = recording.main.len();
                words = recording.processes().map(|process| process.raw_words).sum();
            }
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::from(2);
            }
        }
    }
    // SAFETY: gives standard output back.
    unsafe { libc::dup2(real, 1) };
    println!(
        "{events} events in the main process, {words} words in all: {plain:.3} s plain, \
         {recorded:.3} s recorded, ratio {:.3}",
        recorded / plain
    );
    ExitCode::SUCCESS
}
