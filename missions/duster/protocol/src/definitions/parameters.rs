//! Parameters of service 20.
//!
//! *Invariant:* a value that is set is within its range, so whoever uses a parameter need not look.

enumeration! {
    /// A parameter. From 32 on they can only be read.
    Parameter: u8, Enumeration, "parameter" {
        /// Codes above the baseline at which a dust event begins.
        DustThreshold = 1, "DUST_THRESHOLD";
        /// Time for which high voltage stays armed.
        ArmTimeout = 2, "ARM_TIMEOUT";
        /// Time within which high voltage has to be stable.
        StableTimeout = 3, "STABLE_TIMEOUT";
        /// Times that a supply is asked again.
        SupplyRetries = 4, "SUPPLY_RETRIES";
        /// Whether science is sent as it comes.
        LiveScience = 5, "LIVE_SCIENCE";
        /// Whether science is kept.
        StoreScience = 6, "STORE_SCIENCE";
        /// Log: 0 nothing, 1 faults, 2 commands, too.
        LogLevel = 7, "LOG_LEVEL";
        /// The mode.
        Mode = 32, "MODE";
        /// The acquisition under way, 0 if none.
        Acquisition = 33, "ACQUISITION";
        /// Number of the last acquisition.
        LastAcquisition = 34, "LAST_ACQUISITION";
        /// Records in the store.
        Records = 35, "RECORDS";
        /// Voltage of the high voltage as told.
        HvVoltage = 36, "HV_VOLTAGE";
        /// What is known of the high voltage.
        HvState = 37, "HV_STATE";
        /// Entries of the schedule.
        Scheduled = 38, "SCHEDULED";
        /// Time since boot.
        Uptime = 39, "UPTIME";
    }
}

/// What a parameter may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterDefinition {
    /// Which.
    pub parameter: Parameter,
    /// Its unit.
    pub unit: &'static str,
    /// Least value.
    pub least: i32,
    /// Greatest value.
    pub greatest: i32,
    /// Value when the unit begins to run.
    pub default: i32,
}

/// The parameters that can be set, in the order of their numbers from 1 on.
pub const PARAMETERS: &[ParameterDefinition] = &[
    row(Parameter::DustThreshold, "", 1, 524_287, 20_000),
    row(Parameter::ArmTimeout, "s", 1, 600, 60),
    row(Parameter::StableTimeout, "ms", 100, 20_000, 5_000),
    row(Parameter::SupplyRetries, "", 0, 10, 3),
    row(Parameter::LiveScience, "", 0, 1, 1),
    row(Parameter::StoreScience, "", 0, 1, 1),
    row(Parameter::LogLevel, "", 0, 2, 1),
];

const fn row(
    parameter: Parameter,
    unit: &'static str,
    least: i32,
    greatest: i32,
    default: i32,
) -> ParameterDefinition {
    ParameterDefinition {
        parameter,
        unit,
        least,
        greatest,
        default,
    }
}

impl Parameter {
    /// What it may be set to; none when it can only be read.
    #[must_use]
    pub fn definition(self) -> Option<&'static ParameterDefinition> {
        PARAMETERS.get((self as usize).checked_sub(1)?)
    }
}

const _: () = {
    let mut index = 0;
    while index < PARAMETERS.len() {
        let row = &PARAMETERS[index];
        assert!(row.parameter as usize == index + 1);
        assert!(row.least <= row.default && row.default <= row.greatest);
        index += 1;
    }
};
