//! Telemetry: what core 1 has to say, packets on their way to the line.
//!
//! Verification and events go before housekeeping and dumps, those before science. A packet gets its sequence count when
//! its first byte goes to the line, so counts on the line have no gaps. Science is not copied: headers and checksum are put
//! around it where core 1 wrote it, and the block goes back when it is stored and sent.
//!
//! *Invariant:* a block that came from core 1 goes back to it once; a block of a partition of core 0 is freed once.

use core::sync::atomic::Ordering;

use metes_duster_protocol::definitions::{Event, Failure, Mode, ModeCause, Partition, Report};
use metes_duster_protocol::telemetry::{HEADER, HEADROOM, TRAILER, seal};
use metes_duster_protocol::{Acknowledge, Probe, RequestId, Telemetry, Time};

use super::{Control, LIVE_SCIENCE, STORE_SCIENCE};
use crate::declared::{LINE_CAPACITY, PARTITIONS, TASK_TELEMETRY};
use crate::hardware::Hardware;
use crate::partition::Block;
use crate::shared;

/// Bytes given to the line in one activation, and bytes that wait there at most, so that urgent packets need not.
const BYTES: usize = 1024;
/// Packets begun in one activation.
const PACKETS: usize = 3;
/// Blocks of science taken in one activation (200 a second; all probes make 45), and reports of core 1.
const BLOCKS: usize = 1;
const REPORTS: usize = 2;
/// Events that wait at most.
const EVENTS: u32 = 64;
/// First partition of core 1.
const CORE_1: usize = 4;

const _: () = {
    // Blocks of core 1 always find room on their way back.
    let mut live = 0;
    let mut number = CORE_1;
    while number < PARTITIONS.len() {
        let demands = PARTITIONS[number].demands;
        let mut demand = 0;
        while demand < demands.len() {
            live += demands[demand].1;
            demand += 1;
        }
        number += 1;
    }
    assert!(live <= crate::declared::FREED_CAPACITY);
};

/// A packet on its way.
pub(super) struct Outgoing {
    block: Block,
    /// Where in the block the packet begins, and how many bytes of source data it has.
    start: u16,
    data: u16,
    kind: (u8, u8),
    time: Time,
    /// Bytes sent; 0: it has no headers yet.
    sent: u16,
}

impl Outgoing {
    /// Source data that stands in a block of science.
    pub(super) fn science(block: Block, data: u16, stored: bool, time: Time) -> Self {
        Outgoing {
            block,
            start: (HEADROOM - HEADER) as u16,
            data,
            kind: (128, if stored { 129 } else { 128 }),
            time,
            sent: 0,
        }
    }

    /// Its block.
    pub(super) fn into_block(self) -> Block {
        self.block
    }
}

/// An acquisition or sweep under way.
pub(super) struct Running {
    pub(super) number: u16,
    pub(super) sweep: bool,
    pub(super) request: Option<(RequestId, Acknowledge)>,
    /// When it has to be over, in microseconds since the epoch.
    pub(super) ends: u64,
    /// Core 1 says that it is over; its last blocks are on their way.
    pub(super) over: bool,
    /// It was ended before its time.
    pub(super) stopped: bool,
    /// Records that the store has of it.
    pub(super) records: u32,
}

impl Control {
    /// The task `telemetry`, each 5 milliseconds: takes what core 1 has, and gives the line what it can carry. Time:
    /// `REPORTS`, `BLOCKS`, `PACKETS`, `BYTES`.
    pub fn telemetry(&mut self, hardware: &mut impl Hardware) {
        self.ran_task(TASK_TELEMETRY);
        for _ in 0..REPORTS {
            if self.urgent.room() < 4 {
                break;
            }
            let Some(report) = self.shared.reports.take() else {
                break;
            };
            self.told(hardware, report);
        }
        for _ in 0..BLOCKS {
            if self.store.queue.room() == 0 {
                break;
            }
            let Some(block) = self.shared.science.take() else {
                break;
            };
            self.science(hardware, block);
        }
        self.finish(hardware);
        self.drain(hardware);
    }

