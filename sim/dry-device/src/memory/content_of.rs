//! Copies and fills: which bytes a range of device addresses stands for.
//!
//! Invariant: every byte that is reached belongs to a plain block, within its requested size, or
//! to mappings with access.

use super::{Access, Memory, Use};
use crate::error::{Answer, Code};

/// A range of the content: offset and size.
type Piece = (u64, u64);

impl Memory {
    /// Copies `size` bytes of the host to the device.
    ///
    /// # Errors
    /// [`Code::IllegalAddress`] if the range is not wholly mapped with access;
    /// [`Code::InvalidValue`] if the host may not read the source.
    pub fn copy_in(&self, destination: u64, source: u64, size: u64) -> Answer {
        let mut done = 0;
        for (offset, length) in self.pieces(destination, size, Use::Write)? {
            self.content.write(offset, source + done, length)?;
            done += length;
        }
        Ok(())
    }

    /// Copies `size` bytes of the device to the host.
    ///
    /// # Errors
    /// As [`Memory::copy_in`], of the destination.
    pub fn copy_out(&self, destination: u64, source: u64, size: u64) -> Answer {
        let mut done = 0;
        for (offset, length) in self.pieces(source, size, Use::Read)? {
            self.content.read(offset, destination + done, length)?;
            done += length;
        }
        Ok(())
    }

    /// Copies within the device. The ranges may not overlap in physical memory.
    ///
    /// # Errors
    /// [`Code::IllegalAddress`] if a range is not wholly mapped with access.
    pub fn copy_within(&self, destination: u64, source: u64, size: u64) -> Answer {
        let from = self.pieces(source, size, Use::Read)?;
        let to = self.pieces(destination, size, Use::Write)?;
        let (mut from, mut to) = (from.into_iter(), to.into_iter());
        let (mut left, mut right) = ((0, 0), (0, 0));
        loop {
            left = refilled(left, &mut from);
            right = refilled(right, &mut to);
            let length = left.1.min(right.1);
            if length == 0 {
                return Ok(());
            }
            self.content.copy(left.0, right.0, length)?;
            left = (left.0 + length, left.1 - length);
            right = (right.0 + length, right.1 - length);
        }
    }

    /// Repeats `pattern` over `size` bytes.
    ///
    /// # Errors
    /// [`Code::InvalidValue`] if address or size is no multiple of the pattern's length;
    /// [`Code::IllegalAddress`] if the range is not wholly mapped with access.
    pub fn fill(&self, destination: u64, pattern: &[u8], size: u64) -> Answer {
        let unit = pattern.len() as u64;
        if !destination.is_multiple_of(unit) || !size.is_multiple_of(unit) {
            return Err(Code::InvalidValue);
        }
        for (offset, length) in self.pieces(destination, size, Use::Write)? {
            self.content.fill(offset, pattern, length)?;
        }
        Ok(())
    }

    /// The content of a range of addresses, in order.
    fn pieces(&self, address: u64, size: u64, of: Use) -> Answer<Vec<Piece>> {
        if let Some((start, block)) = self.block(address) {
            let within = address - start;
            let end = within.checked_add(size).ok_or(Code::IllegalAddress)?;
            return match end <= block.size {
                true => Ok(vec![(block.offset + within, size)]),
                false => Err(Code::IllegalAddress),
            };
        }
        let end = address.checked_add(size).ok_or(Code::IllegalAddress)?;
        let mut pieces = Vec::new();
        let mut at = address;
        while at < end {
            let (start, mapping) = self.mapping(at).map_err(|_| Code::IllegalAddress)?;
            let allowed = match of {
                Use::Read => mapping.access != Access::None,
                Use::Write => mapping.access == Access::ReadWrite,
            };
            let physical = self.physical.get(&mapping.handle);
            let Some(physical) = physical.filter(|_| allowed) else {
                return Err(Code::IllegalAddress);
            };
            let length = (start + mapping.size).min(end) - at;
            pieces.push((physical.offset + (at - start), length));
            at += length;
        }
        Ok(pieces)
    }
}

/// The piece, or the next one if it is used up.
fn refilled(piece: Piece, next: &mut impl Iterator<Item = Piece>) -> Piece {
    match piece.1 {
        0 => next.next().unwrap_or((0, 0)),
        _ => piece,
    }
}
