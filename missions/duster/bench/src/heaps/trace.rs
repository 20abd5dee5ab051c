//! The requests of partitions: read from a file, or drawn in the shape of the mission.
//!
//! One operation a line, `#` begins a comment: `a,PARTITION,BLOCK,SIZE` asks for a block, which is called by a number;
//! `f,PARTITION,BLOCK` frees it. As the traces of `metes mesh run` have it, with names for nodes.
//!
//! *Invariant:* a block that is freed was asked for and not freed since; blocks have small numbers, used again.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

use metes_duster_pools::Slots;
use metes_duster_system::{Partition, System};
use metes_random::Random;

use super::Asked;

/// A request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A block of so many bytes, called so.
    Allocate {
        /// Its number.
        block: u32,
        /// Its bytes.
        size: u32,
    },
    /// The end of a block.
    Free {
        /// Its number.
        block: u32,
    },
}

/// The requests of one partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    events: Vec<Event>,
    /// Numbers of blocks are below.
    blocks: u32,
    /// Those that may be used again.
    spare: Vec<u32>,
}

/// The requests of all partitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace(BTreeMap<String, Requests>);

/// Why a text is no trace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}; write a,PARTITION,BLOCK,SIZE or f,PARTITION,BLOCK")]
pub struct NoTrace {
    line: usize,
    what: String,
}

impl Requests {
    /// The requests in their order.
    #[must_use]
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    pub(super) fn blocks(&self) -> usize {
        self.blocks as usize
    }

    fn allocate(&mut self, size: u32) -> u32 {
        let block = self.spare.pop().unwrap_or_else(|| {
            self.blocks += 1;
            self.blocks - 1
        });
        self.events.push(Event::Allocate { block, size });
        block
    }

    fn free(&mut self, block: u32) {
        self.events.push(Event::Free { block });
        self.spare.push(block);
    }

    /// The largest request.
    pub(super) fn largest(&self) -> u32 {
        let sizes = self.events.iter().filter_map(|event| match event {
            Event::Allocate { size, .. } => Some(*size),
            Event::Free { .. } => None,
        });
        sizes.max().unwrap_or(1)
    }

    /// After each request what is live: bytes, and blocks by class. The class of a size is the first of `sizes` that holds it.
    fn walk(&self, sizes: &[u32], mut look: impl FnMut(usize, u64, &[u32])) {
        let mut live = vec![0u32; self.blocks()];
        let mut counts = vec![0; sizes.len() + 1];
        let mut bytes = 0;
        let class = |size: u32| sizes.partition_point(|&held| held < size);
        for (at, event) in self.events.iter().enumerate() {
            match *event {
                Event::Allocate { block, size } => {
                    live[block as usize] = size;
                    counts[class(size)] += 1;
                    bytes += u64::from(size);
                }
                Event::Free { block } => {
                    let size = live[block as usize];
                    counts[class(size)] -= 1;
                    bytes -= u64::from(size);
                }
            }
            look(at, bytes, &counts);
        }
    }

    /// As many slots of each size as are ever in use at once; sizes that nobody asks for are left out.
    pub(super) fn slots(&self, sizes: &[u32]) -> Vec<Slots> {
        let mut most = vec![0; sizes.len()];
        self.walk(sizes, |_, _, counts| {
            for (most, &count) in most.iter_mut().zip(counts) {
                *most = count.max(*most);
            }
        });
        let slots = sizes
            .iter()
            .zip(most)
            .map(|(&size, count)| Slots { count, size });
        slots.filter(|slots| slots.count > 0).collect()
    }

    /// Where most blocks are live.
    pub(super) fn peak(&self) -> usize {
        let mut peak = (0, 0);
        self.walk(&[], |at, _, counts| {
            if counts[0] > peak.1 {
                peak = (at, counts[0]);
            }
        });
        peak.0
    }

