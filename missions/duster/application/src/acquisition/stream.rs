//! The samples of a probe: their numbers, and the blocks that they are packed into.
//!
//! *Invariant:* the samples of a block are consecutive; after a gap a new block begins.

use super::{MOST_FRAMES, Partitions, tell};
use crate::declared::{BUSES, SAMPLES_A_PACKET};
use crate::partition::Block;
use crate::shared::{Probe, Report, Shared};
use metes_duster_protocol::samples;

/// Bytes in front of a block's data, where core 0 writes the packet's headers, and behind it for the checksum.
pub const HEADROOM: usize = 32;
const TAIL: usize = 2;
/// Bytes of the header of science data.
pub(super) const HEADER: usize = 20;

/// Which sample comes next.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Following {
    next: u32,
}

impl Following {
    pub(super) fn index(&self) -> u32 {
        self.next
    }

    /// The number of the sample that is taken now.
    pub(super) fn next(&mut self) -> u32 {
        let index = self.next;
        self.next = index.wrapping_add(1);
        index
    }

    /// A sample with this sequence number comes; how many were lost before it.
    pub(super) fn take(&mut self, sequence: u8) -> u32 {
        let lost = u32::from(sequence.wrapping_sub(self.next as u8) & 7);
        self.next = self.next.wrapping_add(lost);
        lost
    }

    /// The front end has nothing, and has produced so many, modulo 2²⁰; how many were lost before.
    pub(super) fn produced(&mut self, produced: u32) -> u32 {
        let lost = produced.wrapping_sub(self.next) & 0xf_ffff;
        // What is a little less than a whole turn was taken already: it came behind this frame's count.
        if lost > 1 << 19 {
            return 0;
        }
        self.next = self.next.wrapping_add(lost);
        lost
    }
}

/// What kind of science a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    Samples = 0,
    Sweep = 1,
    Event = 2,
    Windows = 3,
}

/// What the header of a block says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) probe: Probe,
    pub(super) acquisition: u16,
    pub(super) rate: u32,
    pub(super) first: u32,
    pub(super) time: u64,
    pub(super) count: u16,
}

/// The size of a block with so many bytes of data.
pub(super) const fn block_size(data: usize) -> usize {
    HEADROOM + HEADER + data + TAIL
}

/// The data of a block, behind its header.
pub(super) fn data(block: &mut Block) -> &mut [u8] {
    let bytes = block.bytes_mut();
    let end = bytes.len() - TAIL;
    &mut bytes[HEADROOM + HEADER..end]
}

/// Writes the header and how much of the block is used, and hands it to core 0.
#[inline(never)]
pub(super) fn hand_over(
    mut block: Block,
    header: Header,
    used: usize,
    partitions: &mut Partitions,
    shared: &Shared,
) {
    let bytes = block.bytes_mut();
    // Core 0 learns how long the data is by the first two bytes of the headroom.
    bytes[..2].copy_from_slice(&((HEADER + used) as u16).to_be_bytes());
    let at = &mut bytes[HEADROOM..HEADROOM + HEADER];
    at[0] = header.kind as u8;
    at[1] = header.probe as u8;
    at[2..4].copy_from_slice(&header.acquisition.to_be_bytes());
    at[4..6].copy_from_slice(&(header.rate as u16).to_be_bytes());
    at[6..10].copy_from_slice(&header.first.to_be_bytes());
    at[10..18].copy_from_slice(&header.time.to_be_bytes());
    at[18..20].copy_from_slice(&header.count.to_be_bytes());
    if let Err(block) = shared.science.put(block) {
        tell(
            shared,
            Report::Dropped {
                probe: header.probe,
            },
        );
        partitions.free(block);
    }
}

/// A probe's samples on their way into blocks.
pub(super) struct Stream {
    probe: Probe,
    acquisition: u16,
    rate: u32,
    /// Samples that are wanted; those from this number on are not.
    wanted: u32,
    /// The number of the sample that comes next.
    next: u32,
    /// Samples that are in blocks.
    kept: u32,
    open: Option<Open>,
}

/// The block that is being filled.
struct Open {
    block: Block,
    first: u32,
    time: u64,
    count: u16,
}

impl Stream {
    pub(super) fn new(probe: Probe) -> Stream {
        Stream {
            probe,
            acquisition: 0,
            rate: 0,
            wanted: 0,
            next: 0,
            kept: 0,
            open: None,
        }
    }

    pub(super) fn begin(&mut self, acquisition: u16, minimum: bool, seconds: u16) {
        let bus = &BUSES[self.probe as usize];
        self.acquisition = acquisition;
        self.rate = if minimum { bus.rate_min } else { bus.rate };
        self.wanted = self.rate * u32::from(seconds);
        self.next = 0;
        self.kept = 0;
    }

    /// Nothing more is wanted.
    pub(super) fn stop(&mut self) {
        self.wanted = self.wanted.min(self.next);
    }

    pub(super) fn rate(&self) -> u32 {
        self.rate
    }

    pub(super) fn acquisition(&self) -> u16 {
        self.acquisition
    }

    pub(super) fn done(&self) -> bool {
        self.next >= self.wanted
    }

    /// Consecutive samples from `first` on, at most those of a set. A block that may not hold another set is closed, so
    /// a set is in one block.
    #[inline(never)]
    pub(super) fn append(
        &mut self,
        first: u32,
        run: &[i32],
        now: u64,
        partitions: &mut Partitions,
        shared: &Shared,
    ) {
        let wanted = self.wanted.saturating_sub(first) as usize;
        let run = run.get(..wanted).unwrap_or(run);
        if run.is_empty() {
            if first >= self.wanted {
                self.next = self.next.max(self.wanted);
            }
            return;
        }
        let full = |open: &Open| usize::from(open.count) + MOST_FRAMES > SAMPLES_A_PACKET;
        if first != self.next || self.open.as_ref().is_some_and(full) {
            self.close(partitions, shared);
        }
        self.next = first + run.len() as u32;
        if self.open.is_none() {
            let size = block_size(samples::packed(SAMPLES_A_PACKET));
            let block = partitions.allocate(self.probe, size, shared);
            self.open = block.map(|block| Open {
                block,
                first,
                time: now,
                count: 0,
            });
        }
        if let Some(open) = &mut self.open {
            put_samples(data(&mut open.block), usize::from(open.count), run);
            open.count += run.len() as u16;
            self.kept += run.len() as u32;
        }
    }

    #[inline(never)]
    fn close(&mut self, partitions: &mut Partitions, shared: &Shared) {
        let Some(open) = self.open.take() else {
            return;
        };
        let header = Header {
            kind: Kind::Samples,
            probe: self.probe,
            acquisition: self.acquisition,
            rate: self.rate,
            first: open.first,
            time: open.time,
            count: open.count,
        };
        let used = samples::packed(usize::from(open.count));
        hand_over(open.block, header, used, partitions, shared);
    }

    /// The acquisition is over: how many samples went into blocks.
    pub(super) fn end(&mut self, partitions: &mut Partitions, shared: &Shared) -> u32 {
        self.close(partitions, shared);
        self.rate = 0;
        self.wanted = 0;
        self.next = 0;
        core::mem::take(&mut self.kept)
    }
}

#[inline(never)]
fn put_samples(data: &mut [u8], from: usize, samples: &[i32]) {
    for (number, &sample) in (from..).zip(samples) {
        samples::put(data, number, sample);
    }
}
