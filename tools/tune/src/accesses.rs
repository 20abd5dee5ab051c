//! A program with its accesses: recorded lightly, and counted under emulation.
//!
//! The program runs twice, in the same surroundings: recorded lightly, which
//! gives its times and requests, and under QEMU, which gives its accesses. The
//! trace is that of the second run, whose counts belong to its own blocks;
//! where both asked for the same, it has the first one's times.
//!
//! Invariant: how the two runs differ is said; a count is never put on a block
//! of another run.

use metes_trace::record::Choice;
use metes_trace::record::access::{Agreement, Counted, Plan, agree, join};
use metes_trace::{AccessOptions, RecordOptions, Trace, count_accesses, record};

use crate::capture::{Input, Pass, capture};
use crate::error::Error;

/// What came of counting.
#[derive(Debug)]
pub enum Accessed {
    /// The program was asked to end while it was recorded lightly: its requests until then.
    Ended(i32, Box<Trace>),
    /// The trace with its accesses.
    Counted(Box<WithAccesses>),
}

/// A trace whose accesses were counted, and how far it is to be trusted.
#[derive(Debug)]
pub struct WithAccesses {
    /// Requests and accesses of the counted run, with the times of the light one where both made
    /// the same requests.
    pub trace: Trace,
    /// The counted run.
    pub counted: Counted,
    /// How it compares with the light recording, if there is one.
    pub checked: Option<Checked>,
}

/// A counted run beside a light recording.
#[derive(Clone, Copy, Debug)]
pub struct Checked {
    /// Whether both asked for the same.
    pub agreement: Agreement,
    /// How many times the light one's processor time the counted run took.
    pub slowdown: Option<f64>,
}

/// Runs a program twice, or `once` under emulation alone. Only the counted run's output is passed
/// on; `asked_to_end` says by which signal somebody wants an end.
///
/// # Errors
/// When a run could not be made or recorded.
pub fn record_accesses(
    plan: &Plan,
    command: &[std::ffi::OsString],
    options: &AccessOptions,
    once: bool,
    pass: Pass,
    asked_to_end: &dyn Fn() -> Option<i32>,
) -> Result<Accessed, Error> {
    let input = Input::look()?;
    let mut light = None;
    if plan.native && !once {
        let run = || record(command, &RecordOptions::new(&options.recorder));
        let (recording, _) = capture(Pass::Away, || input.give(true, run))?;
        let recording = recording??;
        if let Some(signal) = asked_to_end() {
            return Ok(Accessed::Ended(signal, Box::new(recording.main)));
        }
        light = Some(recording);
    }
    let run = || count_accesses(plan, options);
    let (counted, _) = capture(pass, || input.give(light.is_none(), run))?;
    let counted = counted??;
    let light = light
        .map(|light| Ok::<_, Error>((light.choose(&Choice::Main)?, light.cpu_seconds)))
        .transpose()?;
    let checked = light.as_ref().map(|(trace, seconds)| Checked {
        agreement: agree(trace, &counted.trace),
        slowdown: (*seconds > 0.0).then(|| counted.cpu_seconds / seconds),
    });
    let joined = light.and_then(|(trace, _)| join(&trace, &counted.trace));
    Ok(Accessed::Counted(Box::new(WithAccesses {
        trace: joined.unwrap_or_else(|| counted.trace.clone()),
        counted,
        checked,
    })))
}
