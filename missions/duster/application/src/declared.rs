//! What the mission's declaration says, as constants.
//!
//! *Invariant:* generated from `system.toml` by the build, with nothing added.

/// When a task runs: periods and offsets in ticks, the rest in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Its name.
    pub name: &'static str,
    /// Ticks between releases.
    pub period: u32,
    /// Ticks to the first release.
    pub offset: u32,
    /// Microseconds from a release until it must be done.
    pub deadline: u32,
    /// Microseconds that it takes, at most.
    pub budget: u32,
}

/// A partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Its name.
    pub name: &'static str,
    /// Its bytes.
    pub size: usize,
    /// What is asked of it at a time, at most: bytes of a block, and how many of them.
    pub demands: &'static [(usize, usize)],
}

/// A probe's bus: what a set carries, and the clock of its controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bus {
    /// Frames of a set.
    pub frames: usize,
    /// Samples a second, objective.
    pub rate: u32,
    /// Samples a second, minimum.
    pub rate_min: u32,
    /// Samples that the front end holds.
    pub fifo: usize,
    /// PM of the mode register.
    pub modulus: u32,
    /// FACT of the mode register.
    pub halved: bool,
    /// DIV16 of the mode register.
    pub sixteenth: bool,
}

/// A serial line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its number.
    pub uart: usize,
    /// Its divisor.
    pub scaler: u32,
}

include!(concat!(env!("OUT_DIR"), "/declared.rs"));
