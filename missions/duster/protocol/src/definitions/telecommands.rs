//! Telecommands: service, subtype and, for service 8, function; where they are allowed; what they carry.
//!
//! *Invariant:* a command that was read has its arguments within their ranges.

use super::{
    CustomStructure, EventName, Mode, Modes, Parameter, Probe, ProbeMode, Rates, RequestId,
    Structure,
};
use crate::time::Time;
use crate::value::{Bytes, Counted, Rest};

const ANY: Modes = Modes::ANY;
const RUNNING: Modes = Modes::RUNNING;
const ACQUISITION: Modes = Modes::ACQUISITION;
const READY: Modes = Modes::of(&[Mode::Standby, Mode::Config]);
const IDLE: Modes = READY.and(Modes::of(&[Mode::Safe]));
const HIGH_VOLTAGE: Modes = READY.and(Modes::of(&[Mode::AcqDust, Mode::AcqFull]));
const STORE: Modes = Modes::of(&[Mode::Standby, Mode::Dump]);

messages! {
    /// What the ground asks for. Keys are service, subtype, and function (service 8; 0 else).
    Command<'a>, TELECOMMANDS, key (u8, u8, u8), with Modes {
        /// Makes a housekeeping structure of parameters.
        CreateHousekeeping "CREATE_HOUSEKEEPING" (3, 1, 0) RUNNING => {
            /// Which.
            structure: CustomStructure, "";
            /// Period, in units of 100 ms.
            interval: u16, "0.1 s", 1..=36000;
            /// The parameters.
            parameters: Counted<'a, Parameter>, "", 1..=16;
        }
        /// Forgets a housekeeping structure of parameters.
        DeleteHousekeeping "DELETE_HOUSEKEEPING" (3, 3, 0) RUNNING => {
            /// Which.
            structure: CustomStructure, "";
        }
        /// Sends a housekeeping structure periodically.
        EnableHousekeeping "ENABLE_HOUSEKEEPING" (3, 5, 0) RUNNING => {
            /// Which.
            structure: Structure, "";
        }
        /// Ends that.
        DisableHousekeeping "DISABLE_HOUSEKEEPING" (3, 6, 0) RUNNING => {
            /// Which.
            structure: Structure, "";
        }
        /// Sends a housekeeping structure once.
        ReportHousekeeping "REPORT_HOUSEKEEPING" (3, 27, 0) RUNNING => {
            /// Which.
            structure: Structure, "";
        }
        /// Sets the period of a housekeeping structure.
        SetHousekeepingPeriod "SET_HOUSEKEEPING_PERIOD" (3, 31, 0) RUNNING => {
            /// Which.
            structure: Structure, "";
            /// Period, in units of 100 ms.
            interval: u16, "0.1 s", 1..=36000;
        }
        /// Reports an event again.
        EnableEvent "ENABLE_EVENT" (5, 5, 0) RUNNING => {
            /// Which.
            event: EventName, "";
        }
        /// No longer reports an event.
        DisableEvent "DISABLE_EVENT" (5, 6, 0) RUNNING => {
            /// Which.
            event: EventName, "";
        }
        /// Reports which events are not reported.
        ReportDisabledEvents "REPORT_DISABLED_EVENTS" (5, 7, 0) RUNNING => {}
        /// Writes memory.
        LoadMemory "LOAD_MEMORY" (6, 2, 0) Modes::of(&[Mode::Safe, Mode::Config]) => {
            /// From where on.
            address: u32, "";
            /// What.
            data: Bytes<'a>, "", 1..=960;
            /// CRC-16 (CCITT, begins at 0xffff) of the data.
            checksum: u16, "";
        }
        /// Sends what stands in memory.
        DumpMemory "DUMP_MEMORY" (6, 5, 0) RUNNING => {
            /// From where on.
            address: u32, "";
            /// How many bytes.
            length: u32, "B", 1..=4194304;
        }
        /// Sends a checksum of memory.
        CheckMemory "CHECK_MEMORY" (6, 9, 0) RUNNING => {
            /// From where on.
            address: u32, "";
            /// How many bytes.
            length: u32, "B", 1..=4194304;
        }
        /// Begins an acquisition.
        StartAcquisition "START_ACQUISITION" (8, 1, 1) ACQUISITION => {
            /// Bits of the probes: 1 Langmuir, 2 electric field, 4 dust.
            probes: u8, "", 1..=7;
            /// Rates.
            rates: Rates, "";
            /// How long.
            duration: u16, "s", 60..=3600;
        }
        /// Ends an acquisition or sweep before its time.
        StopAcquisition "STOP_ACQUISITION" (8, 1, 2) ACQUISITION.and(Modes::of(&[Mode::Sweep])) => {}
        /// Sweeps the bias of the Langmuir probe.
        StartSweep "START_SWEEP" (8, 1, 3) Modes::of(&[Mode::Sweep]) => {
            /// Steps.
            steps: u16, "", 600..=1000;
            /// Code of the first step.
            from: i16, "";
            /// Code of the last step.
            to: i16, "";
            /// Time of a step.
            dwell: u16, "ms", 10..=100;
        }
        /// Sets the converter of a probe.
        SetBias "SET_BIAS" (8, 1, 4) READY.and(ACQUISITION) => {
            /// Which.
            probe: Probe, "";
            /// Code.
            code: i16, "";
        }
        /// Sets what a probe measures.
        SetProbeMode "SET_PROBE_MODE" (8, 1, 5) READY.and(ACQUISITION) => {
            /// Which.
            probe: Probe, "";
            /// What.
            mode: ProbeMode, "";
        }
        /// Lets high voltage be set, for a time.
        ArmHighVoltage "HV_ARM" (8, 1, 6) HIGH_VOLTAGE => {}
        /// Sets high voltage, which has to be armed.
        SetHighVoltage "HV_SET" (8, 1, 7) HIGH_VOLTAGE => {
            /// Voltage.
            voltage: u16, "V", 0..=6000;
        }
        /// Switches high voltage off.
        SafeHighVoltage "HV_SAFE" (8, 1, 8) ANY => {}
        /// Makes the supply of high voltage forget a trip.
        ClearTrip "HV_CLEAR_TRIP" (8, 1, 9) IDLE => {}
        /// Sets a channel of low voltage.
        SetLowVoltage "LV_SET" (8, 1, 10) READY => {
            /// Which.
            channel: u8, "", 0..=3;
            /// Voltage.
            voltage: u16, "cV", 0..=4095;
        }
        /// Switches low voltage on.
        LowVoltageOn "LV_ON" (8, 1, 11) READY => {}
        /// Switches low voltage off.
        LowVoltageOff "LV_OFF" (8, 1, 12) IDLE => {}
        /// Sends stored science.
        DumpScience "DUMP_SCIENCE" (8, 1, 13) Modes::of(&[Mode::Dump]) => {
            /// Of which acquisition; 0: of all.
            acquisition: u16, "";
            /// The first record that is sent, counted from 0 in the acquisition.
            first: u32, "";
            /// How many at most.
            count: u32, "", 1..=4294967295;
        }
        /// Ends a dump of science.
        StopDump "STOP_DUMP" (8, 1, 14) Modes::of(&[Mode::Dump]) => {}
        /// Forgets the oldest stored science, up to and with an acquisition.
        DeleteScience "DELETE_SCIENCE" (8, 1, 15) STORE => {
            /// Up to which acquisition; 65535: all.
            acquisition: u16, "", 1..=65535;
        }
        /// Begins anew, by the watchdog.
        Restart "RESTART" (8, 1, 16) Modes::of(&[Mode::Safe]) => {}
        /// Sets the on-board time.
        SetTime "SET_TIME" (9, 128, 0) IDLE => {
            /// The time now.
            time: Time, "";
        }
        /// Lets the schedule run.
        EnableSchedule "ENABLE_SCHEDULE" (11, 1, 0) RUNNING => {}
        /// Stops the schedule.
        DisableSchedule "DISABLE_SCHEDULE" (11, 2, 0) RUNNING => {}
        /// Empties the schedule, and stops it.
        ResetSchedule "RESET_SCHEDULE" (11, 3, 0) RUNNING => {}
        /// Schedules a telecommand.
        InsertSchedule "INSERT_SCHEDULE" (11, 4, 0) RUNNING => {
            /// How many follow.
            count: u8, "", 1..=1;
            /// When it is released.
            release: Time, "";
            /// The telecommand, with its checksum.
            request: Rest<'a>, "", 13..=256;
        }
        /// Removes a telecommand from the schedule.
        DeleteSchedule "DELETE_SCHEDULE" (11, 5, 0) RUNNING => {
            /// Which.
            request: RequestId, "";
        }
        /// Reports what is scheduled.
        ReportSchedule "REPORT_SCHEDULE" (11, 17, 0) RUNNING => {}
        /// Asks whether the unit is alive.
        Ping "PING" (17, 1, 0) ANY => {}
        /// Asks whether an application process is alive.
        TestConnection "TEST_CONNECTION" (17, 3, 0) ANY => {
            /// Which.
            apid: u16, "", 42..=43;
        }
        /// Reports a parameter.
        ReportParameter "REPORT_PARAMETER" (20, 1, 0) ANY => {
            /// Which.
            parameter: Parameter, "";
        }
        /// Sets a parameter, within the range that its table says.
        SetParameter "SET_PARAMETER" (20, 3, 0) READY => {
            /// Which.
            parameter: Parameter, "";
            /// Its value.
            value: i32, "";
        }
        /// Changes the mode.
        SetMode "SET_MODE" (128, 1, 0) RUNNING => {
            /// To which.
            mode: Mode, "";
        }
        /// Reports the mode.
        ReportMode "REPORT_MODE" (128, 3, 0) ANY => {}
    }
}
