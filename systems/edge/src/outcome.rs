//! What became of an invocation.
//!
//! *Invariant:* whatever a guest does is one of these; none of them is a failure of the host.

use std::fmt;
use std::time::Duration;

use crate::error::DeployError;

/// What became of an invocation, and what it took.
#[derive(Debug, Clone, PartialEq)]
pub struct Invocation {
    /// What became of it.
    pub outcome: Outcome,
    /// From release to completion: the call with all its host calls, in nanoseconds.
    pub time_ns: u64,
    /// From completion until the slot was as before the release, in nanoseconds.
    pub scrub_ns: u64,
    /// Which compiler's code ran.
    pub tier: Tier,
    /// How many calls the guest made to the host.
    pub host_calls: u32,
    /// Whether the guest wrote more than `output` or `errors` permit; what is over was refused.
    pub output_refused: bool,
    /// How often it was suspended and went on.
    pub suspended: u32,
    /// Whether it lost its priority on the way.
    pub degraded: bool,
    /// Page faults of the thread between release and completion, where they are counted.
    pub faults: Option<u64>,
}

/// What became of an invocation.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It ended by itself; `exit` is what it returned or passed to `proc_exit`.
    Done {
        /// Its status.
        exit: i32,
    },
    /// It did what WebAssembly forbids.
    Trap(Trap),
    /// It was stopped.
    Overrun {
        /// How long after the end of its budget, in nanoseconds.
        late_ns: u64,
    },
    /// It was never released.
    Refused(Refusal),
}

/// Why an invocation was not released.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The request is too large.
    #[error("the request has {bytes} bytes, the function takes {limit}; raise `input`")]
    Input {
        /// Its size.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// The worker could not be prepared for the function.
    #[error("the function is not prepared on this worker: {0}")]
    Unprepared(DeployError),
    /// A budget of nothing.
    #[error("the budget is zero; give the function time")]
    Budget,
}

/// What WebAssembly forbids.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trap {
    /// `unreachable`: a panic or an abort.
    Unreachable,
    /// An access outside the memory.
    Memory,
    /// An access outside a table.
    Table,
    /// An indirect call of nothing or of another type.
    IndirectCall,
    /// The stack is used up.
    StackOverflow,
    /// A division by zero.
    DivisionByZero,
    /// An integer result that cannot be represented.
    Integer,
    /// Anything else.
    Other,
}

impl fmt::Display for Trap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Trap::Unreachable => "unreachable code was reached (a panic or an abort)",
            Trap::Memory => "an access outside the memory",
            Trap::Table => "an access outside a table",
            Trap::IndirectCall => "an indirect call of no function, or of one of another type",
            Trap::StackOverflow => "the stack is used up",
            Trap::DivisionByZero => "a division by zero",
            Trap::Integer => "an integer that cannot be represented",
            Trap::Other => "a trap",
        })
    }
}

impl From<wasmtime::Trap> for Trap {
    fn from(trap: wasmtime::Trap) -> Trap {
        match trap {
            wasmtime::Trap::UnreachableCodeReached => Trap::Unreachable,
            wasmtime::Trap::MemoryOutOfBounds | wasmtime::Trap::HeapMisaligned => Trap::Memory,
            wasmtime::Trap::TableOutOfBounds => Trap::Table,
            wasmtime::Trap::IndirectCallToNull | wasmtime::Trap::BadSignature => Trap::IndirectCall,
            wasmtime::Trap::StackOverflow => Trap::StackOverflow,
            wasmtime::Trap::IntegerDivisionByZero => Trap::DivisionByZero,
            wasmtime::Trap::IntegerOverflow | wasmtime::Trap::BadConversionToInteger => {
                Trap::Integer
            }
            _ => Trap::Other,
        }
    }
}

/// Whose code ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Tier {
    /// Code of the baseline compiler (Winch).
    Baseline,
    /// Code of the optimising compiler (Cranelift).
    Optimised,
}

impl Tier {
    /// Its name in documents and answers.
    pub fn name(self) -> &'static str {
        match self {
            Tier::Baseline => "baseline",
            Tier::Optimised => "optimised",
        }
    }
}

/// How long an invocation may take, and what becomes of one that takes longer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// Time from the release on.
    pub time: Duration,
    /// What then.
    pub policy: Policy,
}

impl From<Duration> for Budget {
    fn from(time: Duration) -> Budget {
        Budget {
            time,
            policy: Policy::Stop,
        }
    }
}

/// By which clock a budget runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BudgetClock {
    /// By the time that passes, which includes that of whoever preempts the thread.
    #[default]
    Elapsed,
    /// By the processor time of the worker's thread. That is read by a system call, once before the release and
    /// again only when a budget has passed.
    Processor,
}

/// What becomes of an invocation at the end of its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// It is stopped.
    Stop,
    /// Its thread sleeps until `period` after the release, then it has its budget again; after
    /// `times` of that it is stopped.
    Suspend {
        /// When the budget is replenished.
        period: Duration,
        /// How often.
        times: u32,
    },
    /// Its thread falls into the idle class, where it delays nobody, and it is stopped when `further`
    /// time has passed.
    Degrade {
        /// How much longer.
        further: Duration,
    },
}
