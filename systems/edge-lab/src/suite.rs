//! Kernels of one kind, and how they become programs.
//!
//! *Invariant:* every program of a suite is called as `KERNEL SIZE RUNS` and prints a checksum, then the nanoseconds of
//! each run.

use std::path::{Path, PathBuf};

use metes_edge_kernels::Size;

use crate::programs::{Build, BuildError};

/// Kernels of one kind.
pub trait Suite {
    /// What it is called.
    fn name(&self) -> String;

    /// Its kernels.
    fn kernels(&self) -> Vec<String>;

    /// What a kernel must compute, where that is known without running its program.
    fn checksum(&self, kernel: &str, size: Size) -> Option<u64>;

    /// The program of a kernel; `directory` is kept from one call to the next.
    ///
    /// # Errors
    /// When it cannot be built.
    fn program(
        &self,
        build: Build,
        kernel: &str,
        size: Size,
        directory: &Path,
    ) -> Result<PathBuf, BuildError>;
}

/// What a program has printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed {
    /// Of what it computed.
    pub checksum: u64,
    /// Nanoseconds of each run.
    pub times: Vec<u64>,
}

impl Printed {
    /// Reads it; none if it is something else.
    #[must_use]
    pub fn read(text: &str) -> Option<Printed> {
        let mut lines = text.lines();
        let checksum = u64::from_str_radix(lines.next()?.trim(), 16).ok()?;
        let times = lines
            .map(|line| line.trim().parse().ok())
            .collect::<Option<_>>()?;
        Some(Printed { checksum, times })
    }
}

#[cfg(test)]
mod tests {
    use super::Printed;

    #[test]
    fn what_a_program_prints_is_read_and_nothing_else_is() {
        let read = Printed::read("00000000000000ff\n12\n7\n").expect("it is such");
        assert_eq!((read.checksum, read.times), (255, vec![12, 7]));
        assert_eq!(
            Printed::read("0\n").map(|read| read.times),
            Some(Vec::new())
        );
        for text in ["", "hello\n", "ff\nten\n", "ff\n-1\n"] {
            assert_eq!(Printed::read(text), None, "{text:?}");
        }
    }
}
