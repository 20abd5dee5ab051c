//! An exact simulator of LEON3 systems: SPARC V8 cores, GRLIB devices, time, and tools on them.
//!
//! A [`Machine`] is 1 to 64 [`Core`]s, a [`Bus`] with memory and [`devices`], and a count of cycles. The same image,
//! configuration and input give the same run, instruction for instruction, on any host.
//!
//! ```
//! use metes_leon3::{Configuration, End, Image, Machine, Stop};
//! // mov 40, %o0; add %o0, 2, %o0; ta 0
//! let image = Image::of_words(0x4000_0000, &[0x9010_2028, 0x9002_2002, 0x91d0_2000]);
//! let mut machine = Machine::with_image(&Configuration::default(), &image).unwrap();
//! assert_eq!(machine.run(1000, &mut ()), Stop::End(End::Halt { core: 0 }));
//! assert_eq!(machine.cores()[0].registers.get(8), 42);
//! ```
//!
//! | module | what it is |
//! | --- | --- |
//! | [`decode`] | words as operations |
//! | [`registers`] | windows |
//! | [`core`] | a core and its instructions |
//! | [`float`] | its floating-point unit |
//! | [`timing`], [`cache`] | what costs how many cycles |
//! | [`bus`], [`devices`] | memory, devices |
//! | [`machine`] | cores and time |
//! | [`image`] | ELF files |
//! | [`observer`] | who looks on |
//! | [`gdb`] | a machine under a debugger |
//! | [`calls`] | heap calls of an image |
//! | [`snapshot`] | a machine in a file |
//! | [`tools`] | traces, profiles, coverage, watchpoints |
//!
//! With the feature `translate`, hot code is executed as code of the host: what a run does is the same, and it is sooner
//! done.
#![forbid(unsafe_op_in_unsafe_fn)]

pub mod bus;
pub mod cache;
pub mod calls;
pub mod core;
pub mod decode;
pub mod devices;
pub mod float;
pub mod gdb;
pub mod image;
pub mod machine;
pub mod observer;
mod plug_and_play;
pub mod registers;
pub mod snapshot;
pub mod timing;
pub mod tools;
#[cfg(feature = "translate")]
mod translate;
pub mod trap;

pub use bus::Bus;
pub use core::{Condition, Core};
pub use image::{Image, NoImage};
pub use machine::{Configuration, End, Machine, Model, Stop};
pub use observer::{Observer, Touch};
pub use snapshot::NoSnapshot;
pub use trap::Trap;
