//! The flight software of the DUSTER data processing unit, over any hardware.
//!
//! Core 0 controls: telecommands, telemetry, modes, supplies, the store of science ([`control`]). Core 1 acquires: three
//! probes each millisecond, sweeps, windows, dust ([`acquisition`]). Between them stand rings without locks ([`Shared`]).
//! Every packet, block and event lives in a [`Partition`], the memory of one task. What runs when is a table
//! ([`executive`]), which comes from the mission's declaration ([`declared`]) as do all sizes and clocks.
//!
//! *Invariant:* nothing waits, nothing allocates but from its task's partition, and each activation of a task does a
//! bounded amount of work.
#![no_std]

#[cfg(any(test, feature = "testing"))]
extern crate std;

pub mod acquisition;
pub mod control;
pub mod declared;
pub mod executive;
pub mod hardware;
pub mod partition;
pub mod ring;
pub mod shared;
#[cfg(feature = "testing")]
pub mod testing;

pub use control::Control;
pub use hardware::Hardware;
pub use partition::{Block, Partition};
pub use ring::Ring;
pub use shared::{Order, Probe, Report, Shared};
