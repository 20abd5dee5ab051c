//! What the memory of an instance holds before its first operator, and how a slot gets back to that.
//!
//! A module may write anywhere in its memory, so a mark that a heap or a stack keeps says nothing about
//! what was written: this looks at every byte. Looking is cheaper than writing, as lines that were not
//! touched are read but not made dirty, and only pages that differ are written. The cost is linear in the
//! memory of the function (`docs/edge.md` has the figures), not in that of the slot.
//!
//! *Invariant:* after [`Image::restore`] the memory is the image, whatever was in it.

use crate::error::DeployError;
use crate::module::inspect::Facts;

/// Bytes that are looked at before it is decided whether they are written.
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
            if !dirty(chunk) {
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
            clear(&mut memory[at..*start]);
            at = start + data.len();
            memory[*start..at].copy_from_slice(data);
        }
        clear(&mut memory[at..]);
    }

    /// Whether `memory` is the image.
    #[cfg(test)]
    pub(crate) fn is(&self, memory: &[u8]) -> bool {
        Image::from_memory(memory, memory.len()) == *self
    }
}

/// Makes everything zero that is not.
pub(crate) fn clear(memory: &mut [u8]) {
    for chunk in memory.chunks_mut(CHUNK) {
        if dirty(chunk) {
            chunk.fill(0);
        }
    }
}

/// Whether any byte is not zero.
fn dirty(chunk: &[u8]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has AVX2, which is all that the function asks for.
        return unsafe { dirty_wide(chunk) };
    }
    any(chunk)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn dirty_wide(chunk: &[u8]) -> bool {
    any(chunk)
}

#[inline(always)]
fn any(chunk: &[u8]) -> bool {
    // Four independent sums, so that loads need not wait for one another.
    let (blocks, rest) = chunk.as_chunks::<128>();
    let mut sum = [0u64; 16];
    for block in blocks {
        let (words, _) = block.as_chunks::<8>();
        for (sum, word) in sum.iter_mut().zip(words) {
            *sum |= u64::from_ne_bytes(*word);
        }
    }
    sum.iter().fold(0, |all, word| all | word) != 0 || rest.iter().any(|byte| *byte != 0)
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
        for at in (0..memory.len()).step_by(61) {
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

    #[test]
    fn lengths_that_are_no_multiple_are_looked_at_wholly() {
        for length in [0, 1, 7, 127, 128, 129, 4095, 4097] {
            let mut memory = vec![0u8; length];
            assert!(!dirty(&memory));
            if length > 0 {
                memory[length - 1] = 1;
                assert!(dirty(&memory));
                clear(&mut memory);
                assert!(memory.iter().all(|byte| *byte == 0));
            }
        }
    }
}
