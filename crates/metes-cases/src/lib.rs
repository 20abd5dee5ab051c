//! Case studies: workloads made by generators, and experiments on them.
//!
//! - [`packets`] buffers network packets, first in, first out, as a router does
//!   between two lines: a trace, and the capture that a real program forwards
//!   with the same requests;
//! - [`texture`] decodes a still image by wavelets.
//!
//! Invariant: a generator is a pure function of its options, so that every
//! figure made from it can be made again.

pub mod packets;
mod random;
pub mod texture;
