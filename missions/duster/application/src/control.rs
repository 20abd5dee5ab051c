//! Core 0: telecommands, telemetry, modes, supplies, the store of science.
//!
//! Eight tasks, each a method that does one bounded step over [`Hardware`]: [`Control::telemetry`], [`Control::store`],
//! [`Control::ingest`], [`Control::supplies`], [`Control::schedule`], [`Control::fdir`], [`Control::housekeeping`],
//! [`Control::log`]. What they share stands here.
//!
//! *Invariant:* a telecommand that is accepted is answered by its completion or the failure of it, whatever happens but a
//! reset; the mode changes in one function, and what safe mode means happens in one.

mod execute;
mod fdir;
mod fifo;
mod housekeeping;
mod ingest;
mod integrity;
mod log;
mod memory;
mod schedule;
mod store;
mod supplies;
mod telemetry;

use metes_duster_protocol::definitions::{Event, Failure, Mode, ModeCause, PARAMETERS, Parameter};
use metes_duster_protocol::{Acknowledge, Framer, MAX_PACKET, RequestId};

use crate::declared::TASK_STORE;
use crate::hardware::Hardware;
use crate::partition::Partition;
use crate::shared::Shared;
use fdir::Flags;
use fifo::Fifo;
use housekeeping::Periods;
use integrity::Integrity;
use log::Log;
use memory::MemoryJob;
use schedule::Schedule;
use store::{Step, Store};
use supplies::Supplies;
use telemetry::{Outgoing, Running};

/// Places of parameters.
const ARM_TIMEOUT: usize = Parameter::ArmTimeout as usize - 1;
const STABLE_TIMEOUT: usize = Parameter::StableTimeout as usize - 1;
const SUPPLY_RETRIES: usize = Parameter::SupplyRetries as usize - 1;
const LIVE_SCIENCE: usize = Parameter::LiveScience as usize - 1;
const STORE_SCIENCE: usize = Parameter::StoreScience as usize - 1;
const LOG_LEVEL: usize = Parameter::LogLevel as usize - 1;

/// Packets of a dump that may wait.
const WAITING: usize = 8;

/// The partitions of core 0.
pub struct Partitions {
    /// Telecommands that are being executed.
    pub tc: Partition,
    /// Telemetry.
    pub tm: Partition,
    /// Scheduled telecommands.
    pub schedule: Partition,
    /// Events.
    pub events: Partition,
}

/// How a telecommand goes on.
enum Progress {
    /// It is completed.
    Done,
    /// It will be.
    UnderWay,
}

/// What is counted.
#[derive(Default)]
struct Counts {
    received: u32,
    accepted: u32,
    refused: u32,
    garbage: u32,
    sent: u32,
    lost: u32,
    lost_told: u32,
    blocks: u32,
    budget_overruns: u32,
    deadlines_missed: u32,
}

/// What runs on core 0.
pub struct Control {
    shared: &'static Shared,
    partitions: Partitions,
    mode: Mode,
    time_offset: u64,
    parameters: [i32; PARAMETERS.len()],
    events_disabled: u32,
    counts: Counts,
    flags: Flags,
    log: Log,

    framer: Framer,
    silent: u8,
    memory_job: Option<MemoryJob>,
    schedule: Schedule,

    urgent: Fifo<Outgoing, 96>,
    normal: Fifo<Outgoing, 24>,
    science: Fifo<Outgoing, 16>,
    current: Option<Outgoing>,
    sequence: u16,
    scratch: [u8; MAX_PACKET],
    housekeeping: Periods,

    store: Store,
    running: Option<Running>,
    last_acquisition: u16,
    dump_request: Option<(RequestId, Acknowledge)>,
    delete_request: Option<(RequestId, Acknowledge)>,
    /// The acquisition that was told that the store is full.
    full_told: Option<u16>,

    supplies: Supplies,

    integrity: Integrity,
    image_holds: bool,
    restart: bool,
    safe_pending: bool,
    ran: u16,
    looks: u8,
    all_alive: bool,
    core_1_alive: bool,
    core_1_seen: u32,
}

