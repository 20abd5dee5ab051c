//! What an adversary asked, written down: it can be played again on anything.
//!
//! Invariant: a step frees a block that an earlier step asked for, once.

use metes_trace::{Inconsistency, Provenance, Trace, TraceBuilder};

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// So many bytes.
    Allocate(u32),
    /// The block of the so-many-th allocation, counted from zero.
    Free(u32),
}

/// Requests in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sequence {
    steps: Vec<Step>,
    allocations: u32,
}

impl Sequence {
    /// Nothing asked.
    pub fn new() -> Self {
        Self::default()
    }

    /// The requests.
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// Asks for a block; returns its number.
    pub fn allocate(&mut self, size: u32) -> u32 {
        self.steps.push(Step::Allocate(size));
        self.allocations += 1;
        self.allocations - 1
    }

    /// Frees a block that is live.
    pub fn free(&mut self, block: u32) {
        self.steps.push(Step::Free(block));
    }

    /// How many blocks it asks for.
    pub fn allocations(&self) -> usize {
        self.allocations as usize
    }

    /// Its first `length` requests.
    pub fn prefix(&self, length: usize) -> Sequence {
        let steps: Vec<Step> = self.steps.iter().take(length).copied().collect();
        let allocations = steps
            .iter()
            .filter(|step| matches!(step, Step::Allocate(_)))
            .count();
        Sequence {
            steps,
            allocations: allocations as u32,
        }
    }

    /// The sequence as a trace, whose provenance says what made it. Linear.
    ///
    /// # Errors
    /// None where the invariant holds.
    pub fn trace(&self, command: Vec<String>) -> Result<Trace, Inconsistency> {
        let mut builder = TraceBuilder::new();
        for step in &self.steps {
            match *step {
                Step::Allocate(size) => {
                    builder.alloc(0, 0, size.into(), 1)?;
                }
                Step::Free(block) => builder.free(0, 0, block.into())?,
            }
        }
        Ok(builder.finish(Provenance {
            command,
            recorder: "metes worst".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            threads: 1,
            ..Provenance::default()
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_has_the_same_requests() {
        let mut sequence = Sequence::new();
        let first = sequence.allocate(100);
        let second = sequence.allocate(50);
        sequence.free(first);
        assert_eq!(sequence.prefix(2).allocations(), 2);
        let trace = sequence.trace(Vec::new()).unwrap();
        assert!(trace.sizes().iter().eq([100, 50, 0]));
        assert_eq!(trace.blocks(), [0, 1, 0]);
        sequence.free(second);
        assert_eq!(sequence.steps()[3], Step::Free(1));
    }
}
