//! Samples of 20 bits, two's complement, packed big-endian without gaps: two in five bytes.
//!
//! *Invariant:* [`put`] changes the bits of its sample alone.

/// Least and greatest sample.
pub const RANGE: core::ops::RangeInclusive<i32> = -(1 << 19)..=(1 << 19) - 1;
/// Most samples in a packet.
pub const IN_PACKET: usize = 384;

/// Bytes that `count` samples take; the last half byte may be empty.
#[must_use]
pub const fn packed(count: usize) -> usize {
    (count * 5).div_ceil(2)
}

/// Writes sample number `index`, the low 20 bits of `sample`; nothing when `packed` is too short.
#[inline]
pub fn put(packed: &mut [u8], index: usize, sample: i32) {
    let bits = sample as u32 & 0xf_ffff;
    let at = index / 2 * 5;
    if index.is_multiple_of(2) {
        if let Some([a, b, c]) = packed.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
            *a = (bits >> 12) as u8;
            *b = (bits >> 4) as u8;
            *c = *c & 0x0f | (bits << 4) as u8;
        }
    } else if let Some([a, b, c]) = packed.get_mut(at + 2..).and_then(<[u8]>::first_chunk_mut) {
        *a = *a & 0xf0 | (bits >> 16) as u8;
        *b = (bits >> 8) as u8;
        *c = bits as u8;
    }
}

/// Sample number `index`; none when `packed` is too short.
#[inline]
#[must_use]
pub fn get(packed: &[u8], index: usize) -> Option<i32> {
    let at = index / 2 * 5;
    let bits = if index.is_multiple_of(2) {
        let [a, b, c] = packed.get(at..)?.first_chunk()?;
        u32::from(*a) << 12 | u32::from(*b) << 4 | u32::from(*c) >> 4
    } else {
        let [a, b, c] = packed.get(at + 2..)?.first_chunk()?;
        u32::from(*a & 0x0f) << 16 | u32::from(*b) << 8 | u32::from(*c)
    };
    Some(((bits << 12) as i32) >> 12)
}
