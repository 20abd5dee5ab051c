//! Names of code that was made at run time: of Python's functions, and of what compilers at run time made.
//!
//! Runtimes that are asked to tell profilers write a line for each piece of code into `/tmp/perf-PID.map`: where it
//! begins, how long it is (both hexadecimal), and what it is called. Python does from 3.12 on (`PYTHONPERFSUPPORT=1`), V8
//! (`node --perf-basic-prof`), .NET and others do.
//!
//! *Invariant:* a file of another user, or that is none, names nothing; of pieces that overlap the last one told counts,
//! as code that is thrown away makes room.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::module::Name;

/// Where the files lie.
const DIRECTORY: &str = "/tmp";
/// Bytes of a file that are read.
const MOST_BYTES: u64 = 256 << 20;
/// How Python's functions are called.
const PYTHON: &str = "py::";

/// Pieces of code, by their beginnings.
#[derive(Debug, Default)]
pub(super) struct Pieces(BTreeMap<u64, Piece>);

#[derive(Debug)]
struct Piece {
    behind: u64,
    name: String,
}

fn path(process: u32) -> PathBuf {
    Path::new(DIRECTORY).join(format!("perf-{process}.map"))
}

/// The file of a process, if this user has written it.
fn open(path: &Path) -> Option<File> {
    let mut options = OpenOptions::new();
    // Nobody may have it wait at a pipe, or lead it elsewhere.
    options
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(path).ok()?;
    let found = file.metadata().ok()?;
    // SAFETY: takes nothing, touches nothing.
    let own = unsafe { libc::geteuid() };
    (found.is_file() && found.uid() == own).then_some(file)
}

/// Removes the file that a process has written, unless it names other things than functions of Python.
pub fn remove_python(process: u32) {
    let path = path(process);
    let Some(file) = open(&path) else { return };
    let mut of_python = true;
    lines(file, |_, _, name| of_python &= name.starts_with(PYTHON));
    if of_python {
        // What is gone by now is gone.
        let _ = std::fs::remove_file(path);
    }
}

/// Calls `visit` with each piece of a file: beginning, end, name. What is no such line is passed over.
fn lines(file: File, mut visit: impl FnMut(u64, u64, &str)) {
    let mut reader = BufReader::new(file.take(MOST_BYTES));
    let mut line = Vec::new();
    loop {
        line.clear();
        match reader.read_until(b'\n', &mut line) {
            Ok(1..) => {}
            _ => return,
        }
        let text = String::from_utf8_lossy(&line);
        let mut words = text.trim_end_matches('\n').splitn(3, ' ');
        let number = |word: Option<&str>| u64::from_str_radix(word?, 16).ok();
        let (Some(begins), Some(bytes)) = (number(words.next()), number(words.next())) else {
            continue;
        };
        let name = words.next().unwrap_or_default();
        if let (Some(behind), false) = (begins.checked_add(bytes), name.is_empty()) {
            visit(begins, behind, name);
        }
    }
}

impl Pieces {
    /// What a process has told.
    pub(super) fn of(process: u32) -> Pieces {
        let mut pieces = Pieces::default();
        if let Some(file) = open(&path(process)) {
            lines(file, |begins, behind, name| {
                pieces.add(begins, behind, name);
            });
        }
        pieces
    }

    fn add(&mut self, begins: u64, behind: u64, name: &str) {
        if begins >= behind {
            return;
        }
        // What it covers is gone.
        let covered: Vec<u64> = self
            .0
            .range(..behind)
            .rev()
            .take_while(|(_, piece)| piece.behind > begins)
            .map(|(&begins, _)| begins)
            .collect();
        for gone in covered {
            self.0.remove(&gone);
        }
        let name = name.to_owned();
        self.0.insert(begins, Piece { behind, name });
    }

    /// The name of the piece that holds an address; none if none does.
    pub(super) fn name(&self, address: u64) -> Vec<Name> {
        let before = self.0.range(..=address).next_back();
        let holding = before.filter(|(_, piece)| address < piece.behind);
        holding
            .map(|(_, piece)| parsed(&piece.name))
            .into_iter()
            .collect()
    }
}

/// Function and file: Python's names have both.
fn parsed(name: &str) -> Name {
    let of_python = name
        .strip_prefix(PYTHON)
        .and_then(|rest| rest.split_once(':'));
    match of_python {
        Some((function, file)) if !function.is_empty() => (function.to_owned(), file.to_owned(), 0),
        _ => (name.to_owned(), String::new(), 0),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn functions_of_python_have_files() {
        let of = |name| {
            let (function, file, _) = parsed(name);
            (function, file)
        };
        let both = |function: &str, file: &str| (function.to_owned(), file.to_owned());
        assert_eq!(
            of("py::Store.fill:/tmp/a:b.py"),
            both("Store.fill", "/tmp/a:b.py")
        );
        assert_eq!(of("py::f:<string>"), both("f", "<string>"));
        assert_eq!(
            of("JS:*main file:///a.js:1:2"),
            both("JS:*main file:///a.js:1:2", "")
        );
        assert_eq!(of("py::"), both("py::", ""));
    }

    #[test]
    fn lines_that_are_none_are_passed_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("map");
        let text = b"10 8 py::a:f.py\nnonsense\n\xff\xfe 3 b\n20 zz c\n30 4\n40 4 \n50 ffffffffffffffff d\n60 10 JS:~e f\n";
        std::fs::write(&path, text).unwrap();
        let mut found = Vec::new();
        lines(open(&path).unwrap(), |begins, behind, name| {
            found.push((begins, behind, name.to_owned()));
        });
        let expected = [(0x10, 0x18, "py::a:f.py"), (0x60, 0x70, "JS:~e f")];
        assert_eq!(found, expected.map(|(a, b, name)| (a, b, name.to_owned())));
        // A link may lead to a file of somebody else.
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(open(&link).is_none() && open(directory.path()).is_none());
    }

    proptest! {
        /// The last piece told that holds an address is the one, unless another has covered it, whatever of it.
        #[test]
        fn the_last_one_told_counts(told in prop::collection::vec((0..60_u64, 0..20_u64), 0..40)) {
            let mut pieces = Pieces::default();
            let mut naive = [None; 100];
            for (number, &(begins, bytes)) in told.iter().enumerate() {
                pieces.add(begins, begins + bytes, &number.to_string());
                if bytes == 0 {
                    continue;
                }
                let covered: Vec<_> = naive[begins as usize..(begins + bytes) as usize].to_vec();
                for own in &mut naive {
                    if own.is_some() && covered.contains(own) {
                        *own = None;
                    }
                }
                naive[begins as usize..(begins + bytes) as usize].fill(Some(number));
            }
            for (address, expected) in (0..).zip(naive) {
                let expected: Vec<Name> = expected
                    .map(|number| (number.to_string(), String::new(), 0))
                    .into_iter()
                    .collect();
                prop_assert_eq!(pieces.name(address), expected);
            }
        }
    }
}
