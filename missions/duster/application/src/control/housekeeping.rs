//! Service 3: structures of housekeeping, periodic and on request.
//!
//! *Invariant:* of structures that are due in one activation each is sent in this or a following one.

use metes_duster_protocol::definitions::{
    CUSTOM, HOUSEKEEPING, Housekeeping, Memories, MemoryOfPartition, Parameter, System,
};
use metes_duster_protocol::time::milliseconds;
use metes_duster_protocol::value::{Counted, Value, Writer};

use super::Control;
use crate::declared::{PARTITIONS, TASK_HOUSEKEEPING};
use crate::hardware::Hardware;
use crate::partition::{Partition, Statistics};

/// Structures sent in one activation.
const SENT: usize = 2;
/// Structures, those of the ground's choice last, and how many those are.
const STRUCTURES: usize = HOUSEKEEPING.len();
const CUSTOMS: usize = 2;

/// When a structure is sent.
#[derive(Clone, Copy)]
struct Period {
    structure: u8,
    interval: u16,
    /// Activations until it is sent.
    left: u16,
    enabled: bool,
    exists: bool,
}

/// What is sent when.
pub(super) struct Periods {
    periods: [Period; STRUCTURES],
    customs: [([Parameter; CUSTOM], usize); CUSTOMS],
}

impl Periods {
    pub(super) const fn new() -> Self {
        let mut periods = [Period {
            structure: 0,
            interval: 0,
            left: 0,
            enabled: false,
            exists: false,
        }; STRUCTURES];
        let mut index = 0;
        while index < STRUCTURES {
            let row = &HOUSEKEEPING[index];
            periods[index] = Period {
                structure: row.key.0,
                interval: row.extra,
                left: row.extra,
                enabled: row.extra > 0,
                exists: row.extra > 0,
            };
            index += 1;
        }
        Periods {
            periods,
            customs: [([Parameter::Mode; CUSTOM], 0); CUSTOMS],
        }
    }

    fn of(&mut self, structure: u8) -> Option<&mut Period> {
        self.periods
            .iter_mut()
            .find(|period| period.structure == structure)
    }

    pub(super) fn exists(&self, structure: u8) -> bool {
        self.periods
            .iter()
            .any(|period| period.structure == structure && period.exists)
    }

    pub(super) fn enable(&mut self, structure: u8, enabled: bool) {
        if let Some(period) = self.of(structure) {
            period.enabled = enabled;
            period.left = period.interval;
        }
    }

    pub(super) fn set_period(&mut self, structure: u8, interval: u16) {
        if let Some(period) = self.of(structure) {
            period.interval = interval;
            period.left = interval;
        }
    }

    /// Makes a structure; it is not sent periodically before that is enabled.
    pub(super) fn create(
        &mut self,
        structure: u8,
        interval: u16,
        parameters: impl Iterator<Item = Parameter>,
    ) {
        if let Some((places, count)) = self.customs.get_mut(custom(structure)) {
            *count = 0;
            for (place, parameter) in places.iter_mut().zip(parameters) {
                *place = parameter;
                *count += 1;
            }
        }
        if let Some(period) = self.of(structure) {
            period.exists = true;
            period.enabled = false;
            period.interval = interval;
        }
    }

    pub(super) fn delete(&mut self, structure: u8) {
        if let Some(period) = self.of(structure) {
            period.exists = false;
            period.enabled = false;
        }
    }

    /// Counts down; whether any is due.
    fn tick(&mut self) {
        for period in &mut self.periods {
            if period.enabled {
                period.left = period.left.saturating_sub(1);
            }
        }
    }

    /// A structure that is due, which is not any more.
    fn take_due(&mut self) -> Option<u8> {
        let due = self
            .periods
            .iter_mut()
            .find(|period| period.enabled && period.left == 0)?;
        due.left = due.interval.max(1);
        Some(due.structure)
    }
}

/// Which of the structures of the ground's choice.
const fn custom(structure: u8) -> usize {
    structure.wrapping_sub(16) as usize
}

