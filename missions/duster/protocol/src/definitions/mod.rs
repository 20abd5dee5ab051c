//! The one source of truth: modes, telecommands, reports, housekeeping, events, parameters and failure codes. The codec,
//! the database of the ground and its client come from these tables (`cargo run -p metes-duster-protocol --example
//! definitions` prints them as JSON).
//!
//! *Invariant:* numbers are never used again for something else; a table has each key once.

mod events;
mod housekeeping;
mod modes;
mod parameters;
mod reports;
mod telecommands;

pub use events::{EVENTS, Event, ModeCause, ResetCause, Severity};
pub use housekeeping::{
    AcquisitionOfProbe, Acquisitions, CUSTOM, HOUSEKEEPING, Housekeeping, LowVoltage, Memories,
    MemoryOfPartition, Supplies, System,
};
pub use modes::{Mode, Modes, transitions};
pub use parameters::{PARAMETERS, Parameter, ParameterDefinition};
pub use reports::{
    EventHeader, FieldWindow, REPORTS, Report, SCIENCE_BODIES, ScheduledRequest, ScienceBody,
    SweepStep,
};
pub use telecommands::{Command, TELECOMMANDS};

use crate::value::Field;

/// A message: what tells it apart, what it is called, what it carries.
#[derive(Clone, Copy, Debug)]
pub struct Message<Key, Extra> {
    /// What tells it apart.
    pub key: Key,
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub doc: &'static str,
    /// What else is said of messages of its table.
    pub extra: Extra,
    /// Its fields, in their order.
    pub fields: &'static [Field],
}

/// Numbers with names.
#[derive(Clone, Copy, Debug)]
pub struct Enumeration {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub doc: &'static str,
    /// Number, name and meaning of each value.
    pub values: &'static [(u16, &'static str, &'static str)],
}

/// All enumerations that fields refer to.
pub const ENUMERATIONS: &[Enumeration] = &[
    Mode::DEFINITION,
    Failure::DEFINITION,
    Probe::DEFINITION,
    ProbeMode::DEFINITION,
    Rates::DEFINITION,
    Supply::DEFINITION,
    SupplyState::DEFINITION,
    ScienceKind::DEFINITION,
    Structure::DEFINITION,
    CustomStructure::DEFINITION,
    Parameter::DEFINITION,
    EventName::DEFINITION,
    ResetCause::DEFINITION,
    ModeCause::DEFINITION,
    Partition::DEFINITION,
    Task::DEFINITION,
];

/// Names of the partitions of memory, in the order of housekeeping.
pub const PARTITIONS: &[&str] = &[
    "tc", "tm", "schedule", "events", "langmuir", "efield", "dust",
];
/// Names of the probes, in the order of housekeeping.
pub const PROBES: &[&str] = &["langmuir", "efield", "dust"];
/// Names of the channels of low voltage.
pub const CHANNELS: &[&str] = &["0", "1", "2", "3"];

enumeration! {
    /// Why a telecommand was refused (1/2), not begun (1/4) or not completed (1/8).
    Failure: u16, WideEnumeration, "failure" {
        /// Its length is none that it can have.
        Length = 1, "LENGTH";
        /// Its checksum is wrong.
        Checksum = 2, "CHECKSUM";
        /// It is no telecommand packet of PUS-C.
        Version = 3, "VERSION";
        /// It is for another application process.
        Apid = 4, "APID";
        /// There is no such service.
        Service = 5, "SERVICE";
        /// The service has no such request.
        Subtype = 6, "SUBTYPE";
        /// There is no such function.
        Function = 7, "FUNCTION";
        /// An argument is out of its range.
        Argument = 8, "ARGUMENT";
        /// The unit has no memory for it now.
        Memory = 9, "MEMORY";
        /// It is not allowed in the present mode.
        Mode = 20, "MODE";
        /// The present mode may not become that one.
        Transition = 21, "TRANSITION";
        /// What it begins is under way.
        Busy = 22, "BUSY";
        /// What it ends is not under way.
        Idle = 23, "IDLE";
        /// High voltage is not armed, or no longer.
        NotArmed = 24, "NOT_ARMED";
        /// High voltage is not stable.
        NotStable = 25, "NOT_STABLE";
        /// The supply has tripped; clear that first.
        Tripped = 26, "TRIPPED";
        /// The present mode acquires no such probes.
        Probes = 27, "PROBES";
        /// The store has no room for it.
        StoreFull = 28, "STORE_FULL";
        /// There is nothing of that acquisition in the store.
        NoAcquisition = 29, "NO_ACQUISITION";
        /// The address is outside of memory that may be accessed so.
        Address = 30, "ADDRESS";
        /// The schedule is full.
        ScheduleFull = 31, "SCHEDULE_FULL";
        /// The time has passed, or is too far away.
        Time = 32, "TIME";
        /// The scheduled request is none, or none that may be scheduled.
        Nested = 33, "NESTED";
        /// There is no such entry.
        NoEntry = 34, "NO_ENTRY";
        /// The structure is there already.
        Exists = 35, "EXISTS";
        /// The parameter cannot be set.
        ReadOnly = 36, "READ_ONLY";
        /// The acquisition takes no more orders now.
        Orders = 37, "ORDERS";
        /// The supply did not answer.
        Silent = 40, "SILENT";
        /// The supply did not do it.
        Supply = 41, "SUPPLY";
        /// It was ended by another command, or by safe mode.
        Aborted = 42, "ABORTED";
        /// The flash did not do it.
        Flash = 43, "FLASH";
    }
}

