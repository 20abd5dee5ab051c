//! What happened in a mesh, counted.
//!
//! *Invariant:* counts are exact: nothing is sampled, and a percentile is a latency that a packet had.

use std::collections::BTreeMap;

use crate::mesh::{Fate, Reason};

/// Packets, by what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that were sent.
    pub injected: u64,
    /// Copies that faults made.
    pub duplicated: u64,
    /// Packets that arrived, copies included.
    pub delivered: u64,
    /// Packets that were lost by number.
    pub lost: u64,
    /// Packets whose way led over a dead link.
    pub dead_link: u64,
    /// Packets from or to a dead node.
    pub dead_node: u64,
    /// Packets that faults kept from their destination until they were given up.
    pub stray: u64,
}

impl Counts {
    pub(super) fn count(&mut self, fate: Fate) {
        *match fate {
            Fate::Delivered => &mut self.delivered,
            Fate::Dropped(Reason::Lost) => &mut self.lost,
            Fate::Dropped(Reason::DeadLink) => &mut self.dead_link,
            Fate::Dropped(Reason::DeadNode) => &mut self.dead_node,
            Fate::Dropped(Reason::Stray) => &mut self.stray,
        } += 1;
    }

    /// Packets that are gone without having arrived.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.lost + self.dead_link + self.dead_node + self.stray
    }

    /// Packets, copies included, whose end has not come.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.injected + self.duplicated - self.delivered - self.dropped()
    }
}

/// What a link carried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkUse {
    /// Packets that entered it.
    pub packets: u64,
    /// Cycles for which they kept it from others.
    pub busy: u64,
}

impl LinkUse {
    pub(super) fn count(&mut self, busy: u64) {
        self.packets += 1;
        self.busy += busy;
    }
}

/// How often each latency, in cycles, was met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Histogram {
    packets: BTreeMap<u64, u64>,
    count: u64,
    sum: u128,
}

impl Histogram {
    /// Counts a latency. O(log n) of the latencies that were met.
    pub fn add(&mut self, cycles: u64) {
        *self.packets.entry(cycles).or_default() += 1;
        self.count += 1;
        self.sum += u128::from(cycles);
    }

    /// How many were counted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Their sum, in cycles.
    #[must_use]
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// Their mean, in cycles; none if there are none.
    #[must_use]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The least latency that `per_mille` of 1000 packets do not exceed (nearest rank): 990 is p99. None if there are no
    /// packets. Linear in the latencies that were met.
    #[must_use]
    pub fn percentile(&self, per_mille: u64) -> Option<u64> {
        let rank = (u128::from(self.count) * u128::from(per_mille.min(1000))).div_ceil(1000);
        let mut seen = 0;
        self.iter()
            .find(|(_, packets)| {
                seen += u128::from(*packets);
                seen >= rank
            })
            .map(|(cycles, _)| cycles)
    }

    /// The greatest; none if there are none. O(log n).
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        self.packets.last_key_value().map(|(cycles, _)| *cycles)
    }

    /// Latencies, from the least on, and how many packets had each.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.packets
            .iter()
            .map(|(cycles, packets)| (*cycles, *packets))
    }
}

/// What happened in a mesh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// Packets, by what became of them.
    pub counts: Counts,
    /// Cycles from sending to delivery, of packets that arrived.
    pub latency: Histogram,
    /// What each link carried, by [`Topology::link`](crate::Topology::link).
    pub links: Vec<LinkUse>,
    /// How often a packet was sent elsewhere than towards its destination.
    pub deflections: u64,
    /// The most hops of a packet that was deflected and has arrived; 0 if there is none.
    pub longest_way: u64,
    /// Cycles that have passed.
    pub cycles: u64,
}

impl Statistics {
    /// The part of the cycles for which a link was busy, at most 1 but for packets that are still to enter it; 0 before the
    /// first cycle.
    #[must_use]
    pub fn load(&self, link: usize) -> f64 {
        match self.cycles {
            0 => 0.0,
            cycles => self.links[link].busy as f64 / cycles as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_ranks_of_the_sorted_list() {
        let mut histogram = Histogram::default();
        assert_eq!(
            (histogram.percentile(990), histogram.max(), histogram.mean()),
            (None, None, None)
        );
        let latencies: Vec<u64> = (0..250).map(|index| index * 7919 % 83).collect();
        latencies.iter().for_each(|cycles| histogram.add(*cycles));
        let mut sorted = latencies.clone();
        sorted.sort_unstable();
        for per_mille in 1..=1000 {
            let rank = (sorted.len() * per_mille).div_ceil(1000);
            assert_eq!(
                histogram.percentile(per_mille as u64),
                Some(sorted[rank - 1])
            );
        }
        assert_eq!(histogram.percentile(0), sorted.first().copied());
        assert_eq!(histogram.max(), sorted.last().copied());
        let mean = sorted.iter().sum::<u64>() as f64 / 250.0;
        assert_eq!(histogram.mean(), Some(mean));
    }
}
