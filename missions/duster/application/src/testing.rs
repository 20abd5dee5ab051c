//! A unit on the host: hardware that is not there, a core 1 that makes science, a ground that sends and listens.
//!
//! For tests, campaigns and fuzzing; nothing of it is in the flight software.
//!
//! *Invariant:* the same calls give the same bytes; time is what the caller lets pass.

pub mod campaign;
mod core1;
mod ground;
mod lent;
mod unit;

pub use core1::Core1;
pub use ground::{Bench, Told};
pub use unit::{Flash, MEMORY_BASE, SupplyModel, Unit};
