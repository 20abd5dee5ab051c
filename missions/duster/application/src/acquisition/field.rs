//! Windows of the electric field: of each hundred samples mean, extremes and root of the mean square.
//!
//! *Invariant:* windows do not overlap, and a gap begins a new one.

use super::Partitions;
use super::stream::{Header, Kind, block_size, data, hand_over};
use crate::declared::BUSES;
use crate::partition::Block;
use crate::shared::{Probe, Shared};

/// Samples of a window: a tenth of a second.
const WINDOW: u32 = 100;
/// Samples that may wait to be looked at, a power of two.
const WAITING: usize = 64;
/// Samples that are looked at in one activation, at most.
const LOOKED: usize = 32;
/// Bytes of a window.
const BYTES: usize = 20;
/// Windows of a block: a second.
const WINDOWS_A_BLOCK: usize = 10;

pub(super) struct Field {
    waiting: [(u32, i32); WAITING],
    put: usize,
    taken: usize,
    first: u32,
    count: u32,
    sum: i32,
    least: i32,
    most: i32,
    squares: u64,
    /// The block that is being filled: windows in it, the first sample, and when its first window was over.
    open: Option<(Block, u16, u32, u64)>,
}

impl Default for Field {
    fn default() -> Self {
        Field {
            waiting: [(0, 0); WAITING],
            put: 0,
            taken: 0,
            first: 0,
            count: 0,
            sum: 0,
            least: 0,
            most: 0,
            squares: 0,
            open: None,
        }
    }
}

impl Field {
    pub(super) fn begin(&mut self) {
        self.taken = self.put;
        self.count = 0;
    }

    /// A sample that is to be looked at. Where none has looked for long, it is left out, which is a gap.
    pub(super) fn sample(&mut self, index: u32, sample: i32) {
        if self.put.wrapping_sub(self.taken) < WAITING {
            self.waiting[self.put % WAITING] = (index, sample);
            self.put = self.put.wrapping_add(1);
        }
    }

    /// Looks at what waits.
    #[inline(never)]
    pub(super) fn look(
        &mut self,
        now: u64,
        partitions: &mut Partitions,
        shared: &Shared,
        acquisition: u16,
    ) {
        for _ in 0..LOOKED {
            if self.taken == self.put {
                break;
            }
            let (index, sample) = self.waiting[self.taken % WAITING];
            self.taken = self.taken.wrapping_add(1);
            self.add(index, sample);
            // One window at a time; what is left waits for the next activation.
            if self.count == WINDOW {
                break;
            }
        }
        if self.count == WINDOW {
            self.keep(now, partitions, shared, acquisition);
        }
    }

    fn add(&mut self, index: u32, sample: i32) {
        if self.count == 0 || index != self.first + self.count {
            (self.first, self.count, self.sum, self.squares) = (index, 0, 0, 0);
            (self.least, self.most) = (sample, sample);
        }
        self.count += 1;
        self.sum += sample;
        self.least = self.least.min(sample);
        self.most = self.most.max(sample);
        let size = sample.unsigned_abs();
        self.squares += u64::from(size) * u64::from(size);
    }

    #[inline(never)]
    fn keep(&mut self, now: u64, partitions: &mut Partitions, shared: &Shared, acquisition: u16) {
        if self.open.is_none() {
            let block =
                partitions.allocate(Probe::Efield, block_size(WINDOWS_A_BLOCK * BYTES), shared);
            self.open = block.map(|block| (block, 0, self.first, now));
        }
        let window = [
            self.first,
            (self.sum / WINDOW as i32) as u32,
            self.least as u32,
            self.most as u32,
            root(of_window(self.squares)),
        ];
        self.count = 0;
        let Some((block, count, ..)) = &mut self.open else {
            return;
        };
        let at = usize::from(*count) * BYTES;
        if let Some(place) = data(block).get_mut(at..at + BYTES) {
            for (place, value) in place.chunks_exact_mut(4).zip(window) {
                place.copy_from_slice(&value.to_be_bytes());
            }
        }
        *count += 1;
        if usize::from(*count) == WINDOWS_A_BLOCK {
            self.end(partitions, shared, acquisition);
        }
    }

    /// What has been kept goes to core 0.
    pub(super) fn end(&mut self, partitions: &mut Partitions, shared: &Shared, acquisition: u16) {
        let Some((block, count, first, time)) = self.open.take() else {
            return;
        };
        let header = Header {
            kind: Kind::Windows,
            probe: Probe::Efield,
            acquisition,
            rate: BUSES[Probe::Efield as usize].rate,
            first,
            time,
            count,
        };
        hand_over(
            block,
            header,
            usize::from(count) * BYTES,
            partitions,
            shared,
        );
    }
}

/// A sum over a window by its samples, rounded down: digit by digit, as the unit divides 32 bits at a time.
#[inline(never)]
fn of_window(sum: u64) -> u64 {
    let mut rest = 0;
    let mut mean = 0;
    for digit in (0..4).rev() {
        let part = rest << 16 | (sum >> (16 * digit)) as u32 & 0xffff;
        mean = mean << 16 | u64::from(part / WINDOW);
        rest = part % WINDOW;
    }
    mean
}

/// The root of `square` (less than 2⁴⁰), rounded down: bit by bit.
#[inline(never)]
pub(super) fn root(square: u64) -> u32 {
    let mut found = 0u32;
    for bit in (0..20).rev() {
        let tried = found | 1 << bit;
        if u64::from(tried) * u64::from(tried) <= square {
            found = tried;
        }
    }
    found
}