    pub(super) fn asked(&self, partition: &Partition) -> Asked {
        let (mut peak_live, mut peak_blocks) = (0, 0);
        self.walk(&[], |_, bytes, counts| {
            peak_live = bytes.max(peak_live);
            peak_blocks = counts[0].max(peak_blocks);
        });
        let is_allocation = |event: &&Event| matches!(event, Event::Allocate { .. });
        Asked {
            partition: partition.name.clone(),
            size: partition.size as u64,
            allocations: self.events.iter().filter(is_allocation).count() as u64,
            peak_live,
            peak_blocks: u64::from(peak_blocks),
        }
    }
}

impl Trace {
    /// Reads a trace.
    ///
    /// # Errors
    /// [`NoTrace`], with the line.
    pub fn read(text: &str) -> Result<Trace, NoTrace> {
        let mut trace = Trace::default();
        let mut called: HashMap<(&str, u64), u32> = HashMap::new();
        for (number, line) in text.lines().enumerate() {
            let wrong = |what: &str| NoTrace {
                line: number + 1,
                what: what.to_owned(),
            };
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let fields: Vec<_> = line.split(',').map(str::trim).collect();
            let block = |text: &str| {
                text.parse::<u64>()
                    .map_err(|_| wrong("a block has a number"))
            };
            match fields[..] {
                ["a", partition, name, size] => {
                    let size = size.parse().ok().filter(|&size| size < 1 << 30);
                    let size = size.ok_or_else(|| wrong("a size is a number below 2^30"))?;
                    let requests = trace.0.entry(partition.to_owned()).or_default();
                    let own = (partition, block(name)?);
                    if called.contains_key(&own) {
                        return Err(wrong("this block is live already"));
                    }
                    called.insert(own, requests.allocate(size));
                }
                ["f", partition, name] => {
                    let found = called.remove(&(partition, block(name)?));
                    let block = found.ok_or_else(|| wrong("this block is not live"))?;
                    trace.0.entry(partition.to_owned()).or_default().free(block);
                }
                _ => return Err(wrong("this is no operation")),
            }
        }
        Ok(trace)
    }

    /// The requests of a partition.
    #[must_use]
    pub fn of(&self, partition: &str) -> Option<&Requests> {
        self.0
            .get(partition)
            .filter(|requests| !requests.events.is_empty())
    }

