//! Why a node does not get what it asks for.
//!
//! Invariant: who is refused has changed nothing.

use core::fmt;

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// In one pass every heap was looked into that was to be, and none had room.
    Full,
    /// In no pass every heap could be looked into: others held one all the time. There may be room.
    Busy,
    /// The own heap is full, and no lease is left, or none so large. There may be room.
    Unleased,
    /// This node was taken for dead: what it allocated is others'.
    Expelled,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::Full => "no heap has room",
            Refusal::Busy => "heaps were held by others all the time; try again",
            Refusal::Unleased => "the own heap is full, and no lease so large is left; renew them",
            Refusal::Expelled => "this node was taken for dead; what it had is others'",
        })
    }
}

impl core::error::Error for Refusal {}

/// Why an address was not freed. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BadFree {
    /// No heap of the space has a byte there.
    Outside,
    /// No block begins there, or it was freed before.
    NotInUse,
    /// This node was taken for dead.
    Expelled,
}

impl fmt::Display for BadFree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            BadFree::Outside => "the address is outside of every heap",
            BadFree::NotInUse => {
                "no block in use begins there: it was freed before, or never given out"
            }
            BadFree::Expelled => "this node was taken for dead; what it had is others'",
        })
    }
}

impl core::error::Error for BadFree {}

/// This node was taken for dead: its epoch is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expelled;

impl fmt::Display for Expelled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Refusal::Expelled.fmt(f)
    }
}

impl core::error::Error for Expelled {}
