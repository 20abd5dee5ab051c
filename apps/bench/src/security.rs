//! A score of heaps as detectors: how many of the [programs](crate::misuse) that do
//! one bad thing are found, by size of the block.
//!
//! Invariant: a program counts as found only if its process said so or was aborted;
//! a process that a fault of memory ended counts as crashed.

use std::ffi::OsString;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};

use serde::Serialize;

use crate::Error;
use crate::misuse::{NOT_APPLICABLE, OBEYED, PROGRAMS, Program, UNNOTICED};
use crate::report::{Cell, Table};

/// Sizes of the blocks: without and with slack, small and large.
pub(crate) const SIZES: [usize; 10] = [8, 24, 40, 60, 100, 256, 1000, 4000, 20_000, 100_000];

/// Where Debian puts allocators that are peers here.
const PEERS: [(&str, &str); 2] = [
    ("mimalloc", "libmimalloc.so.2"),
    ("jemalloc", "libjemalloc.so.2"),
];
const LIBRARIES: [&str; 2] = ["/usr/lib/x86_64-linux-gnu", "/usr/lib"];

/// A heap under which the programs run.
#[derive(Clone, Debug)]
pub(crate) struct Detector {
    /// Its name.
    pub(crate) name: String,
    environment: Vec<(&'static str, OsString)>,
}

impl Detector {
    /// A heap of ours, by its spec.
    pub(crate) fn metes(spec: &str, library: &Path) -> Self {
        Detector {
            name: format!("metes {spec}"),
            environment: vec![("LD_PRELOAD", library.into()), ("METES_HEAP", spec.into())],
        }
    }
}

/// What became of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    /// It was ended, or told of, by the heap.
    Detected,
    /// It went on as if nothing had been.
    Unnoticed,
    /// The heap did what it must not.
    Obeyed,
    /// A fault of memory or a hang ended it.
    Crashed,
}

/// What became of one program under one heap.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Score {
    /// Heap.
    pub(crate) heap: String,
    /// Program.
    pub(crate) program: &'static str,
    /// Whether a hardened heap must find it at every size.
    pub(crate) certain: bool,
    /// Sizes and outcomes.
    pub(crate) outcomes: Vec<(usize, Outcome)>,
}

impl Score {
    fn count(&self, outcome: Outcome) -> usize {
        let own = self.outcomes.iter();
        own.filter(|(_, other)| *other == outcome).count()
    }

    /// Whether it was found at every size.
    pub(crate) fn full(&self) -> bool {
        self.count(Outcome::Detected) == self.outcomes.len()
    }

    fn cell(&self) -> Cell {
        let detected = format!("{}/{}", self.count(Outcome::Detected), self.outcomes.len());
        let others = [(Outcome::Obeyed, 'o'), (Outcome::Crashed, 'c')];
        let others = others
            .iter()
            .map(|&(outcome, letter)| match self.count(outcome) {
                0 => String::new(),
                count => format!(" {letter}{count}"),
            });
        Cell::text(others.fold(detected, |text, other| text + &other))
    }
}

/// The preload library: the one given, or the one beside this program.
pub(crate) fn library(given: Option<PathBuf>) -> Result<PathBuf, Error> {
    if let Some(path) = given {
        return path.canonicalize().map_err(|_| Error::NoLibrary(path));
    }
    let own = std::env::current_exe().map_err(Error::Program)?;
    let beside = own.ancestors().skip(1).take(2);
    beside
        .map(|directory| directory.join("libmetes_preload.so"))
        .find(|path| path.is_file())
        .ok_or_else(|| Error::NoLibrary(own.with_file_name("libmetes_preload.so")))
}

