//! What core 0 needs of the unit: lines, supplies, flash, watchdog, memory, time.
//!
//! *Invariant:* nothing here waits: what cannot be done now is refused, or told by a question that is asked again.

use metes_duster_protocol::definitions::{ResetCause, Supply};

/// Bytes of a page of flash, the unit of reading and programming.
pub const PAGE: usize = 512;
/// Pages of a sector, the unit of erasing.
pub const PAGES_OF_SECTOR: u32 = 128;

/// The unit, as core 0 reaches it.
pub trait Hardware {
    /// Microseconds since the epoch.
    fn now(&self) -> u64;

    /// Why the unit began to run.
    fn reset_cause(&self) -> ResetCause;

    /// Time that core 0 was busy in the last second, in thousandths.
    fn load(&self) -> u16;

    /// Bytes that the telemetry line takes now.
    fn line_free(&self) -> usize;

    /// Sends bytes, [`Hardware::line_free`] at most.
    fn line_send(&mut self, bytes: &[u8]);

    /// A byte that came on the telecommand line.
    fn line_receive(&mut self) -> Option<u8>;

    /// Sends a frame to a supply.
    fn supply_send(&mut self, supply: Supply, bytes: &[u8]);

    /// A byte that came from a supply.
    fn supply_receive(&mut self, supply: Supply) -> Option<u8>;

    /// Sends bytes on the line of the log; what it has no room for is lost.
    fn log(&mut self, bytes: &[u8]);

    /// Whether the supply of high voltage says by its own wire that it has tripped.
    fn tripped(&self) -> bool;

    /// Cuts high voltage off by its own wire, or no longer.
    fn inhibit(&mut self, inhibited: bool);

    /// Whether the flash is at work.
    fn flash_busy(&self) -> bool;

    /// Whether its last operation failed; asking forgets that.
    fn flash_failed(&mut self) -> bool;

    /// Begins to read a page into the flash's buffer.
    fn flash_read(&mut self, page: u32);

    /// What the flash's buffer holds.
    fn flash_buffer(&self, bytes: &mut [u8; PAGE]);

    /// Begins to program a page; bits can only become 0.
    fn flash_program(&mut self, page: u32, bytes: &[u8; PAGE]);

    /// Begins to erase a sector.
    fn flash_erase(&mut self, sector: u32);

    /// Keeps the watchdog from resetting the unit.
    fn kick(&mut self);

    /// Code and constants, which nothing writes.
    fn image(&self) -> &[u8];

    /// Memory that may be read; none when any of it is outside.
    fn memory(&self, address: u32, length: u32) -> Option<&[u8]>;

    /// Writes memory; not when any of it is outside of what may be written.
    fn write_memory(&mut self, address: u32, bytes: &[u8]) -> bool;
}