impl Control {
    /// A unit that begins to run: in BOOT, high voltage cut off.
    pub fn new(
        shared: &'static Shared,
        partitions: Partitions,
        hardware: &mut impl Hardware,
    ) -> Self {
        hardware.inhibit(true);
        let mut parameters = [0; PARAMETERS.len()];
        for (place, row) in parameters.iter_mut().zip(PARAMETERS) {
            *place = row.default;
        }
        Control {
            shared,
            partitions,
            mode: Mode::Boot,
            time_offset: 0,
            parameters,
            events_disabled: 0,
            counts: Counts::default(),
            flags: Flags::default(),
            log: Log::new(),
            framer: Framer::new(),
            silent: 0,
            memory_job: None,
            schedule: Schedule::new(),
            urgent: Fifo::new(),
            normal: Fifo::new(),
            science: Fifo::new(),
            current: None,
            sequence: 0,
            scratch: [0; MAX_PACKET],
            housekeeping: Periods::new(),
            store: Store::new(),
            running: None,
            last_acquisition: 0,
            dump_request: None,
            delete_request: None,
            full_told: None,
            supplies: Supplies::new(),
            integrity: Integrity::new(hardware.image()),
            image_holds: true,
            restart: false,
            safe_pending: false,
            ran: 0,
            looks: 0,
            all_alive: true,
            core_1_alive: true,
            core_1_seen: 0,
        }
    }

    /// The mode.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// A partition of core 0, by its number in the declaration.
    pub fn partition(&self, number: usize) -> Option<&Partition> {
        match number {
            0 => Some(&self.partitions.tc),
            1 => Some(&self.partitions.tm),
            2 => Some(&self.partitions.schedule),
            3 => Some(&self.partitions.events),
            _ => None,
        }
    }

    /// The task `store`, each 2 milliseconds: one operation of the flash. Time: one page, the checksum of a record.
    pub fn store(&mut self, hardware: &mut impl Hardware) {
        self.ran_task(TASK_STORE);
        let room = self.normal.len() < WAITING;
        match self.store.step(hardware, &mut self.partitions.tm, room) {
            Step::Nothing => {}
            Step::Recovered { records, torn } => {
                self.last_acquisition = self.store.last_acquisition();
                let (cause, resets) = (hardware.reset_cause(), self.store.resets());
                self.event(hardware, Event::Reset { cause, resets });
                self.event(hardware, Event::StoreRecovered { records, torn });
                self.change_mode(hardware, Mode::Safe, ModeCause::Boot);
            }
            Step::Block(block, kept) => {
                if !kept {
                    self.tell_full(hardware);
                } else if let Some(running) = &mut self.running {
                    running.records += 1;
                }
                self.live(hardware, block, kept);
            }
            Step::Back(block) => self.give_back(block),
            Step::Failed(page) => self.event(hardware, Event::StoreFailed { page }),
            Step::Record(block, data) => {
                let time = self.time(hardware);
                let packet = Outgoing::science(block, data, true, time);
                if let Err(packet) = self.normal.put(packet) {
                    self.lost_packet();
                    self.give_back(packet.into_block());
                }
            }
            Step::Dumped(acquisition, records) => {
                self.event(
                    hardware,
                    Event::DumpFinished {
                        acquisition,
                        records,
                    },
                );
                let done = if records > 0 {
                    Ok(())
                } else {
                    Err(Failure::NoAcquisition)
                };
                self.end_dump(hardware, done);
            }
            Step::Deleted(done) => {
                self.full_told = None;
                let request = self.delete_request.take();
                match done {
                    Ok(()) => self.completed(hardware, request),
                    Err(code) => self.failed(hardware, request, code),
                }
            }
        }
    }

    /// A dump is over, or is ended.
    fn end_dump(&mut self, hardware: &impl Hardware, done: Result<(), Failure>) {
        if let Some(block) = self.store.end_dump() {
            self.give_back(block);
        }
        let request = self.dump_request.take();
        match done {
            Ok(()) => self.completed(hardware, request),
            Err(code) => self.failed(hardware, request, code),
        }
    }
}
