//! Reports but housekeeping and events: verification, memory, schedule, test, parameters, mode, science.
//!
//! *Invariant:* service and subtype tell the layout.

use super::{Failure, Mode, Parameter, Probe, RequestId, ScienceKind};
use crate::time::Time;
use crate::value::{Bytes, Counted, Field, Rest};

structure! {
    /// An entry of the schedule.
    ScheduledRequest {
        /// When it is released.
        release: Time, "";
        /// Which request.
        request: RequestId, "";
    }
}

structure! {
    /// A step of a sweep.
    SweepStep {
        /// Code of the converter.
        code: i16, "";
        /// Index of the first sample under it, since the start of the rate.
        first: u32, "";
        /// Samples under it.
        count: u16, "";
        /// Their sum.
        sum: i32, "";
    }
}

structure! {
    /// What stands before the samples around an impact.
    EventHeader {
        /// When it was detected, since boot.
        detected: u64, "us";
        /// Peak of the pulse over its baseline, in codes.
        peak: i32, "";
        /// Sum of the pulse over its baseline, in codes.
        charge: i32, "";
    }
}

structure! {
    /// A window of the electric field.
    FieldWindow {
        /// Index of its first sample, since the start of the rate.
        first: u32, "";
        /// Mean.
        mean: i32, "";
        /// Least.
        least: i32, "";
        /// Greatest.
        greatest: i32, "";
        /// Root of the mean square.
        rms: u32, "";
    }
}

/// What stands behind the header of a science packet.
#[derive(Clone, Copy, Debug)]
pub struct ScienceBody {
    /// In packets of which kind.
    pub kind: ScienceKind,
    /// Once, before all else.
    pub header: &'static [Field],
    /// As often as the header's `count` says; none: that many samples of 20 bits, packed.
    pub element: &'static [Field],
}

/// What stands behind the headers of science packets.
pub const SCIENCE_BODIES: &[ScienceBody] = &[
    ScienceBody {
        kind: ScienceKind::Samples,
        header: &[],
        element: &[],
    },
    ScienceBody {
        kind: ScienceKind::Sweep,
        header: &[],
        element: SweepStep::FIELDS,
    },
    ScienceBody {
        kind: ScienceKind::Event,
        header: EventHeader::FIELDS,
        element: &[],
    },
    ScienceBody {
        kind: ScienceKind::Field,
        header: &[],
        element: FieldWindow::FIELDS,
    },
];

messages! {
    /// A report.
    Report<'a>, REPORTS, key (u8, u8), with () {
        /// A telecommand was accepted.
        Accepted "ACCEPTED" (1, 1) () => {
            /// Which.
            request: RequestId, "";
        }
        /// A telecommand was refused.
        Refused "REFUSED" (1, 2) () => {
            /// Which.
            request: RequestId, "";
            /// Why.
            code: Failure, "";
        }
        /// A telecommand began to be executed.
        Started "STARTED" (1, 3) () => {
            /// Which.
            request: RequestId, "";
        }
        /// A telecommand was not begun.
        NotStarted "NOT_STARTED" (1, 4) () => {
            /// Which.
            request: RequestId, "";
            /// Why.
            code: Failure, "";
        }
        /// A telecommand has come to a step.
        Progress "PROGRESS" (1, 5) () => {
            /// Which.
            request: RequestId, "";
            /// The step.
            step: u8, "";
        }
        /// A telecommand was completed.
        Completed "COMPLETED" (1, 7) () => {
            /// Which.
            request: RequestId, "";
        }
        /// A telecommand was not completed.
        NotCompleted "NOT_COMPLETED" (1, 8) () => {
            /// Which.
            request: RequestId, "";
            /// Why.
            code: Failure, "";
        }
        /// Events that are not reported.
        DisabledEvents "DISABLED_EVENTS" (5, 8) () => {
            /// Their numbers.
            events: Counted<'a, u8>, "";
        }
        /// What stands in memory.
        MemoryDump "MEMORY_DUMP" (6, 6) () => {
            /// From where on.
            address: u32, "";
            /// What.
            data: Bytes<'a>, "";
        }
        /// Checksum of memory.
        MemoryCheck "MEMORY_CHECK" (6, 10) () => {
            /// From where on.
            address: u32, "";
            /// How many bytes.
            length: u32, "B";
            /// CRC-16 (CCITT, begins at 0xffff) of them.
            checksum: u16, "";
        }
        /// What is scheduled.
        Schedule "SCHEDULE" (11, 13) () => {
            /// Each entry.
            entries: Counted<'a, ScheduledRequest>, "";
        }
        /// The unit is alive.
        Alive "ALIVE" (17, 2) () => {}
        /// An application process is alive.
        Connected "CONNECTED" (17, 4) () => {
            /// Which.
            apid: u16, "";
        }
        /// Value of a parameter.
        ParameterValue "PARAMETER" (20, 2) () => {
            /// Which.
            parameter: Parameter, "";
            /// Its value.
            value: i32, "";
        }
        /// The mode.
        ModeReport "MODE" (128, 2) () => {
            /// It.
            mode: Mode, "";
        }
        /// Science as it comes.
        Science "SCIENCE" (128, 128) () => {
            /// What the data is.
            kind: ScienceKind, "";
            /// Of which probe.
            probe: Probe, "";
            /// Of which acquisition.
            acquisition: u16, "";
            /// Rate of the probe.
            rate: u16, "Hz";
            /// Index of the first sample, since the start of the rate.
            first: u32, "";
            /// When that sample was taken, since boot.
            time: u64, "us";
            /// Samples, steps or windows.
            count: u16, "";
            /// What the kind says.
            data: Rest<'a>, "";
        }
        /// Science out of the store.
        StoredScience "STORED_SCIENCE" (128, 129) () => {
            /// What the data is.
            kind: ScienceKind, "";
            /// Of which probe.
            probe: Probe, "";
            /// Of which acquisition.
            acquisition: u16, "";
            /// Rate of the probe.
            rate: u16, "Hz";
            /// Index of the first sample, since the start of the rate.
            first: u32, "";
            /// When that sample was taken, since boot.
            time: u64, "us";
            /// Samples, steps or windows.
            count: u16, "";
            /// What the kind says.
            data: Rest<'a>, "";
        }
    }
}