/// Ours, the C library's and the peers that are installed.
pub(crate) fn detectors(library: &Path) -> Vec<Detector> {
    let mut detectors = vec![
        Detector::metes("tlsf:store=hardened", library),
        Detector::metes("tlsf", library),
        Detector {
            name: "glibc".to_owned(),
            environment: Vec::new(),
        },
    ];
    for (name, file) in PEERS {
        let found = LIBRARIES
            .iter()
            .map(|directory| Path::new(directory).join(file));
        if let Some(path) = found.into_iter().find(|path| path.is_file()) {
            detectors.push(Detector {
                name: name.to_owned(),
                environment: vec![("LD_PRELOAD", path.into())],
            });
        }
    }
    detectors
}

/// Runs one program at every size.
pub(crate) fn score(
    program: &Program,
    number: usize,
    detector: &Detector,
    executable: &Path,
) -> Result<Score, Error> {
    let mut outcomes = Vec::new();
    for size in SIZES {
        let mut command = Command::new(executable);
        command
            .args(["misuse", &number.to_string(), &size.to_string()])
            .env_remove("LD_PRELOAD")
            .envs(detector.environment.iter().map(|(key, value)| (key, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        // SAFETY: both are functions of the system that only change the process.
        unsafe {
            command.pre_exec(|| {
                // What loops is ended; what aborts leaves no core behind.
                libc::alarm(10);
                let none = libc::rlimit {
                    rlim_cur: 0,
                    rlim_max: 0,
                };
                libc::setrlimit(libc::RLIMIT_CORE, &none);
                Ok(())
            });
        }
        let output = command.output().map_err(Error::Program)?;
        if let Some(outcome) = outcome(output.status, !output.stderr.is_empty()) {
            outcomes.push((size, outcome));
        }
    }
    Ok(Score {
        heap: detector.name.clone(),
        program: program.name,
        certain: program.certain,
        outcomes,
    })
}

fn outcome(status: ExitStatus, said: bool) -> Option<Outcome> {
    Some(match (status.code(), status.signal()) {
        (Some(NOT_APPLICABLE), _) => return None,
        (_, Some(libc::SIGABRT)) => Outcome::Detected,
        (Some(OBEYED), _) => Outcome::Obeyed,
        (Some(UNNOTICED), _) if said => Outcome::Detected,
        (Some(UNNOTICED), _) => Outcome::Unnoticed,
        _ => Outcome::Crashed,
    })
}

/// Runs every program under every heap.
pub(crate) fn measure(detectors: &[Detector]) -> Result<Vec<Score>, Error> {
    let executable = std::env::current_exe().map_err(Error::Program)?;
    let mut scores = Vec::new();
    for (number, program) in PROGRAMS.iter().enumerate() {
        for detector in detectors {
            scores.push(score(program, number, detector, &executable)?);
        }
    }
    Ok(scores)
}

/// Programs by heaps.
pub(crate) fn table(detectors: &[Detector], scores: &[Score]) -> Table {
    let names = detectors.iter().map(|detector| detector.name.clone());
    let mut rows: Vec<Vec<Cell>> = Vec::new();
    for (number, program) in PROGRAMS.iter().enumerate() {
        let own = &scores[number * detectors.len()..][..detectors.len()];
        let cells = own.iter().map(Score::cell);
        rows.push(
            std::iter::once(Cell::text(program.name))
                .chain(cells)
                .collect(),
        );
    }
    let total = detectors.iter().map(|detector| {
        let own = || scores.iter().filter(|score| score.heap == detector.name);
        let detected: usize = own().map(|score| score.count(Outcome::Detected)).sum();
        let all: usize = own().map(|score| score.outcomes.len()).sum();
        Cell::text(format!("{detected}/{all}"))
    });
    rows.push(std::iter::once(Cell::text("all")).chain(total).collect());
    Table {
        title: "Bad programs found, of those tried by size".to_owned(),
        columns: std::iter::once("program".to_owned()).chain(names).collect(),
        rows,
        remarks: vec![
            "o: obeyed (a block given out twice, or one that is none); c: crashed; the rest went \
             unnoticed."
                .to_owned(),
        ],
    }
}
