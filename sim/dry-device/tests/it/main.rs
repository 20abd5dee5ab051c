//! The integration tests of `metes-dry-device`, in one binary: linked once.

mod communication;
mod driver;
mod knowledge;
mod management;
mod runtime;

/// One device in the process, so one test at a time.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