enumeration! {
    /// A probe.
    Probe: u8, Enumeration, "probe" {
        /// Langmuir probe: status of the plasma.
        Langmuir = 0, "LANGMUIR";
        /// Electric field.
        Efield = 1, "EFIELD";
        /// Dust: current of grains that hit the electrodes.
        Dust = 2, "DUST";
    }
}

enumeration! {
    /// What a probe measures.
    ProbeMode: u8, Enumeration, "probe_mode" {
        /// What it is for: current, field, current.
        Nominal = 0, "NOMINAL";
        /// Itself: bias, output of its converter, high voltage.
        Monitor = 1, "MONITOR";
    }
}

enumeration! {
    /// Rates of an acquisition.
    Rates: u8, Enumeration, "rates" {
        /// 5, 1 and 10 kHz.
        Objective = 0, "OBJECTIVE";
        /// 1 kHz each.
        Minimum = 1, "MINIMUM";
    }
}

enumeration! {
    /// A power supply.
    Supply: u8, Enumeration, "supply" {
        /// High voltage.
        High = 0, "HIGH";
        /// Low voltage.
        Low = 1, "LOW";
    }
}

enumeration! {
    /// What the unit knows of the high voltage.
    SupplyState: u8, Enumeration, "supply_state" {
        /// Off.
        Off = 0, "OFF";
        /// Off, and may be set.
        Armed = 1, "ARMED";
        /// On its way to its voltage.
        Ramping = 2, "RAMPING";
        /// At its voltage.
        Stable = 3, "STABLE";
        /// Tripped.
        Tripped = 4, "TRIPPED";
        /// Does not answer.
        Silent = 5, "SILENT";
    }
}

enumeration! {
    /// What a science packet holds.
    ScienceKind: u8, Enumeration, "science_kind" {
        /// Samples of a probe.
        Samples = 0, "SAMPLES";
        /// Steps of a sweep.
        Sweep = 1, "SWEEP";
        /// Samples around an impact.
        Event = 2, "EVENT";
        /// Windows of the electric field.
        Field = 3, "FIELD";
    }
}

enumeration! {
    /// A housekeeping structure.
    Structure: u8, Enumeration, "structure" {
        /// The unit.
        System = 1, "SYSTEM";
        /// The power supplies.
        Supplies = 2, "SUPPLIES";
        /// The memory.
        Memory = 3, "MEMORY";
        /// The acquisition.
        Acquisition = 4, "ACQUISITION";
        /// Parameters of the ground's choice.
        Custom1 = 16, "CUSTOM_1";
        /// Parameters of the ground's choice.
        Custom2 = 17, "CUSTOM_2";
    }
}

enumeration! {
    /// A housekeeping structure that the ground makes.
    CustomStructure: u8, Enumeration, "custom_structure" {
        /// The first.
        Custom1 = 16, "CUSTOM_1";
        /// The second.
        Custom2 = 17, "CUSTOM_2";
    }
}