    /// A report of core 1.
    fn told(&mut self, hardware: &mut impl Hardware, report: shared::Report) {
        match report {
            shared::Report::Started { acquisition } => {
                self.event(hardware, Event::AcquisitionStarted { acquisition });
                let request = self.running.as_ref().and_then(|running| running.request);
                self.progressed(hardware, request, 1);
            }
            shared::Report::Finished { acquisition, .. }
            | shared::Report::Swept { acquisition, .. } => {
                if let Some(running) = &mut self.running
                    && running.number == acquisition
                {
                    running.over = true;
                }
            }
            shared::Report::Dust {
                sample,
                time,
                detected,
                peak,
                charge,
            } => self.event(
                hardware,
                Event::Dust {
                    first: sample,
                    time,
                    detected,
                    peak,
                    charge,
                },
            ),
            shared::Report::Lost { probe, count } => {
                let probe = named(probe);
                self.event(hardware, Event::SamplesLost { probe, count });
            }
            shared::Report::Dropped { probe } => {
                let probe = named(probe);
                self.event(hardware, Event::Overrun { probe });
            }
            shared::Report::Refused { partition } => self.flags.refused |= 1 << (partition & 7),
            shared::Report::Budget { task, .. } => {
                self.flags.over_budget |= 1 << (16 + (task & 15))
            }
            shared::Report::Deadline { task, .. } => self.flags.late |= 1 << (16 + (task & 15)),
        }
    }

    /// A block of science: to the store, and from there to the line, or straight to the line.
    fn science(&mut self, hardware: &impl Hardware, block: Block) {
        self.counts.blocks = self.counts.blocks.wrapping_add(1);
        if self.parameters[STORE_SCIENCE] == 0 {
            self.live(hardware, block, false);
        } else if !self.store.takes() {
            self.tell_full(hardware);
            self.live(hardware, block, false);
        } else if let Err(block) = self.store.queue.put(block) {
            self.live(hardware, block, false);
        }
    }

    /// Says, once an acquisition, that the store is full.
    pub(super) fn tell_full(&mut self, hardware: &impl Hardware) {
        let acquisition = self.acquisition();
        if self.store.is_full() && self.full_told != Some(acquisition) {
            self.full_told = Some(acquisition);
            self.event(hardware, Event::StoreFull { acquisition });
        }
    }

    /// Sends a block of science, if that is wanted and the line keeps up. What is not sent is lost unless it is `kept`.
    pub(super) fn live(&mut self, hardware: &impl Hardware, block: Block, kept: bool) {
        let [high, low, ..] = *block.bytes() else {
            self.give_back(block);
            return;
        };
        let data = u16::from_be_bytes([high, low]);
        if self.parameters[LIVE_SCIENCE] == 0 {
            self.give_back(block);
            return;
        }
        let time = self.time(hardware);
        if let Err(back) = self
            .science
            .put(Outgoing::science(block, data, false, time))
        {
            if !kept {
                self.lost_packet();
            }
            self.give_back(back.block);
        }
    }

    /// An acquisition whose last block is stored is over.
    fn finish(&mut self, hardware: &mut impl Hardware) {
        let over = self.running.as_ref().is_some_and(|running| running.over);
        if !over || !self.shared.science.is_empty() || !self.store.idle() {
            return;
        }
        let Some(running) = self.running.take() else {
            return;
        };
        let (acquisition, records) = (running.number, running.records);
        let event = if running.sweep {
            Event::SweepFinished {
                acquisition,
                records,
            }
        } else {
            Event::AcquisitionFinished {
                acquisition,
                records,
            }
        };
        self.event(hardware, event);
        if running.stopped {
            self.failed(hardware, running.request, Failure::Aborted);
        } else {
            self.completed(hardware, running.request);
        }
        if matches!(
            self.mode,
            Mode::AcqEnv | Mode::Sweep | Mode::AcqDust | Mode::AcqFull
        ) {
            self.change_mode(hardware, Mode::Standby, ModeCause::Finished);
        }
    }

    /// Gives the line what it can carry.
    fn drain(&mut self, hardware: &mut impl Hardware) {
        let waiting = LINE_CAPACITY.saturating_sub(hardware.line_free());
        let mut room = BYTES.saturating_sub(waiting).min(hardware.line_free());
        for _ in 0..PACKETS {
            if room == 0 {
                return;
            }
            let Some(mut packet) = self.next_packet() else {
                return;
            };
            let length = HEADER + usize::from(packet.data) + TRAILER;
            let start = usize::from(packet.start);
            let sent = usize::from(packet.sent);
            let part = (length - sent).min(room);
            let bytes = packet.block.bytes().get(start + sent..start + sent + part);
            hardware.line_send(bytes.unwrap_or_default());
            room -= part;
            packet.sent += part as u16;
            if sent + part < length {
                self.current = Some(packet);
            } else {
                self.counts.sent = self.counts.sent.wrapping_add(1);
                self.give_back(packet.block);
            }
        }
    }

