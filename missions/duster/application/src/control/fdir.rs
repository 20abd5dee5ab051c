//! Failures found, isolated, recovered from: the watchdog, tasks that are silent, code that has changed, acquisitions without
//! an end.
//!
//! *Invariant:* the watchdog is kicked only if each task of core 0 ran and core 1 ticked within the last half second, the last
//! pass over code and constants found them as they were, and no restart was asked for.

use metes_duster_protocol::definitions::{Event, Failure, Mode, ModeCause, Partition, Task};

use super::Control;
use crate::declared::{TASK_FDIR, TASKS_0};
use crate::executive::Ran;
use crate::hardware::Hardware;
use crate::shared::Order;

/// Activations within which all have to show that they live.
const LOOKS: u8 = 5;
/// Events of flags told in one activation.
const TOLD: usize = 4;
/// Core 1 among the silent ones.
const CORE_1: u16 = 1 << 15;

/// What happened since it was told last, a bit each.
#[derive(Default)]
pub(super) struct Flags {
    /// Partitions that refused a block.
    pub(super) refused: u8,
    /// Tasks over budget and late, by the numbers of [`Task`].
    pub(super) over_budget: u32,
    pub(super) late: u32,
}

impl Control {
    /// The task `fdir`, each 100 milliseconds: kicks the watchdog if all is well, tells what was noted. Time: `TOLD`
    /// events, one change of mode, one portion of the image.
    pub fn fdir(&mut self, hardware: &mut impl Hardware) {
        self.ran_task(TASK_FDIR);
        if self.safe_pending && self.order(Order::Safe).is_ok() {
            self.safe_pending = false;
        }
        self.looks += 1;
        if self.looks >= LOOKS {
            self.looks = 0;
            self.look(hardware);
        }
        self.look_at_image(hardware);
        if self.all_alive && self.image_holds && !self.restart {
            hardware.kick();
        }
        self.watch_acquisition(hardware);
        self.watch_high_voltage(hardware);
        self.tell_flags(hardware);
        if self.counts.lost != self.counts.lost_told {
            self.counts.lost_told = self.counts.lost;
            let packets = self.counts.lost;
            self.event(hardware, Event::TelemetryLost { packets });
        }
    }

    /// Whether all ran since the last look.
    fn look(&mut self, hardware: &mut impl Hardware) {
        let all = (1_u16 << TASKS_0.len()) - 1;
        let mut silent = all & !core::mem::take(&mut self.ran);
        let ticks = self.core_1_ticks();
        self.core_1_alive = ticks != self.core_1_seen;
        self.core_1_seen = ticks;
        if !self.core_1_alive {
            silent |= CORE_1;
        }
        let was_alive = self.all_alive;
        self.all_alive = silent == 0;
        if was_alive && !self.all_alive {
            self.event(hardware, Event::TaskSilent { tasks: silent });
            self.safe(hardware, ModeCause::Fault);
        }
    }

    /// Goes on with the pass over code and constants. Software that is no longer what it was may do anything, so nothing is
    /// acquired until the watchdog has brought the image back.
    fn look_at_image(&mut self, hardware: &mut impl Hardware) {
        let holds = self.integrity.step(hardware.image());
        if !holds && self.image_holds {
            self.image_holds = false;
            self.event(hardware, Event::ImageCorrupt {});
            self.safe(hardware, ModeCause::Fault);
        }
    }

    /// An acquisition that core 1 does not end is given up.
    fn watch_acquisition(&mut self, hardware: &mut impl Hardware) {
        let now = hardware.now();
        if self
            .running
            .as_ref()
            .is_some_and(|running| now >= running.ends)
        {
            self.safe(hardware, ModeCause::Fault);
        }
    }

    /// A mode that acquires under high voltage is left when that is gone.
    fn watch_high_voltage(&mut self, hardware: &mut impl Hardware) {
        let stable =
            self.supplies.state() == metes_duster_protocol::definitions::SupplyState::Stable;
        if self.under_high_voltage() && !stable && self.running.is_none() {
            self.change_mode(hardware, Mode::Standby, ModeCause::Fault);
        }
    }

    fn tell_flags(&mut self, hardware: &impl Hardware) {
        for _ in 0..TOLD {
            let event = if let Some(bit) = take_bit(&mut self.flags.late) {
                Task::of(bit).map(|task| Event::DeadlineMissed { task })
            } else if let Some(bit) = take_bit(&mut self.flags.over_budget) {
                Task::of(bit).map(|task| Event::BudgetOverrun { task })
            } else {
                let mut refused = self.flags.refused.into();
                let bit = take_bit(&mut refused);
                self.flags.refused = refused as u8;
                bit.and_then(Partition::of)
                    .map(|partition| Event::AllocationFailed { partition })
            };
            let Some(event) = event else {
                return;
            };
            // If the events' partition refuses this one, that need not be told each time.
            let refused = self.flags.refused;
            self.event(hardware, event);
            self.flags.refused = refused;
        }
    }

    /// Goes to safe mode: high voltage off, converters to zero, what is under way ended with what there is of it.
    pub(super) fn safe(&mut self, hardware: &mut impl Hardware, cause: ModeCause) {
        self.high_voltage_off(hardware);
        if self.order(Order::Safe).is_err() {
            self.safe_pending = true;
        }
        if let Some(running) = self.running.take() {
            self.failed(hardware, running.request, Failure::Aborted);
        }
        self.change_mode(hardware, Mode::Safe, cause);
    }

    /// Changes the mode, and tells.
    pub(super) fn change_mode(&mut self, hardware: &impl Hardware, to: Mode, cause: ModeCause) {
        let from = self.mode;
        self.mode = to;
        if from == Mode::Dump && to != Mode::Dump {
            self.end_dump(hardware, Err(Failure::Aborted));
        }
        if from != to {
            self.log.line(b'M', &[from as u32, to as u32]);
            self.event(hardware, Event::ModeChanged { from, to, cause });
        }
    }

    /// Notes that a task of core 0 runs.
    pub(super) fn ran_task(&mut self, task: usize) {
        self.ran |= 1 << task;
    }

    /// Takes note of how an activation of a task of core 0 went.
    pub fn note(&mut self, ran: &Ran) {
        let bit = 1_u32.checked_shl(ran.task as u32).unwrap_or(0);
        if ran.over_budget {
            self.flags.over_budget |= bit;
            self.counts.budget_overruns = self.counts.budget_overruns.wrapping_add(1);
        }
        if ran.late || ran.skipped > 0 {
            self.flags.late |= bit;
            self.counts.deadlines_missed = self
                .counts
                .deadlines_missed
                .wrapping_add(u32::from(ran.late) + ran.skipped);
        }
    }
}

/// Takes the lowest bit that is set; its number.
fn take_bit(bits: &mut u32) -> Option<u8> {
    if *bits == 0 {
        return None;
    }
    let bit = bits.trailing_zeros();
    *bits &= *bits - 1;
    Some(bit as u8)
}
