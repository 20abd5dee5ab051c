//! The whole unit, and a ground that sends telecommands and listens.
//!
//! *Invariant:* tasks run as the declaration says, none is late.

use std::sync::Arc;
use std::vec;
use std::vec::Vec;

use metes_duster_protocol::definitions::{Command, Event, Failure, Housekeeping, Mode, Report};
use metes_duster_protocol::telecommand::encode;
use metes_duster_protocol::telemetry::Received;
use metes_duster_protocol::{Acknowledge, MAX_PACKET, Telemetry};

use super::lent::Lent;
use super::{Core1, Unit};
use crate::control::{Control, Partitions};
use crate::declared::{
    TASK_FDIR, TASK_HOUSEKEEPING, TASK_INGEST, TASK_LOG, TASK_SCHEDULE, TASK_STORE, TASK_SUPPLIES,
    TASK_TELEMETRY, TASKS_0,
};
use crate::shared::Shared;

/// A telemetry packet that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told(Vec<u8>);

impl Told {
    /// What it says.
    ///
    /// # Panics
    /// If it is no telemetry: the unit sends nothing else.
    pub fn packet(&self) -> Received<'_> {
        match Telemetry::decode(&self.0) {
            Ok(received) => received,
            Err(damage) => panic!("{damage:?}: {:02x?}", self.0),
        }
    }

    /// The event, if it is one.
    pub fn event(&self) -> Option<Event> {
        match self.packet().telemetry {
            Telemetry::Event(event) => Some(event),
            _ => None,
        }
    }

    /// The report, if it is one.
    pub fn report(&self) -> Option<Report<'_>> {
        match self.packet().telemetry {
            Telemetry::Report(report) => Some(report),
            _ => None,
        }
    }

    /// Housekeeping, if it is that.
    pub fn housekeeping(&self) -> Option<Housekeeping<'_>> {
        match self.packet().telemetry {
            Telemetry::Housekeeping(housekeeping) => Some(housekeeping),
            _ => None,
        }
    }

    /// Its source data.
    pub fn data(&self) -> &[u8] {
        &self.0[19..self.0.len() - 2]
    }
}

/// The unit and its ground.
pub struct Bench {
    control: Control,
    /// Its hardware.
    pub unit: Unit,
    /// Core 1.
    pub core_1: Core1,
    milliseconds: u32,
    sequence: u16,
    expected: Option<u16>,
    // Behind core 0, see there.
    _lent: Lent,
}

impl Default for Bench {
    fn default() -> Self {
        Bench::new(Unit::default())
    }
}

impl Bench {
    /// A unit that begins to run.
    pub fn new(mut unit: Unit) -> Self {
        let kept = Arc::new(Shared::new());
        let (mut lent, shared) = Lent::new(&kept);
        let partitions = Partitions {
            tc: lent.partition(0),
            tm: lent.partition(1),
            schedule: lent.partition(2),
            events: lent.partition(3),
        };
        let control = Control::new(shared, partitions, &mut unit);
        Bench {
            control,
            unit,
            core_1: Core1::new(&kept),
            milliseconds: 0,
            sequence: 0,
            expected: None,
            _lent: lent,
        }
    }

    /// A unit in safe mode, what it told until then forgotten.
    pub fn safe() -> Self {
        let mut bench = Bench::default();
        bench.run(2500);
        bench.take();
        assert_eq!(bench.control.mode(), Mode::Safe);
        bench
    }

    /// A unit in a mode that needs no more than commands.
    ///
    /// # Panics
    /// If a command is refused.
    pub fn in_mode(mode: Mode) -> Self {
        let mut bench = Bench::safe();
        for mode in [Mode::Standby, mode] {
            bench.done(&Command::SetMode { mode });
        }
        bench
    }

    /// The unit begins anew, with its flash and its supplies; what the flash did is done to `done` bytes.
    #[must_use]
    pub fn reset(mut self, done: usize) -> Self {
        self.unit.flash.cut(done);
        let unit = self.unit.anew();
        Bench::new(unit)
    }

