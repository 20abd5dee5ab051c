//! Service 11: telecommands that wait for their time, each in a block of its own.
//!
//! *Invariant:* an entry holds a telecommand that was one when it came; entries are released in the order of their times.

use metes_duster_protocol::definitions::{Event, Failure, Report, RequestId, ScheduledRequest};
use metes_duster_protocol::telecommand::decode;
use metes_duster_protocol::value::{Counted, Value, Writer};
use metes_duster_protocol::{Telemetry, Time};

use super::Control;
use super::execute::when;
use crate::declared::TASK_SCHEDULE;
use crate::hardware::Hardware;
use crate::partition::Block;

/// Entries.
pub(super) const ENTRIES: usize = 64;
/// Entries released in one activation.
const RELEASED: usize = 2;
/// An entry may lie so far ahead, in units of 2⁻¹⁶ s: a year.
const AHEAD: u64 = (366 * 86_400) << 16;

/// A telecommand that waits.
struct Entry {
    release: Time,
    block: Block,
}

/// What waits.
pub(super) struct Schedule {
    entries: [Option<Entry>; ENTRIES],
    count: usize,
    pub(super) enabled: bool,
}

impl Schedule {
    pub(super) const fn new() -> Self {
        Schedule {
            entries: [const { None }; ENTRIES],
            count: 0,
            enabled: false,
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.count
    }

    pub(super) fn has(&self, request: RequestId) -> bool {
        let is = |entry: &Entry| RequestId::of(entry.block.bytes()) == request;
        self.entries.iter().flatten().any(is)
    }

    /// Takes the entry that is due first, if one is.
    fn take_due(&mut self, now: Time) -> Option<Entry> {
        let due = |entry: &Option<Entry>| entry.as_ref().map(|entry| entry.release);
        let first = self.entries.iter().filter_map(due).min()?;
        if first > now {
            return None;
        }
        let place = self
            .entries
            .iter_mut()
            .find(|entry| due(entry) == Some(first))?;
        self.count -= 1;
        place.take()
    }
}

impl Control {
    /// The task `schedule`, each 100 milliseconds: releases what is due. Time: `RELEASED` telecommands.
    pub fn schedule(&mut self, hardware: &mut impl Hardware) {
        self.ran_task(TASK_SCHEDULE);
        for _ in 0..RELEASED {
            if self.urgent.room() < 8 {
                return;
            }
            let now = self.time(hardware);
            let Some(entry) = self.schedule.take_due(now) else {
                return;
            };
            self.release(hardware, entry);
        }
    }

    fn release(&mut self, hardware: &mut impl Hardware, entry: Entry) {
        let refused = if self.schedule.enabled {
            match decode(entry.block.bytes()) {
                Ok(request) => {
                    let done = self.execute(hardware, &request);
                    done.map_err(|code| (request.id, code)).err()
                }
                // A bit of it has changed in memory.
                Err(refusal) => Some((refusal.id, refusal.code)),
            }
        } else {
            // While the schedule stands still, what falls due is not made up for.
            Some((RequestId::of(entry.block.bytes()), Failure::Time))
        };
        if let Some((request, code)) = refused {
            self.event(hardware, Event::ScheduledRefused { request, code });
        }
        self.partitions.schedule.free(entry.block);
    }

    pub(super) fn check_schedule(
        &self,
        hardware: &impl Hardware,
        release: Time,
        request: &[u8],
    ) -> Result<(), Failure> {
        let now = self.time(hardware).units();
        let ahead = release.units().saturating_sub(now);
        when(ahead > 0 && ahead <= AHEAD, Failure::Time)?;
        let nested = decode(request).map_err(|_| Failure::Nested)?;
        // What changes the schedule is not scheduled.
        when(nested.command.key().0 != 11, Failure::Nested)?;
        when(self.schedule.count < ENTRIES, Failure::ScheduleFull)
    }

    pub(super) fn insert_schedule(&mut self, release: Time, request: &[u8]) -> Result<(), Failure> {
        let mut block = self
            .partitions
            .schedule
            .allocate(request.len())
            .ok_or(Failure::Memory)?;
        block.bytes_mut().copy_from_slice(request);
        match self
            .schedule
            .entries
            .iter_mut()
            .find(|entry| entry.is_none())
        {
            Some(place) => {
                *place = Some(Entry { release, block });
                self.schedule.count += 1;
                Ok(())
            }
            None => {
                self.partitions.schedule.free(block);
                Err(Failure::ScheduleFull)
            }
        }
    }

    pub(super) fn delete_schedule(&mut self, request: RequestId) {
        for place in &mut self.schedule.entries {
            let is = |entry: &Entry| RequestId::of(entry.block.bytes()) == request;
            if place.as_ref().is_some_and(is)
                && let Some(entry) = place.take()
            {
                self.schedule.count -= 1;
                self.partitions.schedule.free(entry.block);
            }
        }
    }

    pub(super) fn reset_schedule(&mut self) {
        self.schedule.enabled = false;
        self.schedule.count = 0;
        for place in &mut self.schedule.entries {
            if let Some(entry) = place.take() {
                self.partitions.schedule.free(entry.block);
            }
        }
    }

    pub(super) fn report_schedule(&mut self, hardware: &impl Hardware) -> Result<(), Failure> {
        let mut bytes = [0; ENTRIES * ScheduledRequest::SIZE];
        let mut writer = Writer::new(&mut bytes);
        for entry in self.schedule.entries.iter().flatten() {
            let request = RequestId::of(entry.block.bytes());
            let release = entry.release;
            ScheduledRequest { release, request }.write(&mut writer);
        }
        let length = writer.length().unwrap_or(0);
        let entries = Counted::new(bytes.get(..length).unwrap_or_default());
        let report = Telemetry::Report(Report::Schedule { entries });
        when(self.queue(hardware, &report), Failure::Memory)
    }
}
