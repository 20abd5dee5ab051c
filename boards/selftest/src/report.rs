//! What was checked and how it went. Invariant: every check ends in exactly one of
//! `passed` and `failed`, and the last line written gives both.

use core::fmt::{Arguments, Display, Write};

/// Tally of checks, written line by line.
pub struct Report<'a> {
    out: &'a mut dyn Write,
    passed: u32,
    failed: u32,
}

impl<'a> Report<'a> {
    /// Starts a tally that writes to `out`. Errors of `out` are not looked at: on a
    /// board there is nowhere else to report them, and a runner that misses the last
    /// line counts the run as failed.
    pub fn new(out: &'a mut dyn Write) -> Self {
        Self {
            out,
            passed: 0,
            failed: 0,
        }
    }

    /// Writes a line that is no check.
    pub fn line(&mut self, text: Arguments<'_>) {
        let _ = writeln!(self.out, "{text}");
    }

    /// Counts a check that held.
    pub fn pass(&mut self) {
        self.passed += 1;
    }

    /// Counts and prints a check that did not hold.
    pub fn fail(&mut self, check: &str, why: Arguments<'_>) {
        self.failed += 1;
        self.line(format_args!("FAILED {check}: {why}"));
    }

    /// Counts the outcome of the check `name` of `subject`; true if it held.
    pub fn check<E: Display>(&mut self, subject: &str, name: &str, outcome: Result<(), E>) -> bool {
        match outcome {
            Ok(()) => {
                self.pass();
                true
            }
            Err(why) => {
                self.fail(subject, format_args!("{name}: {why}"));
                false
            }
        }
    }

    /// Checks that held and checks that did not, so far.
    pub fn tally(&self) -> (u32, u32) {
        (self.passed, self.failed)
    }

    /// Writes the last line; true if there were checks and all held.
    pub fn finish(mut self) -> bool {
        let (passed, failed) = self.tally();
        self.line(format_args!("{passed} passed, {failed} failed"));
        failed == 0 && passed > 0
    }
}
