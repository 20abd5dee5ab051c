//! From addresses to serial numbers.
//!
//! Invariant: the trace is consistent for any requests. The table of addresses is exact if those who make it give a
//! block's address up (free, beginning of a resize) before another block can have it. Should a request be missing,
//! the block that lost its address is closed by a free.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::error::Inconsistency;
use crate::trace::{Provenance, Trace, TraceBuilder};

/// Hash of an address: one multiplication, whose high bits are the good ones.
#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(self.0 ^ u64::from(byte));
        }
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (value >> 4)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(20);
    }
}

type Addresses = HashMap<u64, u64, BuildHasherDefault<AddressHasher>>;

/// Live blocks by their addresses, and the trace of them.
#[derive(Default)]
pub(crate) struct Blocks {
    builder: TraceBuilder,
    live: Addresses,
    /// Frees of blocks that are not in the trace.
    pub(crate) unknown_frees: u64,
    /// Resizes of such blocks; in the trace they are allocations.
    pub(crate) unknown_resizes: u64,
    /// Blocks that were closed because another one has their address.
    pub(crate) replaced: u64,
}

/// A resize under way: its block has no address meanwhile.
#[derive(Clone, Copy)]
pub(crate) struct Resizing {
    pub(crate) address: u64,
    /// None if its allocation was not seen.
    block: Option<u64>,
    size: u64,
    align: u32,
}

/// Who asked, and when.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub(crate) time: u64,
    pub(crate) thread: u32,
    /// From where; 0 if not known.
    pub(crate) site: u64,
}

impl Blocks {
    /// Events of the trace so far.
    pub(crate) fn len(&self) -> usize {
        self.builder.len()
    }

    pub(crate) fn alloc(
        &mut self,
        asked: Asked,
        address: u64,
        size: u64,
        align: u32,
    ) -> Result<(), Inconsistency> {
        // A block that lost its free goes first: it made the room.
        self.close(asked, address)?;
        let Asked { time, thread, site } = asked;
        let block = self.builder.alloc_at(site, time, thread, size, align)?;
        self.live.insert(address, block);
        Ok(())
    }

    pub(crate) fn free(&mut self, asked: Asked, address: u64) -> Result<(), Inconsistency> {
        match self.live.remove(&address) {
            Some(block) => self.builder.free(asked.time, asked.thread, block),
            None => {
                self.unknown_frees += 1;
                Ok(())
            }
        }
    }

    /// A resize begins: what is at `address` may be another's from here on.
    pub(crate) fn resize(&mut self, address: u64, size: u64, align: u32) -> Resizing {
        Resizing {
            address,
            block: self.live.remove(&address),
            size,
            align,
        }
    }

    /// It ends with the block at `address`; 0 if it failed and the block stays.
    pub(crate) fn resized(
        &mut self,
        asked: Asked,
        resizing: Resizing,
        address: u64,
    ) -> Result<(), Inconsistency> {
        let Resizing { size, align, .. } = resizing;
        match (resizing.block, address) {
            (Some(block), 0) => self.settle(asked, resizing.address, block),
            (None, 0) => Ok(()),
            (Some(block), _) => {
                let Asked { time, thread, site } = asked;
                let builder = &mut self.builder;
                builder.resize_at(site, time, thread, block, size, align)?;
                self.settle(asked, address, block)
            }
            (None, _) => {
                self.unknown_resizes += 1;
                self.alloc(asked, address, size, align)
            }
        }
    }

    /// A block now lives at `address`.
    fn settle(&mut self, asked: Asked, address: u64, block: u64) -> Result<(), Inconsistency> {
        self.close(asked, address)?;
        self.live.insert(address, block);
        Ok(())
    }

    /// Closes a block that a lost request left at `address`.
    fn close(&mut self, asked: Asked, address: u64) -> Result<(), Inconsistency> {
        let Some(old) = self.live.remove(&address) else {
            return Ok(());
        };
        self.replaced += 1;
        self.builder.free(asked.time, asked.thread, old)
    }

    /// The trace, with what it does not know in its provenance.
    pub(crate) fn finish(self, provenance: Provenance) -> Trace {
        self.builder.finish(Provenance {
            unknown_blocks: self.unknown_frees + self.unknown_resizes,
            ..provenance
        })
    }
}
