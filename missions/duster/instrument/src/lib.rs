//! The probes and supplies of DUSTER, simulated: physics by a seed, front ends on SPI, supplies on serial lines, faults,
//! and the truth about all of it.
//!
//! What a converter gives is a function of the seed, of the moment, and of what was done to the instrument until then; of
//! that a short history is kept ([`Truth`]). So the ground can compute every sample again, and no run is too long to
//! be checked.
//!
//! ```
//! use metes_duster_instrument::{Probe, World};
//! let world = World::new(7, 100_000_000);
//! let world = world.lock();
//! // The Langmuir probe at 0 V, in the first microsecond: twenty bits.
//! let code = world.truth.at(Probe::Langmuir, 100);
//! assert!((-(1 << 19)..1 << 19).contains(&code));
//! ```
//!
//! | module | what it is |
//! | --- | --- |
//! | [`physics`] | plasma, field, dust, noise |
//! | [`truth`] | what was done to the instrument, and every sample that follows |
//! | [`front`] | a probe's front end on SPI |
//! | [`supply`], [`line`](mod@line) | the supplies, and the serial line to one |
//! | [`faults`] | what goes wrong, and when |
//!
//! Time is cycles since the mission began; a machine that begins anew after a reset counts its own, and
//! [`World::offset`] lies between.
//!
//! *Invariant:* two worlds of one seed to which the same was done at the same cycles give the same samples and the same bytes, on
//! any host.

pub mod faults;
pub mod front;
pub mod line;
pub mod physics;
pub mod supply;
pub mod truth;
mod world;

pub use faults::{Fault, What};
pub use front::FrontEnd;
pub use line::SupplyLine;
pub use supply::{Kind, Supply};
pub use truth::{Impact, Probe, Run, Truth};
pub use world::{Shared, World};
