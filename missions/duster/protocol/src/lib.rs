//! What the DUSTER data processing unit and the ground say to each other: telecommands and telemetry of PUS-C
//! (ECSS-E-ST-70-41C) in space packets, the tables that define them, and the samples in them.
//!
//! One description ([`definitions`]) makes the types, their codec and the tables from which the ground's database comes.
//! Nothing allocates, nothing depends on a host, and reading is total: any bytes give a value or a reason.
#![no_std]

#[macro_use]
mod macros;

pub mod checksum;
pub mod definitions;
pub mod framing;
pub mod generate;
pub mod samples;
pub mod supply;
pub mod telecommand;
pub mod telemetry;
pub mod time;
pub mod value;

pub use definitions::{
    Command, Event, Failure, Housekeeping, Mode, Modes, Parameter, Probe, ProbeMode, Report,
    RequestId,
};
pub use framing::{Frame, Framer};
pub use telecommand::{Acknowledge, Refusal, Request};
pub use telemetry::{Received, ScienceHeader, Telemetry};
pub use time::Time;

/// Application process of the control software: the unit itself.
pub const APID: u16 = 0x2a;
/// Application process of the acquisition on the second core, for connection tests.
pub const APID_ACQUISITION: u16 = 0x2b;
/// No packet, of either direction, is longer.
pub const MAX_PACKET: usize = 1024;
