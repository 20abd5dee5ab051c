//! On-board time: CUC, 4 bytes of seconds and 2 of fractions, without a P-field.
//!
//! *Invariant:* from microseconds and back loses less than one unit of 2⁻¹⁶ s, and never goes backwards.

use crate::definitions::Failure;
use crate::value::{Kind, Reader, Value, Writer};

/// A point in time in units of 2⁻¹⁶ s; 48 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// Bytes in a packet.
    pub const SIZE: usize = 6;

    /// From units of 2⁻¹⁶ s; what is above 48 bits is lost, as on the wire.
    #[must_use]
    pub const fn from_units(units: u64) -> Self {
        Self(units & 0xffff_ffff_ffff)
    }

    /// From microseconds, rounded down.
    #[must_use]
    pub const fn from_microseconds(microseconds: u64) -> Self {
        let seconds = microseconds / 1_000_000;
        // Below 10^6 < 2^20, so 36 bits at most.
        let fraction = ((microseconds - seconds * 1_000_000) << 16) / 1_000_000;
        Self::from_units(seconds << 16 | fraction)
    }

    /// Units of 2⁻¹⁶ s.
    #[must_use]
    pub const fn units(self) -> u64 {
        self.0
    }

    /// Microseconds, rounded up, so that a time made of microseconds comes back as those.
    #[must_use]
    pub const fn microseconds(self) -> u64 {
        (self.0 >> 16) * 1_000_000 + ((self.0 & 0xffff) * 1_000_000).div_ceil(1 << 16)
    }

    /// As it stands in packets.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; 6] {
        let [_, _, bytes @ ..] = self.0.to_be_bytes();
        bytes
    }
}

impl Value<'_> for Time {
    const KIND: Kind = Kind::Time;
    const SIZE: usize = 6;

    fn read(reader: &mut Reader<'_>) -> Result<Self, Failure> {
        let seconds = u32::read(reader)?;
        let fraction = u16::read(reader)?;
        Ok(Self(u64::from(seconds) << 16 | u64::from(fraction)))
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.put(&self.to_bytes());
    }
}
