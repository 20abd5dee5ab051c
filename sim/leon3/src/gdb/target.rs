//! What the protocol's library asks a session for.
//!
//! Invariant: whatever a debugger asks for is done or answered with an error; nothing it sends ends more than its
//! own session.

use std::convert::Infallible;

use gdbstub::common::{Signal, Tid};
use gdbstub::target::ext::base::BaseOps;
use gdbstub::target::ext::base::multithread::{
    MultiThreadBase, MultiThreadRangeStepping, MultiThreadRangeSteppingOps, MultiThreadResume,
    MultiThreadResumeOps, MultiThreadSchedulerLocking, MultiThreadSchedulerLockingOps,
    MultiThreadSingleStep, MultiThreadSingleStepOps,
};
use gdbstub::target::ext::base::single_register_access::{
    SingleRegisterAccess, SingleRegisterAccessOps,
};
use gdbstub::target::ext::breakpoints::{
    Breakpoints, BreakpointsOps, HwBreakpoint, HwBreakpointOps, HwWatchpoint, HwWatchpointOps,
    SwBreakpoint, SwBreakpointOps, WatchKind,
};
use gdbstub::target::ext::monitor_cmd::{ConsoleOutput, MonitorCmd, MonitorCmdOps};
use gdbstub::target::ext::thread_extra_info::{ThreadExtraInfo, ThreadExtraInfoOps};
use gdbstub::target::{Target, TargetError, TargetResult};

use super::look::{Kind, Step, Stepper, Watch};
use super::session::{Session, condition, tid};
use super::sparc::{self, Number, Sparc, Words};
use super::{PACKET, memory};

/// Numbers of errors, as Unix has them.
const NO_SUCH_THREAD: u8 = 3;
const BAD_ADDRESS: u8 = 14;
const INVALID: u8 = 22;

impl Session<'_> {
    fn known(&self, tid: Tid) -> TargetResult<usize, Self> {
        self.core_of(tid).ok_or(TargetError::Errno(NO_SUCH_THREAD))
    }

    /// The core of a thread that is to run, whatever others do.
    fn mention(&mut self, tid: Tid) -> Option<usize> {
        let core = self.core_of(tid)?;
        self.mentioned |= 1 << core;
        Some(core)
    }

    /// Lets a core step; of a thread that is none, nothing is wanted.
    fn steps(&mut self, tid: Tid, step: Step) {
        if let Some(core) = self.mention(tid) {
            self.look.steppers.retain(|other| other.core != core);
            self.look.steppers.push(Stepper::new(core, step));
        }
    }
}

impl Target for Session<'_> {
    type Arch = Sparc;
    type Error = Infallible;

    fn base_ops(&mut self) -> BaseOps<'_, Sparc, Infallible> {
        BaseOps::MultiThread(self)
    }

    fn support_breakpoints(&mut self) -> Option<BreakpointsOps<'_, Self>> {
        Some(self)
    }

    fn support_monitor_cmd(&mut self) -> Option<MonitorCmdOps<'_, Self>> {
        Some(self)
    }
}

impl MultiThreadBase for Session<'_> {
    fn read_registers(&mut self, registers: &mut Words, tid: Tid) -> TargetResult<(), Self> {
        *registers = sparc::read_all(&self.machine.cores()[self.known(tid)?]);
        Ok(())
    }

    fn write_registers(&mut self, registers: &Words, tid: Tid) -> TargetResult<(), Self> {
        let core = self.known(tid)?;
        let float = self.machine.configuration().float;
        sparc::write_all(self.machine.core_mut(core), registers, float);
        Ok(())
    }

    fn support_single_register_access(&mut self) -> Option<SingleRegisterAccessOps<'_, Tid, Self>> {
        Some(self)
    }

    fn read_addrs(&mut self, address: u32, data: &mut [u8], tid: Tid) -> TargetResult<usize, Self> {
        // A longer answer does not fit into a packet, so no debugger asks for one; the library would go on with
        // pieces, past the end of memory.
        if data.len() > PACKET / 2 {
            return Err(TargetError::Errno(INVALID));
        }
        let core = self.known(tid)?;
        match memory::read(self.machine, core, address, data) {
            0 => Err(TargetError::Errno(BAD_ADDRESS)),
            count => Ok(count),
        }
    }

    fn write_addrs(&mut self, address: u32, data: &[u8], tid: Tid) -> TargetResult<(), Self> {
        let core = self.known(tid)?;
        if data.is_empty() || memory::write(self.machine, core, address, data) {
            Ok(())
        } else {
            Err(TargetError::Errno(BAD_ADDRESS))
        }
    }

    fn list_active_threads(&mut self, active: &mut dyn FnMut(Tid)) -> Result<(), Infallible> {
        // The one that stopped last comes first: that is what a debugger looks at when it begins.
        active(tid(self.focus));
        let others = (0..self.machine.cores().len()).filter(|&core| core != self.focus);
        others.map(tid).for_each(active);
        Ok(())
    }

    fn support_resume(&mut self) -> Option<MultiThreadResumeOps<'_, Self>> {
        Some(self)
    }

    fn support_thread_extra_info(&mut self) -> Option<ThreadExtraInfoOps<'_, Self>> {
        Some(self)
    }
}

