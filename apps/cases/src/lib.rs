//! Case studies: workloads made by generators, and experiments on them.
//!
//! - [`packets`] buffers network packets, first in, first out, as a router does
//!   between two lines: a trace, and the capture that a real program forwards
//!   with the same requests;
//! - [`texture`] decodes a still image by wavelets;
//! - [`touches`] allocates, frees, reads and writes at random;
//! - [`easyport`] and [`vtc`] are the experiments on them;
//! - [`admission`] draws sets of functions, and holds their admission against a simulation;
//! - [`against_tlsf`] counts TLSF's and compact-fit's instructions on recorded programs;
//! - [`dvfs`] recomputes a paper on processor and memory frequencies, and holds it against measurements of the user's;
//! - [`concurrent`] measures compact-fit under threads, by κ, ι, locks and sharing;
//! - [`mesh`] runs kernels and storms on a many-core platform under several managers;
//! - [`partition`] explores compact-fit's size classes on recorded programs;
//! - [`reorder`] convolves chains of curves in every order;
//! - [`slides`] has the complexity tables of compact-fit's slides beside our declarations;
//! - [`prediction`] runs emitted heaps under the packet program and compares, and
//!   [`predicted`] does so for a sample of a space.
//!
//! Invariant: a generator is a pure function of its options, so that every
//! figure made from it can be made again.

pub mod admission;
pub mod against_tlsf;
pub mod concurrent;
pub mod dvfs;
pub mod easyport;
pub mod mesh;
pub mod packets;
pub mod paging;
pub mod partition;
mod platform;
pub mod predicted;
pub mod prediction;
pub mod reorder;
pub mod slides;
mod statistics;
pub mod texture;
pub mod touches;
pub mod vtc;
