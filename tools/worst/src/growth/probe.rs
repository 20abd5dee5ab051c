//! A running heap of which some calls are counted.
//!
//! Invariant: blocks that are freed or read are live.

use metes_step::{Call, Stepper};

use super::watched;
use super::{Operation, Refused};
use crate::subject::Running;

/// Drives a heap: most calls at full speed, some with their instructions counted.
pub(super) struct Probe<'r, 'm> {
    running: &'r Running<'m>,
    stepper: &'r mut Stepper,
    most: [u64; Operation::ALL.len()],
    /// Of which operations calls are counted; others are made at full speed.
    counted: [bool; Operation::ALL.len()],
    watched: bool,
}

impl<'r, 'm> Probe<'r, 'm> {
    /// Of a heap, of whose calls these are `counted`; `watched` if its locks note how long they
    /// are held.
    pub(super) fn new(
        running: &'r Running<'m>,
        stepper: &'r mut Stepper,
        counted: [bool; Operation::ALL.len()],
        watched: bool,
    ) -> Self {
        Probe {
            running,
            stepper,
            most: [0; Operation::ALL.len()],
            counted,
            watched,
        }
    }

    /// The most instructions of one call of an operation; zero where none was counted.
    pub(super) fn most(&self, operation: Operation) -> u64 {
        self.most[operation as usize]
    }

    fn count(&mut self, operation: Operation, call: Call) -> usize {
        if !self.counted[operation as usize] {
            // SAFETY: a call of this heap on live blocks, by the invariant.
            return unsafe { call.invoke() };
        }
        watched::restart();
        // SAFETY: as above.
        let (result, count) = unsafe { self.stepper.call_with_repetitions(call) };
        let mut enter = |operation: Operation, count: u64| {
            let most = &mut self.most[operation as usize];
            *most = count.max(*most);
        };
        enter(operation, count);
        if self.watched {
            enter(Operation::Latency, watched::longest());
        }
        result
    }

    fn block(result: usize) -> Result<usize, Refused> {
        match result {
            0 => Err(Refused),
            block => Ok(block),
        }
    }

    /// A block, at full speed.
    pub(super) fn allocate(&mut self, size: usize) -> Result<usize, Refused> {
        // SAFETY: a call of this heap.
        Self::block(unsafe { self.running.allocation(size).invoke() })
    }

    /// Frees a live block, at full speed.
    pub(super) fn free(&mut self, block: usize) {
        // SAFETY: a call of this heap on a live block.
        unsafe { self.running.release(block).invoke() };
    }

    /// A block, counted.
    pub(super) fn count_allocate(&mut self, size: usize) -> Result<usize, Refused> {
        Self::block(self.count(Operation::Allocate, self.running.allocation(size)))
    }

    /// Frees a live block, counted.
    pub(super) fn count_free(&mut self, block: usize) {
        self.count(Operation::Free, self.running.release(block));
    }

    /// Reads a byte of a live block, counted.
    pub(super) fn count_read(&mut self, block: usize, at: usize) {
        self.count(Operation::Access, self.running.access(block, at));
    }
}