    /// The packet that is under way, or the most urgent one, with headers and checksum.
    fn next_packet(&mut self) -> Option<Outgoing> {
        if let Some(packet) = self.current.take() {
            return Some(packet);
        }
        let mut packet = self
            .urgent
            .take()
            .or_else(|| self.normal.take())
            .or_else(|| self.science.take())?;
        let bytes = packet
            .block
            .bytes_mut()
            .get_mut(usize::from(packet.start)..);
        let data = usize::from(packet.data);
        let sealed =
            bytes.and_then(|bytes| seal(bytes, packet.kind, data, self.sequence, packet.time));
        if sealed.is_none() {
            self.lost_packet();
            self.give_back(packet.block);
            return None;
        }
        self.sequence = (self.sequence + 1) & 0x3fff;
        Some(packet)
    }

    /// Frees a block where it belongs.
    pub(super) fn give_back(&mut self, block: Block) {
        match block.partition() {
            0 => self.partitions.tc.free(block),
            1 => self.partitions.tm.free(block),
            2 => self.partitions.schedule.free(block),
            3 => self.partitions.events.free(block),
            // There is room for all that core 1 can have, see above.
            _ => drop(self.shared.freed.put(block)),
        }
    }

    /// Reports something: verification before all else.
    pub(super) fn report(&mut self, hardware: &impl Hardware, report: Report<'_>) {
        self.queue(hardware, &Telemetry::Report(report));
    }

    /// Reports an event, unless the ground does not want to know.
    pub(super) fn event(&mut self, hardware: &impl Hardware, event: Event) {
        if self.parameters[super::LOG_LEVEL] > 0 {
            self.log.line(b'E', &[u32::from(event.number())]);
        }
        if self.events_disabled >> event.number() & 1 == 0 {
            self.queue(hardware, &Telemetry::Event(event));
        }
    }

    /// Queues a packet; whether there was room.
    pub(super) fn queue(&mut self, hardware: &impl Hardware, telemetry: &Telemetry<'_>) -> bool {
        let Some(data) = telemetry.write_data(&mut self.scratch) else {
            return false;
        };
        let kind = telemetry.kind();
        let (partition, name) = if kind.0 == 5 {
            (&mut self.partitions.events, Partition::Events)
        } else {
            (&mut self.partitions.tm, Partition::Tm)
        };
        let live = partition.statistics();
        let crowded = kind.0 == 5 && live.allocations.wrapping_sub(live.frees) >= EVENTS;
        let block = if crowded {
            None
        } else {
            partition.allocate(HEADER + data + TRAILER)
        };
        let Some(mut block) = block else {
            self.flags.refused |= 1 << name as u8;
            self.lost_packet();
            return false;
        };
        let place = block.bytes_mut().get_mut(HEADER..HEADER + data);
        if let (Some(place), Some(bytes)) = (place, self.scratch.get(..data)) {
            place.copy_from_slice(bytes);
        }
        let packet = Outgoing {
            block,
            start: 0,
            data: data as u16,
            kind,
            time: self.time(hardware),
            sent: 0,
        };
        let put = match kind.0 {
            3 | 6 | 11 => self.normal.put(packet),
            _ => self.urgent.put(packet),
        };
        if let Err(back) = put {
            self.lost_packet();
            self.give_back(back.block);
            return false;
        }
        true
    }

    pub(super) fn lost_packet(&mut self) {
        self.counts.lost = self.counts.lost.wrapping_add(1);
    }

    /// On-board time now.
    pub(super) fn time(&self, hardware: &impl Hardware) -> Time {
        let units = Time::from_microseconds(hardware.now()).units();
        Time::from_units(units.wrapping_add(self.time_offset))
    }

    /// Whether core 1 has ticked since it was asked last.
    pub(super) fn core_1_ticks(&self) -> u32 {
        self.shared.status.ticks.load(Ordering::Relaxed)
    }
}

/// A probe as telemetry names it.
pub(super) fn named(probe: shared::Probe) -> Probe {
    match probe {
        shared::Probe::Langmuir => Probe::Langmuir,
        shared::Probe::Efield => Probe::Efield,
        shared::Probe::Dust => Probe::Dust,
    }
}
