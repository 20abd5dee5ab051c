//! What the memory of an instance holds before its first operator, and how a slot gets back to that.
//!
//! A module may write anywhere in its memory, so a mark that a heap or a stack keeps says nothing about
//! what was written: every byte is written again. Looking for what differs first would read each line, which
//! takes as long as writing it (`docs/benchmarks.md`), and would then take as much longer as the guest has
//! written; so it takes the same time whatever the guest did. The cost is linear in the memory of the
//! function, not in that of the slot's pool.
//!
//! *Invariant:* after [`Image::restore`] the memory is the image, whatever was in it.

use crate::error::DeployError;
use crate::module::inspect::Facts;

/// Bytes that are zero together, or stand in the image.
const CHUNK: usize = 4096;

/// The memory of a fresh instance: zeros, but for some extents.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Image {
    bytes: usize,
    /// In order, disjoint.
    extents: Vec<(usize, Vec<u8>)>,
}

impl Image {
    /// The active data of a module, later segments over earlier ones.
    pub(crate) fn of(facts: &Facts, bytes: u64) -> Result<Image, DeployError> {
        let mut end = 0;
        for (index, (at, data)) in facts.data.iter().enumerate() {
            let after = at + data.len() as u64;
            if after > bytes {
                return Err(DeployError::Data {
                    index: index as u32,
                    end: after,
                    memory: bytes,
                });
            }
            end = end.max(after as usize);
        }
        let mut flat = vec![0; end];
        for (at, data) in &facts.data {
            flat[*at as usize..*at as usize + data.len()].copy_from_slice(data);
        }
        Ok(Image::from_memory(&flat, bytes as usize))
    }

    /// What stands in `memory`, with zeros behind it up to `bytes`.
    pub(crate) fn from_memory(memory: &[u8], bytes: usize) -> Image {
        let mut extents: Vec<(usize, Vec<u8>)> = Vec::new();
        for (number, chunk) in memory.chunks(CHUNK).enumerate() {
            if chunk.iter().all(|byte| *byte == 0) {
                continue;
            }
            let at = number * CHUNK;
            match extents.last_mut() {
                Some((start, data)) if *start + data.len() == at => data.extend_from_slice(chunk),
                _ => extents.push((at, chunk.to_vec())),
            }
        }
        Image { bytes, extents }
    }

    /// The size of the memory.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Sets `memory`, which has [`Image::bytes`], back.
    pub(crate) fn restore(&self, memory: &mut [u8]) {
        debug_assert_eq!(memory.len(), self.bytes);
        let mut at = 0;
        for (start, data) in &self.extents {
            memory[at..*start].fill(0);
            at = start + data.len();
            memory[*start..at].copy_from_slice(data);
        }
        memory[at..].fill(0);
    }

    /// Whether `memory` is the image.
    #[cfg(test)]
    pub(crate) fn is(&self, memory: &[u8]) -> bool {
        Image::from_memory(memory, memory.len()) == *self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_set_back() {
        let mut initial = vec![0u8; 3 * 65536];
        initial[70_000..70_100].fill(7);
        initial[8191] = 1;
        let image = Image::from_memory(&initial, initial.len());
        let mut memory = initial.clone();
        for at in (0..memory.len()).step_by(997) {
            memory[at] = memory[at].wrapping_add(3);
            if at % 7 == 0 {
                image.restore(&mut memory);
                assert!(image.is(&memory) && memory == initial, "at {at}");
            }
        }
        memory.fill(0xff);
        image.restore(&mut memory);
        assert_eq!(memory, initial);
    }
}
