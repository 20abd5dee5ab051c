//! Programs, recorded with their call stacks.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use metes_sites::{Figures, Sites, calls};
use metes_trace::record::Ending;
use metes_trace::stacks::Ending as StackEnding;
use metes_trace::{RecordOptions, Recording, Trace, record};
use tempfile::TempDir;

/// A directory with programs.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Place {
        Place(tempfile::tempdir().expect("a directory for temporary files"))
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Compiles `tests/programs/<source>.c` with `flags`.
    pub(crate) fn compile(&self, source: &str, name: &str, flags: &[&str]) -> PathBuf {
        let path = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/programs")
            .join(source)
            .with_extension("c");
        let program = self.file(name);
        run(Command::new("cc")
            .args([
                "-fno-builtin",
                "-fno-optimize-sibling-calls",
                "-pthread",
                "-o",
            ])
            .arg(&program)
            .arg(path)
            .args(flags));
        program
    }
}

/// Runs a command that must succeed.
pub(crate) fn run(command: &mut Command) -> Vec<u8> {
    let output = command.output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    output.stdout
}

/// Records a program with its call stacks.
pub(crate) fn recorded(program: &Path, words: &[&str]) -> Recording {
    let library = metes_libraries::beside().join("libmetes_record.so");
    let mut options = RecordOptions::new(library);
    options.sites = true;
    let mut command = vec![program.as_os_str().to_owned()];
    command.extend(words.iter().map(OsString::from));
    let recording = record(&command, &options).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(recording.ending, Ending::Exit(0));
    for process in recording.processes() {
        let loaded = process.load().expect("a whole recording");
        assert_eq!(loaded.unfinished, 0);
    }
    recording
}

/// The trace of a program, its calls by names.
pub(crate) fn named(program: &Path, words: &[&str]) -> Trace {
    let mut trace = recorded(program, words).main;
    metes_sites::name(&mut trace.stacks, &[]);
    trace
}

/// A site that a test expects.
pub(crate) struct Found {
    pub(crate) figures: Figures,
    /// Names, the innermost first.
    pub(crate) calls: Vec<String>,
    pub(crate) ending: StackEnding,
}

/// The sites whose innermost calls are of these names.
pub(crate) fn under(trace: &Trace, names: &[&str]) -> Vec<Found> {
    let sites = Sites::of(trace);
    let known = (1..).zip(sites.figures.into_iter().skip(1));
    let found = known.map(|(site, figures)| Found {
        figures,
        calls: calls(&trace.stacks, site)
            .into_iter()
            .map(|call| call.function)
            .collect(),
        ending: trace.stacks.stack(site).expect("a site").ending,
    });
    found
        .filter(|found| {
            found
                .calls
                .iter()
                .zip(names)
                .filter(|(own, name)| own == name)
                .count()
                == names.len()
        })
        .collect()
}

/// The one such site.
pub(crate) fn one(trace: &Trace, names: &[&str]) -> Found {
    let mut found = under(trace, names);
    let all = || {
        let sites = 1..=trace.stacks.len() as u64;
        let calls = sites.map(|site| calls(&trace.stacks, site));
        let names = calls.map(|calls| {
            calls
                .into_iter()
                .map(|call| call.function)
                .collect::<Vec<_>>()
        });
        format!("{:#?}", names.collect::<Vec<_>>())
    };
    assert_eq!(found.len(), 1, "{names:?} in {}", all());
    found.remove(0)
}
