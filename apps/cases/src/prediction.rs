//! Prediction against reality: a heap as the replay sees it, and the same heap
//! emitted as C, built, and run under the packet program.
//!
//! Invariant: a prediction is made from the generated trace alone; nothing that
//! was measured flows back into it.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::PathBuf;
use std::process::Command;

use metes_config::Config;
use metes_emit::{self as emit, BuildError, EmitError};
use metes_explore::{Events, Options, Replayer};
use serde::Deserialize;

use crate::packets::{self, CaptureError, Packet};

/// The packet program's source.
const PROGRAM: &str = include_str!("../../../examples/cases/packets/forward.c");

/// Why a heap was not run.
#[derive(Debug, thiserror::Error)]
pub enum PredictionError {
    /// A file or directory in the way.
    #[error("cannot work in the directory for temporary files: {0}")]
    Scratch(#[from] io::Error),
    /// The capture could not be written.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// No compiler, or it refused.
    #[error("cannot compile the packet program with `{0}`: install gcc or name a compiler in $CC")]
    Compiler(String),
    /// The heap could not be emitted.
    #[error(transparent)]
    Emit(#[from] EmitError),
    /// The emitted code could not be built.
    #[error(transparent)]
    Build(#[from] BuildError),
    /// The program failed on the heap.
    #[error("the packet program ended with {status} on {heap}: {said}")]
    Program {
        /// The heap.
        heap: String,
        /// Its exit status.
        status: String,
        /// What it wrote to stderr.
        said: String,
    },
    /// The heap left no report.
    #[error("{heap} left no report: was the emitted library preloaded?")]
    NoReport {
        /// The heap.
        heap: String,
    },
}

/// What the emitted heap says at the program's end.
#[derive(Debug, Deserialize)]
struct Measured {
    events: u64,
    allocations: u64,
    frees: u64,
    failures: u64,
    peak_live: u64,
    footprint: u64,
    requests: String,
    placements: String,
    #[serde(default)]
    record_reads: Option<u64>,
    #[serde(default)]
    record_writes: Option<u64>,
}

/// One metric of a heap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compared {
    /// Which.
    pub metric: &'static str,
    /// By replay of the generated trace.
    pub predicted: String,
    /// By the emitted heap under the program.
    pub measured: String,
}

impl Compared {
    /// Whether both are the same.
    pub fn equal(&self) -> bool {
        self.predicted == self.measured
    }
}

/// The program, its capture, and the trace that it makes.
#[derive(Debug)]
pub struct Bench {
    scratch: tempfile::TempDir,
    program: PathBuf,
    capture: PathBuf,
    events: Events,
}

impl Bench {
    /// Builds the program and writes the capture. A second.
    ///
    /// # Errors
    /// [`PredictionError`] without a compiler or room for temporary files.
    pub fn new(packets: &[Packet]) -> Result<Bench, PredictionError> {
        let scratch = tempfile::Builder::new().prefix("metes-cases-").tempdir()?;
        let capture = scratch.path().join("packets.pcap");
        packets::write_capture(packets, &mut BufWriter::new(File::create(&capture)?))?;
        let source = scratch.path().join("forward.c");
        fs::write(&source, PROGRAM)?;
        let program = scratch.path().join("forward");
        let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
        let mut words = compiler.split_whitespace();
        let built = Command::new(words.next().unwrap_or("cc"))
            .args(words)
            .args(["-O2", "-std=c99", "-D_POSIX_C_SOURCE=200809L", "-o"])
            .args([&program, &source])
            .output();
        if !built.is_ok_and(|built| built.status.success()) {
            return Err(PredictionError::Compiler(compiler));
        }
        let events = Events::try_from(&packets::trace(packets));
        Ok(Bench {
            scratch,
            program,
            capture,
            events: events.map_err(|error| io::Error::other(error.to_string()))?,
        })
    }

    /// The trace that the program makes.
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// Predicts a heap, emits and builds it, runs the program on it, and compares
    /// metric by metric. A second or two, most of it the compiler's. May run in
    /// several threads at once, with different numbers.
    ///
    /// # Errors
    /// [`PredictionError`] when the heap cannot be built or the program fails.
    pub fn compare(&self, number: u64, config: &Config) -> Result<Vec<Compared>, PredictionError> {
        let name = config.name();
        let options = Options {
            arena: metes_explore::Arena {
                increment: config.arena.increment,
                ..metes_explore::Arena::default()
            },
            ..Options::default()
        };
        let (predicted, _) = Replayer::new().replay(&name, &config.heap, &self.events, &options);

        let place = self.scratch.path().join(number.to_string());
        let emission = emit::Options {
            heap_toml: config.to_toml(),
            ..emit::Options::default()
        };
        emit::write(&emit::emit(&config.heap, &emission)?, &place)?;
        let library = emit::build_preload(&place)?;
        let report = place.join("report.json");
        let ran = Command::new(&self.program)
            .arg(&self.capture)
            .env("LD_PRELOAD", &library)
            .env("METES_REPORT", &report)
            .output()?;
        if !ran.status.success() {
            return Err(PredictionError::Program {
                heap: name,
                status: ran.status.to_string(),
                said: String::from_utf8_lossy(&ran.stderr).into_owned(),
            });
        }
        let text = fs::read_to_string(&report).unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        let measured: Measured =
            serde_json::from_str(line).map_err(|_| PredictionError::NoReport { heap: name })?;
        fs::remove_dir_all(&place)?;

        let mut compared = vec![
            row("events", predicted.events, measured.events),
            row("allocations", predicted.allocations, measured.allocations),
            row("frees", predicted.frees, measured.frees),
            row("failures", predicted.failed, measured.failures),
            row("peak live", predicted.peak_live, measured.peak_live),
            row("footprint", predicted.footprint, measured.footprint),
            row("requests", predicted.requests, measured.requests),
            row("placements", predicted.placements, measured.placements),
        ];
        if let Some(reads) = measured.record_reads {
            compared.push(row("record reads", predicted.record_reads, reads));
        }
        if let Some(writes) = measured.record_writes {
            compared.push(row("record writes", predicted.record_writes, writes));
        }
        Ok(compared)
    }
}

fn row(metric: &'static str, predicted: impl ToString, measured: impl ToString) -> Compared {
    Compared {
        metric,
        predicted: predicted.to_string(),
        measured: measured.to_string(),
    }
}
