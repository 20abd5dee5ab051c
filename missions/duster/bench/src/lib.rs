//! The DUSTER data processing unit on its bench: its image in a simulated machine, the instrument around it, a ground
//! beside it that checks everything against the truth.
//!
//! | module | what it is |
//! | --- | --- |
//! | [`image`](mod@image) | the flight software |
//! | [`unit`](mod@unit) | the machine and its resets |
//! | [`hits`] | bits that flipped in its memory, and what they excuse |
//! | [`judge`] | whether they explain what was wrong |
//! | [`analyser`] | what its pins tell: responses of tasks, detections |
//! | [`ground`], [`science`] | telemetry, and every sample computed again |
//! | [`bench`](mod@bench) | all of them, faults, and telecommands as a ground executes them |
//! | [`scenario`] | a mission in short |
//! | [`storm`](mod@storm) | hours of random commands and faults |
//! | [`report`] | what came of it |
//! | [`requests`] | what was asked of the partitions |
//! | [`serve`](mod@serve) | its line to the ground as a socket |
//! | [`check`], [`fit`] | the certificate of the declaration; which devices have room for it |
//! | [`heaps`] | heaps and the pools of the field on the mission's requests |
//!
//! *Invariant:* a run is a function of image, seed, model and script; how quick the host is changes nothing in it.

pub mod analyser;
pub mod bench;
pub mod check;
pub mod fit;
pub mod ground;
pub mod heaps;
pub mod hits;
pub mod image;
pub mod judge;
pub mod page;
pub mod report;
pub mod requests;
pub mod scenario;
pub mod science;
pub mod serve;
pub mod storm;
pub mod unit;

pub use bench::{Bench, Outcome};
pub use image::image;
pub use report::Report;
pub use serve::serve;
pub use unit::Unit;
