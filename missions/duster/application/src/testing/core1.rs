//! A core 1 that makes science by rule instead of probes.
//!
//! *Invariant:* a block goes out by one ring and comes back by the other before it is freed.

use std::sync::Arc;
use std::vec::Vec;

use core::sync::atomic::Ordering;

use metes_duster_protocol::ScienceHeader;
use metes_duster_protocol::definitions::{Probe, ScienceKind};
use metes_duster_protocol::telemetry::{HEADROOM, SCIENCE_HEADER, TRAILER};

use crate::declared::{PARTITION_DUST, PARTITION_LANGMUIR, PARTITIONS};
use crate::partition::Partition;
use crate::shared::{Order, Report, Shared};
use crate::testing::lent::Lent;

/// Bytes of data of each block.
const DATA: usize = 960;

/// The other core.
pub struct Core1 {
    shared: &'static Shared,
    partitions: Vec<Partition>,
    /// Acquisition under way: its number, whether it is a sweep, milliseconds left, blocks made.
    under_way: Option<(u16, bool, u32, u32)>,
    /// Orders that came.
    pub orders: Vec<Order>,
    /// Does nothing any more.
    pub dead: bool,
    /// Never says that an acquisition is over.
    pub endless: bool,
    /// Milliseconds from block to block.
    pub pace: u32,
    /// Blocks that found no room.
    pub dropped: u32,
    /// All source data made.
    pub made: Vec<Vec<u8>>,
    // Behind the partitions, see there.
    _lent: Lent,
}

impl Core1 {
    /// A core 1 that does nothing yet.
    pub(super) fn new(shared: &Arc<Shared>) -> Self {
        let (mut lent, shared) = Lent::new(shared);
        let numbers = PARTITION_LANGMUIR..PARTITIONS.len();
        Core1 {
            shared,
            partitions: numbers.map(|number| lent.partition(number)).collect(),
            under_way: None,
            orders: Vec::new(),
            dead: false,
            endless: false,
            pace: 24,
            dropped: 0,
            made: Vec::new(),
            _lent: lent,
        }
    }

    /// Bytes of core 1's partitions that are live.
    pub fn used(&self) -> u32 {
        self.partitions
            .iter()
            .map(|partition| partition.statistics().used)
            .sum()
    }

    /// A millisecond.
    pub fn millisecond(&mut self, now: u64) {
        if self.dead {
            return;
        }
        self.shared.status.ticks.fetch_add(1, Ordering::Relaxed);
        while let Some(block) = self.shared.freed.take() {
            let number = block.partition() - PARTITION_LANGMUIR;
            self.partitions[number].free(block);
        }
        while let Some(order) = self.shared.orders.take() {
            self.orders.push(order);
            self.obey(order);
        }
        let Some((acquisition, sweep, left, made)) = self.under_way else {
            return;
        };
        if left.is_multiple_of(self.pace) {
            self.block(acquisition, made, now);
            self.under_way = Some((acquisition, sweep, left, made + 1));
        }
        if left > 1 {
            if let Some(under_way) = &mut self.under_way {
                under_way.2 -= 1;
            }
        } else if !self.endless {
            self.finish();
        }
    }

    fn obey(&mut self, order: Order) {
        let (acquisition, sweep, milliseconds) = match order {
            Order::Start {
                acquisition,
                seconds,
                ..
            } => (acquisition, false, u32::from(seconds) * 1000),
            Order::Sweep {
                acquisition,
                steps,
                dwell,
                ..
            } => (acquisition, true, u32::from(steps) * u32::from(dwell)),
            Order::Stop | Order::Safe => {
                self.finish();
                return;
            }
            _ => return,
        };
        self.under_way = Some((acquisition, sweep, milliseconds, 0));
        let _ = self.shared.reports.put(Report::Started { acquisition });
    }

    fn finish(&mut self) {
        let Some((acquisition, sweep, _, made)) = self.under_way.take() else {
            return;
        };
        let report = if sweep {
            Report::Swept {
                acquisition,
                steps: 600,
            }
        } else {
            Report::Finished {
                acquisition,
                samples: made * 384,
            }
        };
        let _ = self.shared.reports.put(report);
    }

    /// A block of science whose data tells which it is.
    fn block(&mut self, acquisition: u16, number: u32, now: u64) {
        let data = if number % 5 == 4 { DATA / 6 } else { DATA };
        let size = HEADROOM + SCIENCE_HEADER + DATA + TRAILER;
        let partition = &mut self.partitions[PARTITION_DUST - PARTITION_LANGMUIR];
        let Some(mut block) = partition.allocate(size) else {
            self.dropped += 1;
            return;
        };
        let header = ScienceHeader {
            kind: ScienceKind::Samples,
            probe: Probe::Dust,
            acquisition,
            rate: 10_000,
            first: number * 384,
            time: now,
            count: (data * 2 / 5) as u16,
        };
        let length = SCIENCE_HEADER + data;
        let bytes = block.bytes_mut();
        bytes[..2].copy_from_slice(&(length as u16).to_be_bytes());
        let source = &mut bytes[HEADROOM..HEADROOM + length];
        header.write(source).expect("there is room");
        for (at, byte) in source[SCIENCE_HEADER..].iter_mut().enumerate() {
            *byte = (at as u32).wrapping_mul(number + 1).wrapping_add(number) as u8;
        }
        let made = source.to_vec();
        match self.shared.science.put(block) {
            Ok(()) => self.made.push(made),
            Err(block) => {
                self.dropped += 1;
                partition.free(block);
            }
        }
    }
}
