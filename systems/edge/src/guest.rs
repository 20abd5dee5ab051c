//! What a running function sees of its host: its memory, the request, what it answers, its budget.
//!
//! *Invariant:* between two invocations nothing of a request is left in it; nothing here allocates between
//! release and completion.

use std::sync::Arc;

use metes_random::Random;
use wasmtime::{Result, UpdateDeadline};

use crate::clock;
use crate::outcome::Policy;
use crate::overrun::Alarm;

/// The memory of an instance, as the host reaches it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory {
    base: *mut u8,
    bytes: usize,
}

impl Memory {
    /// The bytes from `base`; none for a module without memory.
    pub(crate) fn new(base: *mut u8, bytes: usize) -> Memory {
        Memory { base, bytes }
    }

    /// A part of it, if it lies inside.
    pub(crate) fn part(&mut self, at: u32, length: u32) -> Option<&mut [u8]> {
        let (at, length) = (at as usize, length as usize);
        if at.checked_add(length)? > self.bytes || self.bytes == 0 {
            return None;
        }
        // SAFETY: inside the slot, whose bytes stay accessible and in place as long as the instance lives;
        // the guest does not run while the host serves its call.
        Some(unsafe { std::slice::from_raw_parts_mut(self.base.add(at), length) })
    }

    /// A number of 32 bits.
    pub(crate) fn word(&mut self, at: u32) -> Option<u32> {
        Some(u32::from_le_bytes(self.part(at, 4)?.try_into().ok()?))
    }

    /// Writes a number of 32 bits.
    pub(crate) fn set_word(&mut self, at: u32, value: u32) -> Option<()> {
        self.part(at, 4)?.copy_from_slice(&value.to_le_bytes());
        Some(())
    }

    /// Writes a number of 64 bits.
    pub(crate) fn set_long(&mut self, at: u32, value: u64) -> Option<()> {
        self.part(at, 8)?.copy_from_slice(&value.to_le_bytes());
        Some(())
    }
}

/// The state of a store.
#[derive(Debug)]
pub(crate) struct Guest {
    pub(crate) memory: Memory,
    input: *const u8,
    input_bytes: usize,
    pub(crate) read: usize,
    pub(crate) output: Vec<u8>,
    pub(crate) output_limit: usize,
    pub(crate) errors: Vec<u8>,
    pub(crate) errors_limit: usize,
    pub(crate) refused: bool,
    pub(crate) calls: u32,
    pub(crate) exit: Option<i32>,
    pub(crate) random: Random,
    pub(crate) arguments: Arc<Strings>,
    pub(crate) environment: Arc<Strings>,
    pub(crate) run: Run,
    pub(crate) alarm: Arc<Alarm>,
}

// SAFETY: the addresses in it are those of a slot that its seat owns, and of a request that is borrowed
// while the invocation runs; neither depends on the thread.
unsafe impl Send for Guest {}

/// The invocation that runs, as its budget sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Run {
    pub(crate) release: u64,
    pub(crate) budget: u64,
    pub(crate) deadline: u64,
    /// Processor time of the thread when it was released or went on, where the budget runs by that.
    pub(crate) processor: Option<u64>,
    pub(crate) policy: Policy,
    pub(crate) suspended: u32,
    pub(crate) degraded: bool,
    pub(crate) stopped: bool,
}

impl Default for Run {
    fn default() -> Run {
        Run {
            release: 0,
            budget: u64::MAX,
            deadline: u64::MAX,
            processor: None,
            policy: Policy::Stop,
            suspended: 0,
            degraded: false,
            stopped: false,
        }
    }
}

impl Run {
    /// One that is released now.
    pub(crate) fn starting(budget: u64, policy: Policy) -> Run {
        let release = clock::now();
        Run {
            release,
            budget,
            deadline: release.saturating_add(budget),
            policy,
            ..Run::default()
        }
    }
}

