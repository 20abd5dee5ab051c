//! A machine under a debugger: what is run, and where it stops.
//!
//! A step is one instruction of its core. Interrupts and windows that overflow or underflow are served within it, out of
//! sight, as gdb does it that steps by breakpoints of its own; any other trap ends it, at the handler.
//!
//! Cores run in the order in which the machine would run them anyhow, so that a program under a debugger does what it does
//! without, cycle by cycle. Where a debugger asks for some cores alone, to step over a breakpoint that it has lifted, it
//! is told of them as soon as they have executed an instruction, which others rarely do in between; they are not
//! held, and it is not told of them.
//!
//! Invariant: between two portions the machine stands at an instruction that is not executed yet.

use std::collections::VecDeque;
use std::io::{self, Write};

use gdbstub::common::{Signal, Tid};
use gdbstub::stub::MultiThreadStopReason;

use super::look::{Hit, Kind, Look, Stepper};
use crate::core::{Condition, Core};
use crate::machine::{End, Machine, Stop};
use crate::trap::Trap;

/// Instructions between two looks at the connection: a few milliseconds.
const PORTION: u64 = 250_000;
/// The same while every instruction is looked after.
const STEPS: u64 = 20_000;
/// Bytes that are kept of what a serial line printed last.
const TAIL: usize = 4096;

/// Why the machine stands, and in words if there is something to say.
pub(super) type Halt = (MultiThreadStopReason<u32>, Option<String>);

/// A machine under a debugger.
pub(super) struct Session<'a> {
    pub(super) machine: &'a mut Machine,
    pub(super) uart: Box<dyn Write + 'a>,
    pub(super) reset: Option<Box<dyn FnMut() -> Machine + 'a>>,
    pub(super) look: Look,
    /// The cores that are to run, a bit each, as far as they are named.
    pub(super) mentioned: u64,
    /// The core that stopped last.
    pub(super) focus: usize,
    /// The signal of an end that was told: who goes on after it is at the end.
    pub(super) ended: Option<Signal>,
    pub(super) tail: VecDeque<u8>,
}

