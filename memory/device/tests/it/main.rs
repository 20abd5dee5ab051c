//! The integration tests of `metes-device`, in one binary: linked once. A driver is a process's: those
//! of real ones are programs of their own, beside this folder.

mod backends;
mod campaign;
#[path = "../../examples/campaign/clock.rs"]
mod clock;
mod common;
#[cfg_attr(
    not(all(feature = "cuda", feature = "vulkan")),
    allow(dead_code, reason = "backends that are left out would use it")
)]
#[path = "../../examples/campaign/device.rs"]
mod device;
mod heaps;
#[path = "../../examples/campaign/matrix.rs"]
mod matrix;
#[path = "../../examples/campaign/model.rs"]
mod model;
mod printed;
mod shared;
mod sparse;
mod stream_heaps;
#[path = "../../examples/campaign/streams.rs"]
mod streams;
#[path = "../../examples/campaign/trial.rs"]
mod trial;