/// Arguments or environment as WASI copies them: each with a zero behind it.
#[derive(Debug, Default)]
pub(crate) struct Strings {
    pub(crate) bytes: Vec<u8>,
    pub(crate) starts: Vec<u32>,
}

impl Strings {
    pub(crate) fn new(strings: &[String]) -> Strings {
        let mut all = Strings::default();
        for string in strings {
            all.starts.push(all.bytes.len() as u32);
            all.bytes.extend(string.bytes().filter(|byte| *byte != 0));
            all.bytes.push(0);
        }
        all
    }
}

impl Guest {
    pub(crate) fn new(
        memory: Memory,
        alarm: Arc<Alarm>,
        arguments: Arc<Strings>,
        environment: Arc<Strings>,
        errors_limit: usize,
    ) -> Guest {
        Guest {
            memory,
            input: std::ptr::null(),
            input_bytes: 0,
            read: 0,
            output: Vec::new(),
            output_limit: 0,
            errors: Vec::with_capacity(errors_limit),
            errors_limit,
            refused: false,
            calls: 0,
            exit: None,
            random: Random::new(0),
            arguments,
            environment,
            run: Run::default(),
            alarm,
        }
    }

    /// Takes a request and the place for its answer.
    pub(crate) fn begin(
        &mut self,
        input: &[u8],
        output: Vec<u8>,
        output_limit: usize,
        seed: u64,
        run: Run,
    ) {
        (self.input, self.input_bytes) = (input.as_ptr(), input.len());
        self.read = 0;
        self.output_limit = output_limit;
        self.output = output;
        self.errors.clear();
        self.refused = false;
        self.calls = 0;
        self.exit = None;
        self.random = Random::new(seed);
        self.run = run;
    }

    /// Gives the answer back, and forgets the request.
    pub(crate) fn end(&mut self) -> Vec<u8> {
        (self.input, self.input_bytes) = (std::ptr::null(), 0);
        std::mem::take(&mut self.output)
    }

    /// What is left of the request, and the memory to read it into.
    pub(crate) fn rest(&self) -> &[u8] {
        if self.input_bytes == 0 {
            return &[];
        }
        // SAFETY: the request is borrowed by `Worker::invoke` from `begin` to `end`, which alone run guests.
        let input = unsafe { std::slice::from_raw_parts(self.input, self.input_bytes) };
        &input[self.read.min(input.len())..]
    }

    /// Called on the guest's thread when an alarm has gone off, not necessarily its own.
    pub(crate) fn alarmed(&mut self) -> Result<UpdateDeadline> {
        let now = clock::now();
        let run = &mut self.run;
        if now < run.deadline {
            return Ok(UpdateDeadline::Continue(1));
        }
        if let Some(start) = run.processor {
            let used = clock::processor().saturating_sub(start);
            if used < run.budget {
                run.deadline = now.saturating_add(run.budget - used);
                self.alarm.set(run.deadline);
                return Ok(UpdateDeadline::Continue(1));
            }
        }
        match run.policy {
            Policy::Suspend { period, times } if run.suspended < times => {
                run.suspended += 1;
                let period = clock::nanoseconds(period);
                clock::sleep_until(
                    run.release
                        .saturating_add(period.saturating_mul(u64::from(run.suspended))),
                );
                run.deadline = clock::now().saturating_add(run.budget);
                run.processor = run.processor.map(|_| clock::processor());
            }
            Policy::Degrade { further } if !run.degraded => {
                run.degraded = crate::schedule::idle();
                run.deadline = now.saturating_add(clock::nanoseconds(further));
                run.policy = Policy::Stop;
                run.processor = None;
            }
            _ => {
                run.stopped = true;
                return Ok(UpdateDeadline::Interrupt);
            }
        }
        let deadline = run.deadline;
        self.alarm.set(deadline);
        Ok(UpdateDeadline::Continue(1))
    }
}
