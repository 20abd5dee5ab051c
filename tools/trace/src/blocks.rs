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
pub(crate) struct AddressHasher(u64);

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

/// What is known by addresses, or by other numbers times 16.
pub(crate) type Numbered<B> = HashMap<u64, B, BuildHasherDefault<AddressHasher>>;

/// Where the requests go, each of a block that is live.
pub(crate) trait Sink {
    /// What it wants to know of a live block.
    type Block: Copy;

    /// An allocation; the new block.
    fn alloc(&mut self, asked: Asked, size: u64, align: u32) -> Result<Self::Block, Inconsistency>;

    /// The end of a block.
    fn free(&mut self, asked: Asked, block: Self::Block) -> Result<(), Inconsistency>;

    /// Another size for a block; the block as it is then.
    fn resize(
        &mut self,
        asked: Asked,
        block: Self::Block,
        size: u64,
        align: u32,
    ) -> Result<Self::Block, Inconsistency>;

    /// Whether it wants to be looked at before it gets more.
    fn is_full(&self) -> bool {
        false
    }
}

impl Sink for TraceBuilder {
    type Block = u64;

    fn alloc(&mut self, asked: Asked, size: u64, align: u32) -> Result<u64, Inconsistency> {
        let Asked { time, thread, site } = asked;
        self.alloc_at(site, time, thread, size, align)
    }

    fn free(&mut self, asked: Asked, block: u64) -> Result<(), Inconsistency> {
        TraceBuilder::free(self, asked.time, asked.thread, block)
    }

    fn resize(
        &mut self,
        asked: Asked,
        block: u64,
        size: u64,
        align: u32,
    ) -> Result<u64, Inconsistency> {
        let Asked { time, thread, site } = asked;
        self.resize_at(site, time, thread, block, size, align)?;
        Ok(block)
    }
}

/// Live blocks by their addresses, and what is made of the requests.
pub(crate) struct Blocks<S: Sink = TraceBuilder> {
    pub(crate) sink: S,
    live: Numbered<S::Block>,
    /// Frees of blocks that are not in the trace.
    pub(crate) unknown_frees: u64,
    /// Resizes of such blocks; in the trace they are allocations.
    pub(crate) unknown_resizes: u64,
    /// Blocks that were closed because another one has their address.
    pub(crate) replaced: u64,
}

/// A resize under way: its block has no address meanwhile.
#[derive(Clone, Copy)]
pub(crate) struct Resizing<B = u64> {
    pub(crate) address: u64,
    /// None if its allocation was not seen.
    block: Option<B>,
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

impl Default for Blocks {
    fn default() -> Blocks {
        Blocks::new(TraceBuilder::new())
    }
}

impl Blocks {
    /// Events of the trace so far.
    pub(crate) fn len(&self) -> usize {
        self.sink.len()
    }
}

impl<S: Sink> Blocks<S> {
    /// No blocks yet.
    pub(crate) fn new(sink: S) -> Blocks<S> {
        Blocks {
            sink,
            live: Numbered::default(),
            unknown_frees: 0,
            unknown_resizes: 0,
            replaced: 0,
        }
    }

    /// The live blocks, in no order.
    pub(crate) fn live(&mut self) -> (&mut S, impl Iterator<Item = &mut S::Block>) {
        (&mut self.sink, self.live.values_mut())
    }

    /// Knows no block any more, and of none that it was not known.
    pub(crate) fn forget(&mut self) {
        self.live.clear();
        self.unknown_frees = 0;
        self.unknown_resizes = 0;
        self.replaced = 0;
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
        let block = self.sink.alloc(asked, size, align)?;
        self.live.insert(address, block);
        Ok(())
    }

    pub(crate) fn free(&mut self, asked: Asked, address: u64) -> Result<(), Inconsistency> {
        match self.live.remove(&address) {
            Some(block) => self.sink.free(asked, block),
            None => {
                self.unknown_frees += 1;
                Ok(())
            }
        }
    }

    /// A resize begins: what is at `address` may be another's from here on.
    pub(crate) fn resize(&mut self, address: u64, size: u64, align: u32) -> Resizing<S::Block> {
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
        resizing: Resizing<S::Block>,
        address: u64,
    ) -> Result<(), Inconsistency> {
        let Resizing { size, align, .. } = resizing;
        match (resizing.block, address) {
            (Some(block), 0) => self.settle(asked, resizing.address, block),
            (None, 0) => Ok(()),
            (Some(block), _) => {
                let block = self.sink.resize(asked, block, size, align)?;
                self.settle(asked, address, block)
            }
            (None, _) => {
                self.unknown_resizes += 1;
                self.alloc(asked, address, size, align)
            }
        }
    }

    /// A block now lives at `address`.
    fn settle(&mut self, asked: Asked, address: u64, block: S::Block) -> Result<(), Inconsistency> {
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
        self.sink.free(asked, old)
    }
}

impl Blocks {
    /// The trace, with what it does not know in its provenance.
    pub(crate) fn finish(self, provenance: Provenance) -> Trace {
        self.sink.finish(Provenance {
            unknown_blocks: self.unknown_frees + self.unknown_resizes,
            ..provenance
        })
    }
}
