//! Which process opened a device.
//!
//! The state that a driver keeps in a process does not survive a fork: a call of the child would
//! at best fail and at worst reach the parent's device. Refused, it does neither.

use super::Error;

/// The process that opened a device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opened(u32);

impl Opened {
    /// By this process.
    pub(crate) fn here() -> Self {
        Opened(std::process::id())
    }

    /// Refuses in a fork of the process.
    pub(crate) fn check(self) -> Result<(), Error> {
        let here = std::process::id();
        if here == self.0 {
            return Ok(());
        }
        Err(Error::Process {
            opened: self.0,
            here,
        })
    }
}