    /// Requests in the shape of the mission's: acquisitions and pauses, sweeps, dumps, telecommands, storms of dust. Within the
    /// declared demands. No recording: sizes are those of the formats, lifetimes and rates are drawn.
    #[must_use]
    pub fn drawn(system: &System, seconds: u64, seed: u64) -> Trace {
        let of = |(number, partition): (usize, &Partition)| {
            let mut random =
                Random::new(seed ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
            (
                partition.name.clone(),
                drawn(partition, seconds * 1_000_000, &mut random),
            )
        };
        Trace(system.partitions.iter().enumerate().map(of).collect())
    }
}

/// What comes again and again: sizes, microseconds between and of life; whether only while an acquisition is under way.
struct Stream {
    sizes: [u64; 2],
    between: [u64; 2],
    life: [u64; 2],
    acquiring: bool,
    /// Blocks at once.
    burst: u64,
}

const fn stream(
    sizes: [u64; 2],
    between: [u64; 2],
    life: [u64; 2],
    acquiring: bool,
    burst: u64,
) -> Stream {
    Stream {
        sizes,
        between,
        life,
        acquiring,
        burst,
    }
}

/// Blocks of samples: header, 384 samples, checksum; from the first sample until they are sent and stored, an erase in between.
const SAMPLES: [u64; 2] = [1014, 1014];
const SENT: [u64; 2] = [90_000, 420_000];

fn streams(partition: &Partition) -> Vec<Stream> {
    let largest = partition
        .demands
        .iter()
        .map(|demand| demand.size as u64)
        .max()
        .unwrap_or(64);
    match partition.name.as_str() {
        "langmuir" => vec![
            stream(SAMPLES, [76_800, 76_800], SENT, true, 1),
            stream([66, 1014], [1_000_000, 4_000_000], SENT, true, 1),
        ],
        "efield" => vec![
            stream(SAMPLES, [384_000, 384_000], SENT, true, 1),
            stream([74, 854], [500_000, 2_000_000], SENT, true, 1),
        ],
        "dust" => vec![
            stream(SAMPLES, [38_400, 38_400], SENT, true, 1),
            stream([230, 230], [20_000, 400_000], [30_000, 300_000], true, 2),
        ],
        "tm" => vec![
            stream([60, 220], [200_000, 300_000], [1_000, 60_000], false, 1),
            stream([22, 40], [100_000, 4_000_000], [1_000, 60_000], false, 4),
            stream([1014, 1024], [20_000, 40_000], [5_000, 500_000], true, 2),
            stream([24, 80], [100_000, 3_000_000], [1_000, 90_000], false, 3),
        ],
        "tc" => vec![
            stream([12, 48], [100_000, 4_000_000], [1_000, 500_000], false, 3),
            stream(
                [64, largest],
                [2_000_000, 30_000_000],
                [1_000, 900_000],
                false,
                1,
            ),
        ],
        "schedule" => vec![stream(
            [16, largest],
            [500_000, 10_000_000],
            [1_000_000, 1_800_000_000],
            false,
            4,
        )],
        "events" => vec![
            stream(
                [16, largest.min(64)],
                [50_000, 2_000_000],
                [5_000, 2_000_000],
                false,
                6,
            ),
            stream(
                [24, 40],
                [5_000_000, 60_000_000],
                [1_000_000, 600_000_000],
                false,
                2,
            ),
        ],
        _ => vec![stream(
            [1, largest],
            [10_000, 1_000_000],
            [1_000, 10_000_000],
            false,
            4,
        )],
    }
}

fn drawn(partition: &Partition, end: u64, random: &mut Random) -> Requests {
    let streams = streams(partition);
    let mut requests = Requests::default();
    let mut next: BinaryHeap<Reverse<(u64, usize)>> = streams
        .iter()
        .enumerate()
        .map(|(at, _)| Reverse((0, at)))
        .collect();
    let mut frees: BinaryHeap<Reverse<(u64, u32, usize)>> = BinaryHeap::new();
    // Live blocks of each demand; acquisitions begin and end in turn.
    let mut live = vec![0; partition.demands.len()];
    let (mut acquiring, mut turn) = (false, 0);
    while let Some(Reverse((now, number))) = next.pop() {
        if now >= end {
            break;
        }
        while now >= turn {
            acquiring = !acquiring;
            turn += if acquiring {
                random.between(60, 600)
            } else {
                random.between(5, 200)
            } * 1_000_000;
        }
        while frees.peek().is_some_and(|Reverse((time, ..))| *time <= now) {
            if let Some(Reverse((_, block, demand))) = frees.pop() {
                requests.free(block);
                live[demand] -= 1;
            }
        }
        let own = &streams[number];
        let [least, most] = own.between;
        next.push(Reverse((now + random.between(least, most), number)));
        if own.acquiring && !acquiring {
            continue;
        }
        for _ in 0..random.between(1, own.burst) {
            let size = random.between(own.sizes[0], own.sizes[1].max(own.sizes[0]));
            let held = |demand: &usize| {
                let it = &partition.demands[*demand];
                size <= it.size as u64 && live[*demand] < it.live
            };
            // The tightest demand that has room: what a partition is not declared for is not asked.
            let fitting = (0..live.len())
                .filter(held)
                .min_by_key(|&demand| partition.demands[demand].size);
            if let Some(demand) = fitting {
                live[demand] += 1;
                let block = requests.allocate(size as u32);
                frees.push(Reverse((
                    now + random.between(own.life[0], own.life[1]),
                    block,
                    demand,
                )));
            }
        }
    }
    while let Some(Reverse((_, block, _))) = frees.pop() {
        requests.free(block);
    }
    requests
}
