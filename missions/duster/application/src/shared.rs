//! What the two cores share: rings, and counts that one writes and the other reads.
//!
//! *Invariant:* of each ring and each count one core alone is the writer.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::declared::{
    FREED_CAPACITY, ORDERS_CAPACITY, PARTITIONS, REPORTS_CAPACITY, SCIENCE_CAPACITY,
};
use crate::partition::{Block, Statistics};
use crate::ring::Ring;

/// A probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Probe {
    /// The current of the plasma.
    Langmuir = 0,
    /// The electric field.
    Efield = 1,
    /// The current of the dust.
    Dust = 2,
}

impl Probe {
    /// All of them, in the order of their numbers.
    pub const ALL: [Probe; 3] = [Probe::Langmuir, Probe::Efield, Probe::Dust];

    /// The probe of this number.
    #[must_use]
    pub fn of(number: u8) -> Option<Probe> {
        Probe::ALL.get(usize::from(number)).copied()
    }
}

/// What core 0 wants of core 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Acquire samples of the probes in `probes` (a bit each) for `seconds`.
    Start {
        /// Its number.
        acquisition: u16,
        /// The probes, bit by their numbers.
        probes: u8,
        /// Whether at the minimum rates instead of the objective ones.
        minimum: bool,
        /// For how long.
        seconds: u16,
    },
    /// End what is under way, science kept as far as it came.
    Stop,
    /// Step the Langmuir probe's bias.
    Sweep {
        /// Its number.
        acquisition: u16,
        /// Steps, 600 to 1000.
        steps: u16,
        /// The first code.
        from: i16,
        /// The last code.
        to: i16,
        /// Milliseconds of a step, a multiple of 10.
        dwell: u16,
    },
    /// Set a probe's D/A converter.
    Bias {
        /// The probe.
        probe: Probe,
        /// The code.
        code: i16,
    },
    /// Let a probe measure (0), or monitor what is applied to it (1).
    Mode {
        /// The probe.
        probe: Probe,
        /// 0 or 1.
        mode: u8,
    },
    /// Codes above the running baseline at which a dust event begins.
    Threshold(i32),
    /// All converters to zero, and stop.
    Safe,
}

/// What core 1 has to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// An acquisition has begun.
    Started {
        /// Its number.
        acquisition: u16,
    },
    /// An acquisition is over and its last block is in the ring.
    Finished {
        /// Its number.
        acquisition: u16,
        /// Samples of all probes in it.
        samples: u32,
    },
    /// A sweep is over.
    Swept {
        /// Its number.
        acquisition: u16,
        /// Steps done.
        steps: u16,
    },
    /// A grain has hit.
    Dust {
        /// The number of the sample at which the pulse begins.
        sample: u32,
        /// When that was, in microseconds since the epoch of time.
        time: u64,
        /// When it was detected.
        detected: u64,
        /// The peak above the baseline, in codes.
        peak: i32,
        /// The sum above the baseline, in codes.
        charge: i32,
    },
    /// A probe's samples were lost, so many.
    Lost {
        /// The probe.
        probe: Probe,
        /// Samples.
        count: u32,
    },
    /// A partition has refused a block.
    Refused {
        /// Its number in the declaration.
        partition: u8,
    },
    /// A ring was full, and a block was dropped.
    Dropped {
        /// The probe.
        probe: Probe,
    },
    /// A task of core 1 has taken longer than its budget.
    Budget {
        /// Its number among the tasks of core 1.
        task: u8,
        /// Microseconds.
        took: u32,
    },
    /// A task of core 1 was not done by its deadline.
    Deadline {
        /// Its number among the tasks of core 1.
        task: u8,
        /// Microseconds.
        response: u32,
    },
}

/// Counts of core 1 that core 0 reads for housekeeping.
#[derive(Default)]
pub struct Status {
    /// Samples taken, by probe.
    pub samples: [AtomicU32; 3],
    /// Samples lost, by probe.
    pub lost: [AtomicU32; 3],
    /// The most samples that a set brought, by probe.
    pub set_peak: [AtomicU32; 3],
    /// Dust events detected.
    pub events: AtomicU32,
    /// Sweeps done.
    pub sweeps: AtomicU32,
    /// The acquisition or sweep under way; 0 none.
    pub acquisition: AtomicU32,
    /// Ticks of core 1.
    pub ticks: AtomicU32,
    /// Nanoseconds in a thousand that core 1 was busy, over the last second: load in per mille.
    pub load: AtomicU32,
    /// Statistics of the partitions of core 1, field by field.
    pub partitions: [PartitionStatus; PARTITIONS.len()],
}

/// [`Statistics`] of a partition that one core writes and the other reads; fields of one moment or the next.
#[derive(Default)]
pub struct PartitionStatus([AtomicU32; 8]);

impl PartitionStatus {
    /// Tells the other core.
    pub fn tell(&self, it: &Statistics) {
        let all = [
            it.size,
            it.used,
            it.peak,
            it.largest_free,
            it.allocations,
            it.frees,
            it.refusals,
            it.worst,
        ];
        for (place, value) in self.0.iter().zip(all) {
            place.store(value, Ordering::Relaxed);
        }
    }

    /// What the other core told.
    pub fn told(&self) -> Statistics {
        let get = |number: usize| self.0[number].load(Ordering::Relaxed);
        Statistics {
            size: get(0),
            used: get(1),
            peak: get(2),
            largest_free: get(3),
            allocations: get(4),
            frees: get(5),
            refusals: get(6),
            worst: get(7),
        }
    }
}

/// What the cores share.
#[derive(Default)]
pub struct Shared {
    /// Blocks of science, core 1 to core 0.
    pub science: Ring<Block, SCIENCE_CAPACITY>,
    /// Blocks that core 0 is done with, back to core 1.
    pub freed: Ring<Block, FREED_CAPACITY>,
    /// Orders, core 0 to core 1.
    pub orders: Ring<Order, ORDERS_CAPACITY>,
    /// Reports, core 1 to core 0.
    pub reports: Ring<Report, REPORTS_CAPACITY>,
    /// Counts of core 1.
    pub status: Status,
}

impl Shared {
    /// Nothing yet.
    #[must_use]
    pub const fn new() -> Shared {
        Shared {
            science: Ring::new(),
            freed: Ring::new(),
            orders: Ring::new(),
            reports: Ring::new(),
            status: Status {
                samples: [const { AtomicU32::new(0) }; 3],
                lost: [const { AtomicU32::new(0) }; 3],
                set_peak: [const { AtomicU32::new(0) }; 3],
                events: AtomicU32::new(0),
                sweeps: AtomicU32::new(0),
                acquisition: AtomicU32::new(0),
                ticks: AtomicU32::new(0),
                load: AtomicU32::new(0),
                partitions: [const { PartitionStatus([const { AtomicU32::new(0) }; 8]) };
                    PARTITIONS.len()],
            },
        }
    }
}