impl Control {
    /// The task `housekeeping`, each 100 milliseconds: sends what is due. Time: `SENT` structures.
    pub fn housekeeping(&mut self, hardware: &mut impl Hardware) {
        self.ran_task(TASK_HOUSEKEEPING);
        self.housekeeping.tick();
        for _ in 0..SENT {
            let Some(structure) = self.housekeeping.take_due() else {
                break;
            };
            self.send_structure(hardware, structure);
        }
    }

    /// Sends a structure; whether there was room.
    pub(super) fn send_structure(&mut self, hardware: &impl Hardware, structure: u8) -> bool {
        match structure {
            1 => {
                let housekeeping = Housekeeping::System {
                    mode: self.mode,
                    system: self.system(hardware),
                };
                self.send_housekeeping(hardware, housekeeping)
            }
            2 => {
                let housekeeping = Housekeeping::Supplies {
                    hv_state: self.supplies.state(),
                    supplies: self.supplies.told(),
                };
                self.send_housekeeping(hardware, housekeeping)
            }
            3 => {
                let memory = self.memories();
                self.send_housekeeping(hardware, Housekeeping::Memory { memory })
            }
            4 => {
                let acquisitions = self.acquisitions();
                self.send_housekeeping(hardware, Housekeeping::Acquisition { acquisitions })
            }
            _ => self.send_custom(hardware, structure),
        }
    }

    fn send_custom(&mut self, hardware: &impl Hardware, structure: u8) -> bool {
        let Some((parameters, count)) = self.housekeeping.customs.get(custom(structure)) else {
            return false;
        };
        let mut bytes = [0; CUSTOM * 4];
        let mut writer = Writer::new(&mut bytes);
        for parameter in parameters.iter().take(*count) {
            self.parameter(hardware, *parameter).write(&mut writer);
        }
        let length = writer.length().unwrap_or(0);
        let values = Counted::new(bytes.get(..length).unwrap_or_default());
        let housekeeping = if structure == 16 {
            Housekeeping::Custom1 { values }
        } else {
            Housekeeping::Custom2 { values }
        };
        self.send_housekeeping(hardware, housekeeping)
    }

    fn system(&self, hardware: &impl Hardware) -> System {
        let counts = &self.counts;
        let queued = self.urgent.len() + self.normal.len() + self.science.len();
        System {
            uptime: milliseconds(hardware.now()) as u32,
            resets: self.store.resets(),
            load_0: hardware.load(),
            load_1: self
                .shared
                .status
                .load
                .load(core::sync::atomic::Ordering::Relaxed) as u16,
            received: counts.received,
            accepted: counts.accepted,
            refused: counts.refused,
            garbage: counts.garbage,
            sent: counts.sent,
            lost: counts.lost,
            queued: queued as u16,
            scheduled: self.schedule.len() as u16,
            schedule_enabled: self.schedule.enabled.into(),
            acquisition: self.acquisition(),
            records: self.store.records(),
            pages: self.store.pages(),
            flash_failures: self.store.failures(),
            budget_overruns: counts.budget_overruns,
            deadlines_missed: counts.deadlines_missed,
        }
    }

    fn memories(&self) -> Memories {
        let mut memories = Memories::default();
        let places = memories.partition.iter_mut();
        for (number, place) in places.enumerate().take(PARTITIONS.len()) {
            *place = told(self.partition(number).map_or_else(
                || {
                    let partitions = &self.shared.status.partitions;
                    partitions
                        .get(number)
                        .map_or_else(Statistics::default, |it| it.told())
                },
                Partition::statistics,
            ));
        }
        memories
    }
}

/// A partition as telemetry has it; its clock ticks each 100 ns.
fn told(it: Statistics) -> MemoryOfPartition {
    MemoryOfPartition {
        size: it.size,
        used: it.used,
        peak: it.peak,
        largest_free: it.largest_free,
        allocations: it.allocations,
        frees: it.frees,
        refusals: it.refusals,
        worst: it.worst.saturating_mul(100),
    }
}
