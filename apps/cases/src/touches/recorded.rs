//! Recorded touch traces, kept here compressed (Zstandard), as their programs are not everywhere.
//!
//! `examples/cases/touches/run` makes them again: byte for byte those of the programs in C and of minisat; ffmpeg and
//! PHP ask for some blocks more or less from run to run.
//!
//! Invariant: each is a touch trace from its first line to its last.

use std::io::{BufReader, Read};
use std::path::Path;

use metes_trace::{TouchOperation, TouchReader, TraceError};

/// The touches of a program: its requests, and the first access to each 4096 bytes of each block.
#[derive(Clone, Copy, Debug)]
pub struct Recorded {
    /// Short name of the program.
    pub name: &'static str,
    /// The paper's program for which it stands.
    pub stands_for: &'static str,
    /// What the program is and does.
    pub what: &'static str,
    compressed: &'static [u8],
}

/// The trace of that name in the folder `traces`.
macro_rules! kept {
    ($name:literal) => {
        include_bytes!(concat!("../../traces/", $name, ".touches.zst"))
    };
}

/// All of them, in the order of the paper's table I.
pub const RECORDED: [Recorded; 6] = [
    Recorded {
        name: "ffmpeg",
        stands_for: "avconv",
        what: "ffmpeg 5.1 makes ten frames of a test picture, 160 by 120, and encodes them as MPEG-4",
        compressed: kept!("ffmpeg"),
    },
    Recorded {
        name: "fft",
        stands_for: "FFT",
        what: "recursive transform of 2^18 elements and back, with new arrays for every part",
        compressed: kept!("fft"),
    },
    Recorded {
        name: "mc",
        stands_for: "mc",
        what: "counts 4000 elements of 200 values in each of 100 streams, through a sparse table of 16 MiB",
        compressed: kept!("mc"),
    },
    Recorded {
        name: "models",
        stands_for: "sharpSAT",
        what: "counts the models of 200 random clauses over 60 variables, part by part, with a cache",
        compressed: kept!("models"),
    },
    Recorded {
        name: "minisat",
        stands_for: "antom",
        what: "minisat 2.2 decides 630 random clauses over 150 variables",
        compressed: kept!("minisat"),
    },
    Recorded {
        name: "php",
        stands_for: "PHP (neural net)",
        what: "PHP 8.2, malloc in place of its own pools, trains a network on exclusive or for 80 epochs",
        compressed: kept!("php"),
    },
];

/// The one of a name.
#[must_use]
pub fn recorded(name: &str) -> Option<Recorded> {
    RECORDED.into_iter().find(|recorded| recorded.name == name)
}

impl Recorded {
    /// Its text, decompressed as it is read.
    ///
    /// # Errors
    /// There is no memory for the decompressor.
    pub fn text(&self) -> std::io::Result<impl Read + use<>> {
        zstd::Decoder::with_buffer(self.compressed)
    }

    /// Its operations. O(1) each, in memory for the live blocks.
    ///
    /// # Errors
    /// [`TraceError::Io`] if there is no memory for the decompressor.
    pub fn operations(
        &self,
    ) -> Result<impl Iterator<Item = Result<TouchOperation, TraceError>> + use<>, TraceError> {
        let name = Path::new(self.name);
        let text = self.text().map_err(|source| TraceError::Io {
            action: "read",
            path: name.to_owned(),
            source,
        })?;
        Ok(TouchReader::new(BufReader::new(text), name))
    }
}
