//! Core 0: its tasks by the table, and time.
//!
//! *Invariant:* the software of core 0 stands in one place that is used by this loop alone.

use core::mem::MaybeUninit;
use core::ptr::addr_of_mut;
use core::sync::atomic::Ordering;

use metes_duster_application::control::{Control, Partitions};
use metes_duster_application::declared::{
    PARTITION_EVENTS, PARTITION_SCHEDULE, PARTITION_TC, PARTITION_TM, TASK_FDIR, TASK_HOUSEKEEPING,
    TASK_INGEST, TASK_LOG, TASK_SCHEDULE, TASK_STORE, TASK_SUPPLIES, TASK_TELEMETRY, TASKS_0, TICK,
};
use metes_duster_application::executive::Executive;
use metes_duster_application::shared::Shared;

use crate::clock::{self, Here};
use crate::hardware::{Devices, LOAD};
use crate::{Load, memories, tasks};

/// Too large for a stack.
static mut CONTROL: MaybeUninit<Control> = MaybeUninit::uninit();

/// Core 0's software and its tasks.
pub(crate) struct Unit {
    control: &'static mut Control,
    devices: Devices,
    executive: Executive<{ TASKS_0.len() }>,
}

impl Unit {
    /// Once.
    pub(crate) fn new(shared: &'static Shared) -> Unit {
        let partitions = Partitions {
            tc: memories::partition(PARTITION_TC),
            tm: memories::partition(PARTITION_TM),
            schedule: memories::partition(PARTITION_SCHEDULE),
            events: memories::partition(PARTITION_EVENTS),
        };
        let mut devices = Devices;
        // SAFETY: the partitions are given out once, so this is the only unit, and nothing else names the place.
        let place = unsafe { &mut *addr_of_mut!(CONTROL) };
        Unit {
            control: place.write(Control::new(shared, partitions, &mut devices)),
            devices,
            executive: Executive::new(&TASKS_0, TICK),
        }
    }

    /// Runs the tasks for ever.
    pub(crate) fn run(&mut self) -> ! {
        let mut load = Load::default();
        loop {
            let seen = clock::TICKS[0].load(Ordering::Relaxed);
            let (control, devices) = (&mut *self.control, &mut self.devices);
            let ran = self.executive.dispatch(&mut Here(0), |task, _| match task {
                TASK_TELEMETRY => tasks::telemetry(control, devices),
                TASK_STORE => tasks::store(control, devices),
                TASK_INGEST => tasks::ingest(control, devices),
                TASK_SUPPLIES => tasks::supplies(control, devices),
                TASK_SCHEDULE => tasks::schedule(control, devices),
                TASK_FDIR => tasks::fdir(control, devices),
                TASK_HOUSEKEEPING => tasks::housekeeping(control, devices),
                TASK_LOG => tasks::log(control, devices),
                _ => {}
            });
            match ran {
                Some(ran) => self.control.note(&ran),
                None => duster_runtime::sleep(&clock::TICKS[0], seen),
            }
            if let Some(load) = load.of(seen, || self.executive.take_busy()) {
                LOAD.store(load, Ordering::Relaxed);
            }
        }
    }
}
