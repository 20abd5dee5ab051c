//! Records a command into a trace file and prints its profile.
//!
//!     cargo run --release -p metes-trace --example trace -- \
//!         target/release/libmetes_record.so out.trace.parquet ls -l

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use metes_trace::record::Choice;
use metes_trace::{RecordOptions, profile, read_parquet, record, write_parquet};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(library), Some(output)) = (arguments.next(), arguments.next().map(PathBuf::from))
    else {
        eprintln!("usage: trace LIBRARY OUTPUT COMMAND...");
        return ExitCode::from(2);
    };
    let command: Vec<OsString> = arguments.collect();
    let run = || -> Result<(), Box<dyn std::error::Error>> {
        let recording = record(&command, &RecordOptions::new(library))?;
        let trace = recording.choose(&Choice::Largest)?;
        write_parquet(&trace, &output)?;
        let length = std::fs::metadata(&output)?.len();
        assert_eq!(read_parquet(&output)?, trace);
        println!("{}", profile(&trace));
        println!("{:?}", trace.provenance);
        println!(
            "{:?}, {} children; {length} bytes in the file, {:.2} an event",
            recording.ending,
            recording.children.len(),
            length as f64 / trace.len() as f64
        );
        Ok(())
    };
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}
