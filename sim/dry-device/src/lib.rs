//! A CUDA device without a GPU.
//!
//! The library takes the place of the driver (`libcuda.so.1`), the runtime, the management
//! library and the libraries of kernels, so that programs written for a GPU run where there is
//! none and ask for the memory that they would ask a GPU for. Nothing is computed: kernels do
//! nothing. What is modelled is memory: how much of it there is, who may touch it, in which order.
//!
//! It serves twice. As a **strict test double** of the driver's memory and stream calls it refuses
//! whatever the documentation does not allow, and keeps contents, so that what a program copied
//! is found where it should be. As a **dry device** it runs whole frameworks, and shows what they
//! allocate and whether that fits.
//!
//! - [`memory`]: reservations, handles, mappings, plain blocks, contents;
//! - [`knowledge`]: what of these contents is known, as the host wrote it, and what a kernel may have
//!   written instead;
//! - [`streams`]: streams, events, recordings of graphs, and holds;
//! - [`engine`], [`device`]: one device with both, as the environment describes it;
//! - [`driver`], [`pools`], [`modules`], [`runtime`], [`management`], [`libraries`],
//!   [`communication`]: the C
//!   interfaces;
//! - [`control`]: what tests ask of the device beyond that, and [`library`]: how they load it.
#![cfg(target_os = "linux")]
#![allow(non_snake_case, reason = "names of C interfaces")]

mod addresses;
mod attributes;
pub mod communication;
mod content;
pub mod control;
pub mod device;
pub mod driver;
pub mod engine;
mod entry;
pub mod error;
pub mod knowledge;
mod launched;
pub mod libraries;
pub mod library;
pub mod management;
pub mod memory;
pub mod modules;
pub mod pools;
mod process;
pub mod runtime;
pub mod streams;
