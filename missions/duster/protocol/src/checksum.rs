//! CRC-16 (CCITT, begins at 0xffff), as packets, memory and records of the store carry it.
//!
//! *Invariant:* `of_more(of(a), b)` is `of` of both, one behind the other.

use spacepackets::crc::CRC_CCITT_FALSE;

/// The checksum of bytes.
#[must_use]
pub fn of(bytes: &[u8]) -> u16 {
    CRC_CCITT_FALSE.checksum(bytes)
}

/// The checksum of bytes behind others, whose checksum was `before`.
#[must_use]
pub fn of_more(before: u16, bytes: &[u8]) -> u16 {
    let mut digest = CRC_CCITT_FALSE.digest_with_initial(before);
    digest.update(bytes);
    digest.finalize()
}
