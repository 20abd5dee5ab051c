//! Machines that are not stepped.
//!
//! Invariant: no stepper exists here, so nothing is ever counted wrongly.

use std::convert::Infallible;
use std::io::{Error, ErrorKind};

use crate::{Call, Lines, Unbounded, Untold};

/// The right to step, which this machine does not give.
pub struct Stepper(Infallible);

impl Stepper {
    /// # Errors
    /// Always: stepping needs x86-64 under Linux.
    pub fn new() -> std::io::Result<Self> {
        Err(Error::new(
            ErrorKind::Unsupported,
            "instructions are counted on x86-64 under Linux only",
        ))
    }

    /// Makes a call, returning its result and its instructions.
    ///
    /// # Safety
    /// As for [`Call::invoke`].
    pub unsafe fn call(&mut self, _: Call) -> (usize, u64) {
        match self.0 {}
    }

    /// As [`Stepper::call`], with repetitions counted.
    ///
    /// # Safety
    /// As for [`Call::invoke`].
    pub unsafe fn call_with_repetitions(&mut self, _: Call) -> (usize, u64) {
        match self.0 {}
    }

    /// As [`Stepper::call`], with the cache lines that the call touches.
    ///
    /// # Safety
    /// As for [`Call::invoke`].
    pub unsafe fn call_with_lines(
        &mut self,
        _: Call,
        _: usize,
    ) -> (usize, u64, Result<Lines, Untold>) {
        match self.0 {}
    }

    /// As [`Stepper::call`], with the address of every instruction run.
    ///
    /// # Safety
    /// As for [`Call::invoke`].
    pub unsafe fn call_with_path(&mut self, _: Call, _: usize) -> (usize, u64, Vec<usize>) {
        match self.0 {}
    }
}

/// Instructions of the call under way: none, where nothing is stepped.
pub fn so_far() -> u64 {
    0
}

/// The most instructions that a call of the function can take.
///
/// # Errors
/// Always: code is read on x86-64 under Linux only.
///
/// # Safety
/// None is needed here.
pub unsafe fn longest_call(_: usize) -> Result<u64, Unbounded> {
    Err(Unbounded::Elsewhere)
}
