//! Events that the unit reports by itself.
//!
//! *Invariant:* an event has one severity, which is the subtype of its report.

use super::{EventName, Failure, Mode, Partition, Probe, RequestId, Supply, Task};

/// How grave an event is; its number is the subtype of service 5.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Severity {
    /// As expected.
    Info = 1,
    /// Something was lost or refused, and the unit goes on.
    Low = 2,
    /// The ground should look at it.
    Medium = 3,
    /// The unit went to a safe state.
    High = 4,
}

enumeration! {
    /// Why the unit began to run.
    ResetCause: u8, Enumeration, "reset_cause" {
        /// Power.
        Power = 0, "POWER";
        /// The watchdog.
        Watchdog = 1, "WATCHDOG";
        /// The ground's command.
        Command = 2, "COMMAND";
    }
}

enumeration! {
    /// Why the mode changed.
    ModeCause: u8, Enumeration, "mode_cause" {
        /// A telecommand.
        Command = 0, "COMMAND";
        /// What the mode was for has ended.
        Finished = 1, "FINISHED";
        /// Something was wrong.
        Fault = 2, "FAULT";
        /// The unit has begun to run.
        Boot = 3, "BOOT";
    }
}

messages! {
    /// An event.
    Event, EVENTS, key (u8,), with Severity {
        /// The unit began to run.
        Reset "RESET" (1) Severity::Info => {
            /// Why.
            cause: ResetCause, "";
            /// How often it has, as far as the store tells.
            resets: u16, "";
        }
        /// The mode changed.
        ModeChanged "MODE_CHANGED" (2) Severity::Info => {
            /// Mode before.
            from: Mode, "";
            /// Mode now.
            to: Mode, "";
            /// Why.
            cause: ModeCause, "";
        }
        /// A grain hit the dust probe.
        Dust "DUST_EVENT" (3) Severity::Info => {
            /// Index of the sample at which the pulse begins, since the start of the rate.
            first: u32, "";
            /// When that sample was taken, since boot.
            time: u64, "us";
            /// When it was detected, since boot.
            detected: u64, "us";
            /// Peak of the pulse over its baseline, in codes.
            peak: i32, "";
            /// Sum of the pulse over its baseline, in codes.
            charge: i32, "";
        }
        /// Core 1 did not keep up with a probe.
        Overrun "OVERRUN" (4) Severity::Medium => {
            /// Which.
            probe: Probe, "";
        }
        /// A front end lost samples.
        SamplesLost "SAMPLES_LOST" (5) Severity::Medium => {
            /// Which.
            probe: Probe, "";
            /// How many.
            count: u32, "";
        }
        /// The high voltage tripped; safe mode follows.
        HvTrip "HV_TRIP" (6) Severity::High => {
            /// Voltage that it had last.
            voltage: u16, "V";
        }
        /// A supply does not answer.
        SupplySilent "SUPPLY_SILENT" (7) Severity::Medium => {
            /// Which.
            supply: Supply, "";
        }
        /// A partition refused a block.
        AllocationFailed "ALLOC_FAIL" (8) Severity::Medium => {
            /// Which.
            partition: Partition, "";
        }
        /// A task ran longer than its budget.
        BudgetOverrun "BUDGET_OVERRUN" (9) Severity::Low => {
            /// Which.
            task: Task, "";
        }
        /// A task ended after its deadline.
        DeadlineMissed "DEADLINE_MISSED" (10) Severity::Medium => {
            /// Which.
            task: Task, "";
        }
        /// An entry was refused as the schedule is full.
        ScheduleFull "SCHEDULE_FULL" (11) Severity::Low => {
            /// The request.
            request: RequestId, "";
        }
        /// The store of science is full: what comes is sent and not kept.
        StoreFull "STORE_FULL" (12) Severity::Medium => {
            /// The acquisition that found it so.
            acquisition: u16, "";
        }
        /// An acquisition began.
        AcquisitionStarted "ACQUISITION_STARTED" (13) Severity::Info => {
            /// Its number.
            acquisition: u16, "";
        }
        /// An acquisition ended.
        AcquisitionFinished "ACQUISITION_FINISHED" (14) Severity::Info => {
            /// Its number.
            acquisition: u16, "";
            /// Records that the store has of it.
            records: u32, "";
        }
        /// A sweep ended.
        SweepFinished "SWEEP_FINISHED" (15) Severity::Info => {
            /// Its number.
            acquisition: u16, "";
            /// Records that the store has of it.
            records: u32, "";
        }
        /// The flash did not do what it should.
        StoreFailed "STORE_FAILED" (16) Severity::Medium => {
            /// The page.
            page: u32, "";
        }
        /// A scheduled request was refused.
        ScheduledRefused "SCHEDULED_REFUSED" (17) Severity::Low => {
            /// The request.
            request: RequestId, "";
            /// Why.
            code: Failure, "";
        }
        /// Telemetry was discarded for want of memory.
        TelemetryLost "TELEMETRY_LOST" (18) Severity::Medium => {
            /// Packets, since boot.
            packets: u32, "";
        }
        /// Tasks did not run; safe mode follows, and the watchdog if they stay silent.
        TaskSilent "TASK_SILENT" (19) Severity::High => {
            /// Bits of the tasks of core 0 by their numbers; bit 15: core 1.
            tasks: u16, "";
        }
        /// A dump of science ended.
        DumpFinished "DUMP_FINISHED" (20) Severity::Info => {
            /// The acquisition.
            acquisition: u16, "";
            /// Records sent.
            records: u32, "";
        }
        /// High voltage was armed and not set in time.
        ArmExpired "ARM_EXPIRED" (21) Severity::Low => {}
        /// High voltage has reached its value.
        HvStable "HV_STABLE" (22) Severity::Info => {
            /// The value.
            voltage: u16, "V";
        }
        /// Bytes came that are no telecommand.
        Garbage "GARBAGE" (23) Severity::Low => {
            /// How many, since boot.
            bytes: u32, "";
        }
        /// The store was read after a reset.
        StoreRecovered "STORE_RECOVERED" (24) Severity::Info => {
            /// Records found.
            records: u32, "";
            /// Pages that hold no whole record.
            torn: u32, "";
        }
        /// Code or constants are no longer what they were as the unit began; safe mode and the watchdog follow.
        ImageCorrupt "IMAGE_CORRUPT" (25) Severity::High => {}
    }
}

impl Event {
    /// How many there are.
    pub const COUNT: usize = EVENTS.len();

    /// Its name as an enumeration's.
    #[must_use]
    pub const fn number(&self) -> u8 {
        self.key().0
    }
}

const _: () = {
    // What a command names is what the table has.
    let mut index = 0;
    while index < EVENTS.len() {
        assert!(EVENTS[index].key.0 as usize == index + 1);
        assert!(EventName::of(EVENTS[index].key.0).is_some());
        index += 1;
    }
};