impl SingleRegisterAccess<Tid> for Session<'_> {
    fn read_register(
        &mut self,
        tid: Tid,
        number: Number,
        into: &mut [u8],
    ) -> TargetResult<usize, Self> {
        let word = sparc::read(&self.machine.cores()[self.known(tid)?], number);
        let into = into.first_chunk_mut().ok_or(TargetError::Errno(INVALID))?;
        *into = word.to_be_bytes();
        Ok(into.len())
    }

    fn write_register(&mut self, tid: Tid, number: Number, bytes: &[u8]) -> TargetResult<(), Self> {
        let core = self.known(tid)?;
        let bytes = bytes.try_into().map_err(|_| TargetError::Errno(INVALID))?;
        let float = self.machine.configuration().float;
        sparc::write(
            self.machine.core_mut(core),
            number,
            u32::from_be_bytes(bytes),
            float,
        );
        Ok(())
    }
}

impl ThreadExtraInfo for Session<'_> {
    fn thread_extra_info(&self, tid: Tid, into: &mut [u8]) -> Result<usize, Infallible> {
        let words = match self.core_of(tid) {
            Some(core) => format!("core {core} {}", condition(&self.machine.cores()[core])),
            None => "there is no such core".to_owned(),
        };
        let count = words.len().min(into.len());
        into[..count].copy_from_slice(&words.as_bytes()[..count]);
        Ok(count)
    }
}

impl MultiThreadResume for Session<'_> {
    fn resume(&mut self) -> Result<(), Infallible> {
        self.look.hit = None;
        Ok(())
    }

    fn clear_resume_actions(&mut self) -> Result<(), Infallible> {
        self.look.steppers.clear();
        self.look.alone = None;
        self.mentioned = 0;
        Ok(())
    }

    fn set_resume_action_continue(
        &mut self,
        tid: Tid,
        _: Option<Signal>,
    ) -> Result<(), Infallible> {
        self.mention(tid);
        Ok(())
    }

    fn support_single_step(&mut self) -> Option<MultiThreadSingleStepOps<'_, Self>> {
        Some(self)
    }

    fn support_range_step(&mut self) -> Option<MultiThreadRangeSteppingOps<'_, Self>> {
        Some(self)
    }

    fn support_scheduler_locking(&mut self) -> Option<MultiThreadSchedulerLockingOps<'_, Self>> {
        Some(self)
    }
}

impl MultiThreadSingleStep for Session<'_> {
    fn set_resume_action_step(&mut self, tid: Tid, _: Option<Signal>) -> Result<(), Infallible> {
        self.steps(tid, Step::One);
        Ok(())
    }
}

impl MultiThreadRangeStepping for Session<'_> {
    fn set_resume_action_range_step(
        &mut self,
        tid: Tid,
        start: u32,
        end: u32,
    ) -> Result<(), Infallible> {
        self.steps(tid, Step::Range(start, end));
        Ok(())
    }
}

impl MultiThreadSchedulerLocking for Session<'_> {
    /// Other cores do what they would, untold: to hold them would change the program's run.
    fn set_resume_action_scheduler_lock(&mut self) -> Result<(), Infallible> {
        if self.mentioned != 0 {
            self.focus = self.mentioned.trailing_zeros() as usize;
            self.look.alone = Some(self.mentioned);
        }
        Ok(())
    }
}

impl Breakpoints for Session<'_> {
    fn support_sw_breakpoint(&mut self) -> Option<SwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_breakpoint(&mut self) -> Option<HwBreakpointOps<'_, Self>> {
        Some(self)
    }

    fn support_hw_watchpoint(&mut self) -> Option<HwWatchpointOps<'_, Self>> {
        Some(self)
    }
}

impl SwBreakpoint for Session<'_> {
    fn add_sw_breakpoint(&mut self, address: u32, _: usize) -> TargetResult<bool, Self> {
        Ok(self.look.add_break(address, Kind::Soft))
    }

    fn remove_sw_breakpoint(&mut self, address: u32, _: usize) -> TargetResult<bool, Self> {
        Ok(self.look.remove_break(address, Kind::Soft))
    }
}

impl HwBreakpoint for Session<'_> {
    fn add_hw_breakpoint(&mut self, address: u32, _: usize) -> TargetResult<bool, Self> {
        Ok(self.look.add_break(address, Kind::Hard))
    }

    fn remove_hw_breakpoint(&mut self, address: u32, _: usize) -> TargetResult<bool, Self> {
        Ok(self.look.remove_break(address, Kind::Hard))
    }
}

impl HwWatchpoint for Session<'_> {
    fn add_hw_watchpoint(
        &mut self,
        address: u32,
        length: u32,
        kind: WatchKind,
    ) -> TargetResult<bool, Self> {
        Ok(self.look.add_watch(Watch {
            address,
            length,
            kind,
        }))
    }

    fn remove_hw_watchpoint(
        &mut self,
        address: u32,
        length: u32,
        kind: WatchKind,
    ) -> TargetResult<bool, Self> {
        Ok(self.look.remove_watch(Watch {
            address,
            length,
            kind,
        }))
    }
}

impl MonitorCmd for Session<'_> {
    fn handle_monitor_cmd(
        &mut self,
        command: &[u8],
        mut out: ConsoleOutput<'_>,
    ) -> Result<(), Infallible> {
        let answer = self.command(&String::from_utf8_lossy(command));
        out.write_raw(answer.as_bytes());
        Ok(())
    }
}