enumeration! {
    /// An event, where a command names one.
    EventName: u8, Enumeration, "event" {
        /// The unit began to run.
        Reset = 1, "RESET";
        /// The mode changed.
        ModeChanged = 2, "MODE_CHANGED";
        /// A grain hit the dust probe.
        Dust = 3, "DUST_EVENT";
        /// Core 1 did not keep up with a probe.
        Overrun = 4, "OVERRUN";
        /// A front end lost samples.
        SamplesLost = 5, "SAMPLES_LOST";
        /// The high voltage tripped.
        HvTrip = 6, "HV_TRIP";
        /// A supply does not answer.
        SupplySilent = 7, "SUPPLY_SILENT";
        /// A partition refused a block.
        AllocationFailed = 8, "ALLOC_FAIL";
        /// A task ran longer than its budget.
        BudgetOverrun = 9, "BUDGET_OVERRUN";
        /// A task ended after its deadline.
        DeadlineMissed = 10, "DEADLINE_MISSED";
        /// An entry was refused as the schedule is full.
        ScheduleFull = 11, "SCHEDULE_FULL";
        /// The store of science is full.
        StoreFull = 12, "STORE_FULL";
        /// An acquisition began.
        AcquisitionStarted = 13, "ACQUISITION_STARTED";
        /// An acquisition ended.
        AcquisitionFinished = 14, "ACQUISITION_FINISHED";
        /// A sweep ended.
        SweepFinished = 15, "SWEEP_FINISHED";
        /// The flash did not do what it should.
        StoreFailed = 16, "STORE_FAILED";
        /// A scheduled request was refused.
        ScheduledRefused = 17, "SCHEDULED_REFUSED";
        /// Telemetry was discarded.
        TelemetryLost = 18, "TELEMETRY_LOST";
        /// Tasks did not run.
        TaskSilent = 19, "TASK_SILENT";
        /// A dump of science ended.
        DumpFinished = 20, "DUMP_FINISHED";
        /// High voltage was armed and not set in time.
        ArmExpired = 21, "ARM_EXPIRED";
        /// High voltage has reached its value.
        HvStable = 22, "HV_STABLE";
        /// Bytes came that are no telecommand.
        Garbage = 23, "GARBAGE";
        /// The store was read after a reset.
        StoreRecovered = 24, "STORE_RECOVERED";
        /// Code or constants are no longer what they were.
        ImageCorrupt = 25, "IMAGE_CORRUPT";
    }
}

enumeration! {
    /// A partition of memory.
    Partition: u8, Enumeration, "partition" {
        /// Telecommands.
        Tc = 0, "TC";
        /// Telemetry.
        Tm = 1, "TM";
        /// Scheduled telecommands.
        Schedule = 2, "SCHEDULE";
        /// Events.
        Events = 3, "EVENTS";
        /// Science of the Langmuir probe.
        Langmuir = 4, "LANGMUIR";
        /// Science of the electric field.
        Efield = 5, "EFIELD";
        /// Science of dust.
        Dust = 6, "DUST";
    }
}

enumeration! {
    /// A task: of core 0 from 0 on, of core 1 from 16 on, in the order of their tables.
    Task: u8, Enumeration, "task" {
        /// Telemetry to the line.
        Telemetry = 0, "TELEMETRY";
        /// Science to and from flash.
        Store = 1, "STORE";
        /// Telecommands from the line.
        Ingest = 2, "INGEST";
        /// Power supplies.
        Supplies = 3, "SUPPLIES";
        /// Scheduled telecommands.
        Schedule = 4, "SCHEDULE";
        /// Watch over all others.
        Fdir = 5, "FDIR";
        /// Housekeeping.
        Housekeeping = 6, "HOUSEKEEPING";
        /// Log.
        Log = 7, "LOG";
        /// Samples of the probes.
        Acquire = 16, "ACQUIRE";
        /// Grains of dust.
        Detect = 17, "DETECT";
        /// Sweeps.
        Sweep = 18, "SWEEP";
        /// Windows of the field.
        Field = 19, "FIELD";
        /// Orders of core 0.
        Orders = 20, "ORDERS";
    }
}

structure! {
    /// The telecommand that a report is about.
    RequestId {
        /// First two bytes of its packet: version, type, application process.
        packet: u16, "";
        /// Next two: sequence flags and count.
        sequence: u16, "";
    }
}

impl RequestId {
    /// Of a packet; of less than four bytes what there is.
    #[must_use]
    pub fn of(packet: &[u8]) -> Self {
        let byte = |index: usize| packet.get(index).copied().unwrap_or(0);
        Self {
            packet: u16::from_be_bytes([byte(0), byte(1)]),
            sequence: u16::from_be_bytes([byte(2), byte(3)]),
        }
    }
}