    /// Core 0.
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// So many milliseconds of both cores.
    pub fn run(&mut self, milliseconds: u32) {
        for _ in 0..milliseconds {
            for (number, task) in TASKS_0.iter().enumerate() {
                let since = self.milliseconds.checked_sub(task.offset);
                if since.is_some_and(|since| since.is_multiple_of(task.period)) {
                    self.task(number);
                }
            }
            self.core_1.millisecond(self.unit.now);
            self.milliseconds += 1;
            self.unit.pass(1000);
        }
    }

    /// Runs a task of core 0 once.
    pub fn task(&mut self, number: usize) {
        let (control, unit) = (&mut self.control, &mut self.unit);
        match number {
            TASK_TELEMETRY => control.telemetry(unit),
            TASK_STORE => control.store(unit),
            TASK_INGEST => control.ingest(unit),
            TASK_SUPPLIES => control.supplies(unit),
            TASK_SCHEDULE => control.schedule(unit),
            TASK_FDIR => control.fdir(unit),
            TASK_HOUSEKEEPING => control.housekeeping(unit),
            TASK_LOG => control.log(unit),
            _ => {}
        }
    }

    /// The packet of a command, with the next sequence count.
    ///
    /// # Panics
    /// If it fits into no packet.
    pub fn packet(&mut self, command: &Command<'_>) -> Vec<u8> {
        let mut bytes = vec![0; MAX_PACKET];
        self.sequence = (self.sequence + 1) & 0x3fff;
        let length = encode(command, self.sequence, Acknowledge::ALL, &mut bytes);
        bytes.truncate(length.expect("it fits"));
        bytes
    }

    /// Sends bytes.
    pub fn send(&mut self, bytes: &[u8]) {
        self.unit.to_unit.extend(bytes);
    }

    /// Sends a command, and lets it be heard.
    pub fn command(&mut self, command: &Command<'_>) {
        let packet = self.packet(command);
        self.send(&packet);
        self.run(60);
    }

    /// All that came since.
    ///
    /// # Panics
    /// If it is no row of whole packets whose sequence counts have no gaps.
    pub fn take(&mut self) -> Vec<Told> {
        let mut all = Vec::new();
        let bytes = &mut self.unit.from_unit;
        while let Some(header) = bytes.first_chunk::<6>() {
            let length = usize::from(u16::from_be_bytes([header[4], header[5]])) + 7;
            if bytes.len() < length {
                break;
            }
            let told = Told(bytes.drain(..length).collect());
            let sequence = told.packet().sequence;
            if let Some(expected) = self.expected {
                assert_eq!(sequence, expected, "a gap in telemetry");
            }
            self.expected = Some((sequence + 1) & 0x3fff);
            all.push(told);
        }
        all
    }

    /// Sends a command and tells the verification reports that came: subtype, and failure.
    pub fn verified(&mut self, command: &Command<'_>) -> Vec<(u8, Option<Failure>)> {
        self.command(command);
        verification(&self.take())
    }

    /// Sends a command that has to be completed within a second.
    ///
    /// # Panics
    /// If it is not.
    pub fn done(&mut self, command: &Command<'_>) {
        self.command(command);
        self.run(1000);
        let verified = verification(&self.take());
        assert_eq!(
            verified.last(),
            Some(&(7, None)),
            "{command:?}: {verified:?}"
        );
    }

    /// Bytes of core 0's partitions that are live.
    pub fn used(&self) -> u32 {
        (0..4)
            .filter_map(|number| self.control.partition(number))
            .map(|partition| partition.statistics().used)
            .sum()
    }
}

/// Verification reports among packets: subtype, and failure.
pub(super) fn verification(all: &[Told]) -> Vec<(u8, Option<Failure>)> {
    all.iter()
        .filter_map(|told| match told.report()? {
            Report::Accepted { .. } => Some((1, None)),
            Report::Refused { code, .. } => Some((2, Some(code))),
            Report::Started { .. } => Some((3, None)),
            Report::NotStarted { code, .. } => Some((4, Some(code))),
            Report::Progress { .. } => Some((5, None)),
            Report::Completed { .. } => Some((7, None)),
            Report::NotCompleted { code, .. } => Some((8, Some(code))),
            _ => None,
        })
        .collect()
}

impl Told {
    /// Verification reports among packets: subtype, and failure.
    pub fn verification(all: &[Told]) -> Vec<(u8, Option<Failure>)> {
        verification(all)
    }
}
