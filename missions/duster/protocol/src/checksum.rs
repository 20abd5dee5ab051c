//! CRC-16 (CCITT, begins at 0xffff), as packets, memory and records of the store carry it.
//!
//! *Invariant:* `of_more(of(a), b)` is `of` of both, one behind the other.

use spacepackets::crc::CRC_CCITT_FALSE;

/// The checksum of bytes; 0 of bytes that end by their own.
#[must_use]
pub fn of(bytes: &[u8]) -> u16 {
    of_more(0xffff, bytes)
}

/// The checksum of bytes behind others, whose checksum was `before`. A function of its own wherever it is used, so that the
/// longest path through a task knows its loop.
#[must_use]
#[inline(never)]
pub fn of_more(before: u16, bytes: &[u8]) -> u16 {
    let mut digest = CRC_CCITT_FALSE.digest_with_initial(before);
    digest.update(bytes);
    digest.finalize()
}