impl Session<'_> {
    /// The core of thread `tid`.
    pub(super) fn core_of(&self, tid: Tid) -> Option<usize> {
        let core = tid.get() - 1;
        (core < self.machine.cores().len()).then_some(core)
    }

    /// Runs for a while; tells why the machine stands, if it does.
    pub(super) fn portion(&mut self) -> io::Result<Option<Halt>> {
        let halt = if self.look.is_stepping() {
            (0..STEPS).find_map(|_| self.step())
        } else {
            self.go_on()
        };
        self.print()?;
        Ok(halt)
    }

    /// Stops where it is.
    pub(super) fn interrupt(&mut self) -> MultiThreadStopReason<u32> {
        MultiThreadStopReason::SignalWithThread {
            tid: tid(self.focus),
            signal: Signal::SIGINT,
        }
    }

    fn go_on(&mut self) -> Option<Halt> {
        let stop = if self.look.is_idle() {
            self.machine.run(PORTION, &mut ())
        } else {
            self.machine.run(PORTION, &mut self.look)
        };
        self.judge(&stop)
    }

    /// Executes an instruction, of whichever core it is the turn of.
    fn step(&mut self) -> Option<Halt> {
        let stop = self.machine.run(1, &mut self.look);
        if let Some(halt) = self.judge(&stop) {
            return Some(halt);
        }
        if let Some(hit) = self.stands_at_break() {
            self.look.hit = Some(hit);
            return self.judge(&stop);
        }
        let cores = self.machine.cores();
        let mut steppers = self.look.steppers.iter_mut();
        let ended =
            |stepper: &mut Stepper| stepper.ends(&cores[stepper.core]).then_some(stepper.core);
        let done = steppers.find_map(ended)?;
        Some((self.stops(done, Signal::SIGTRAP), None))
    }

    /// The breakpoint that a core has come to that runs alone. It is told before another core executes anything.
    fn stands_at_break(&self) -> Option<Hit> {
        let alone = self.look.alone?;
        let cores = self.machine.cores().iter();
        let mut meant = cores.filter(|core| alone >> core.number & 1 == 1);
        meant.find_map(|core| self.look.breaks_at(core))
    }

    /// What `stop` means to the debugger; nothing if the run goes on.
    fn judge(&mut self, stop: &Stop) -> Option<Halt> {
        match (self.look.hit, stop) {
            (Some(Hit::Break { core, kind }), _) => {
                self.stops(core, Signal::SIGTRAP);
                let tid = tid(core);
                let reason = match kind {
                    Kind::Soft => MultiThreadStopReason::SwBreak(tid),
                    Kind::Hard => MultiThreadStopReason::HwBreak(tid),
                };
                Some((reason, None))
            }
            (
                Some(Hit::Watch {
                    core,
                    kind,
                    address,
                }),
                _,
            ) => {
                self.focus = core;
                let reason = MultiThreadStopReason::Watch {
                    tid: tid(core),
                    kind,
                    addr: address,
                };
                Some((reason, None))
            }
            (None, Stop::End(end)) => Some(self.end(end)),
            (None, Stop::Limit | Stop::Observer { .. }) => None,
        }
    }

    /// `core` stops before an instruction, and goes on with it.
    fn stops(&mut self, core: usize, signal: Signal) -> MultiThreadStopReason<u32> {
        self.focus = core;
        self.look.told = Some(Look::place(&self.machine.cores()[core]));
        MultiThreadStopReason::SignalWithThread {
            tid: tid(core),
            signal,
        }
    }

    /// The run is over. Unless the program says so itself, the debugger may look at what there is before it is gone.
    fn end(&mut self, end: &End) -> Halt {
        if let Some(signal) = self.ended {
            return (MultiThreadStopReason::Terminated(signal), None);
        }
        let (core, signal, words) = match *end {
            End::Halt { .. } => return (MultiThreadStopReason::Exited(0), None),
            End::Error { core, trap } => {
                let pc = self.machine.cores()[core].pc;
                let reason = trap.reason();
                let words =
                    format!("core {core} is in error mode at {pc:#010x}, with traps off: {reason}");
                (core, signal(trap), words)
            }
            End::Idle => {
                let words = "every core sleeps or waits, and nothing will wake one".to_owned();
                (self.focus, Signal::SIGSTOP, words)
            }
            End::Watchdog => (
                self.focus,
                Signal::SIGALRM,
                "the watchdog ran out".to_owned(),
            ),
        };
        self.ended = Some(signal);
        // A debugger that runs some core alone expects to hear of no other.
        let core = self.look.alone.map_or(core, |_| self.focus);
        (self.stops(core, signal), Some(words + "\n"))
    }

    /// Hands on what the first serial line has printed.
    fn print(&mut self) -> io::Result<()> {
        let new = self.machine.printed(0);
        if new.is_empty() {
            return Ok(());
        }
        self.tail.extend(&new);
        let most = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..most);
        self.uart.write_all(&new)?;
        self.uart.flush()
    }

    /// What a debugger's user asks for by `monitor`.
    pub(super) fn command(&mut self, command: &str) -> String {
        match command.trim() {
            "uart" => String::from_utf8_lossy(self.tail.make_contiguous()).into_owned(),
            "cycles" => self.figures(),
            "notes" => self
                .machine
                .bus
                .notes()
                .iter()
                .map(|note| format!("{note}\n"))
                .collect(),
            "reset" => self.begin_anew(),
            _ => "monitor uart: what the first serial line printed last\n\
                  monitor cycles: cycles and instructions, and what each core is at\n\
                  monitor notes: what was strange\n\
                  monitor reset: the machine as at the beginning\n"
                .to_owned(),
        }
    }

    fn figures(&self) -> String {
        let (cycles, instructions) = (self.machine.cycles(), self.machine.instructions());
        let cores = self.machine.cores().iter().map(|core| {
            format!(
                "core {}: {}, {} cycles, {} instructions, {} traps\n",
                core.number,
                condition(core),
                core.cycles,
                core.instructions,
                core.taken
            )
        });
        format!(
            "{cycles} cycles, {instructions} instructions\n{}",
            cores.collect::<String>()
        )
    }

    fn begin_anew(&mut self) -> String {
        let Some(reset) = &mut self.reset else {
            return "this machine cannot begin anew; start the simulator again\n".to_owned();
        };
        *self.machine = reset();
        self.ended = None;
        self.focus = 0;
        self.look.told = None;
        self.tail.clear();
        "the machine is as at the beginning; tell gdb by: maintenance flush register-cache\n"
            .to_owned()
    }
}

/// What `core` is at, in words.
pub(super) fn condition(core: &Core) -> String {
    match core.condition {
        Condition::Waiting => "waits to be started".to_owned(),
        Condition::Running => "runs".to_owned(),
        Condition::Asleep => "sleeps".to_owned(),
        Condition::Stopped(trap) if trap == Trap::software(0) => "has ended".to_owned(),
        Condition::Stopped(trap) => format!("is in error mode: {}", trap.reason()),
    }
}

/// The thread of `core`.
pub(super) fn tid(core: usize) -> Tid {
    Tid::MIN.saturating_add(core)
}

/// The signal by which a program under Unix would end.
fn signal(trap: Trap) -> Signal {
    match trap {
        Trap::ILLEGAL_INSTRUCTION
        | Trap::PRIVILEGED_INSTRUCTION
        | Trap::FLOAT_DISABLED
        | Trap::COPROCESSOR_DISABLED => Signal::SIGILL,
        Trap::INSTRUCTION_ACCESS | Trap::DATA_ACCESS => Signal::SIGSEGV,
        Trap::ADDRESS_NOT_ALIGNED => Signal::SIGBUS,
        Trap::FLOAT_EXCEPTION | Trap::DIVISION_BY_ZERO => Signal::SIGFPE,
        _ => Signal::SIGTRAP,
    }
}
