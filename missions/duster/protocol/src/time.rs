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
        // 10^6 = 2^6 * 15625.
        let (seconds, rest) = divide(microseconds >> 6, 15_625);
        // Below 10^6; and rest * 2^16 / 10^6 = rest * 2^10 / 15625 fits into 32 bits.
        let rest = (rest as u32) << 6 | (microseconds & 63) as u32;
        let fraction = (rest << 10) / 15_625;
        Self::from_units(seconds << 16 | fraction as u64)
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

/// Quotient and remainder, by four divisions of 32 bits: 64 bits are divided by a loop where a processor cannot.
#[must_use]
pub const fn divide(number: u64, by: u16) -> (u64, u16) {
    let by = by as u32;
    let (a, b, c, d) = (
        (number >> 48) as u32,
        (number >> 32) as u32 & 0xffff,
        (number >> 16) as u32 & 0xffff,
        number as u32 & 0xffff,
    );
    let (qa, ra) = (a / by, a % by);
    let b = ra << 16 | b;
    let (qb, rb) = (b / by, b % by);
    let c = rb << 16 | c;
    let (qc, rc) = (c / by, c % by);
    let d = rc << 16 | d;
    let (qd, rd) = (d / by, d % by);
    let high = (qa << 16 | qb) as u64;
    let low = (qc << 16 | qd) as u64;
    (high << 32 | low, rd as u16)
}

/// Milliseconds of microseconds, rounded down.
#[must_use]
pub const fn milliseconds(microseconds: u64) -> u64 {
    divide(microseconds >> 3, 125).0
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
