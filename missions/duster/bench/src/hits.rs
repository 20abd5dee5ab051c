//! Bits that flipped, and what they excuse.
//!
//! Memory has no error correction, so what a flipped bit may do depends on where it flipped and for how long it stays:
//!
//! - **code and constants**: anything, until the unit's own check of them has found it and the watchdog has reset the unit:
//!   two passes of the check, as one has perhaps just been there, and the watchdog's time ([`Map::recovery`]).
//! - **data and stacks**: anything, until the unit is reset.
//! - **a partition**: as many blocks as may lie in it.
//! - **elsewhere**: nothing, as nobody reads it.
//!
//! *Invariant:* a reset ends what was hit before it: memory begins anew. What was stored meanwhile is of that time.

use std::ops::Range;

use metes_duster_system::System;
use metes_leon3::Image;

/// Where DDR begins, and the image.
const BASE: u32 = 0x4000_0000;
/// Microseconds beside passes and watchdog: the activations around them, and what was on its way to the line.
const SLACK: u64 = 1_000_000;
/// What the memory of the partitions is called in the image, the end of what nothing writes, and the stacks.
const PARTITIONS: &str = "8memories6MEMORY";
const CONSTANTS_END: &str = "__constants_end";
const STACKS: &str = "__stacks";
const STACKS_END: &str = "__fault_stack";

/// What a part of memory is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Code and constants.
    Image,
    /// Data, stacks.
    Data,
    /// A partition, of so many blocks at most.
    Partition {
        /// How many.
        blocks: u64,
    },
    /// Nothing.
    Unused,
}

/// What lies where.
#[derive(Clone, Debug)]
pub struct Map {
    constants_end: u32,
    /// The stacks, a core's behind the other's, and behind them nothing; bytes of one.
    stacks: Range<u32>,
    stack: u32,
    /// Where partitions begin, and their bytes and blocks.
    partitions: Option<u32>,
    sizes: Vec<(u32, u64)>,
    /// Cycles within which the unit is reset behind a flip in code or constants.
    pub recovery: u64,
}

impl Map {
    /// Of the unit of `system` with `image`. An image that names nothing is data, all of it.
    #[must_use]
    pub fn new(system: &System, image: &Image) -> Map {
        let symbol = |name: &str| {
            let found = image.symbols().iter().find(|it| it.name.ends_with(name));
            found.map(|it| it.address)
        };
        let constants_end = symbol(CONSTANTS_END).unwrap_or(BASE);
        let platform = &system.platform;
        let bytes = (constants_end - BASE) as usize;
        let portions = bytes.div_ceil(platform.image_check.max(1)) as u64;
        let period = system.task("fdir").map_or(0, |task| task.period);
        let microseconds = 2 * portions * period + platform.watchdog + SLACK;
        Map {
            constants_end,
            stacks: symbol(STACKS).unwrap_or(u32::MAX)..symbol(STACKS_END).unwrap_or(u32::MAX),
            stack: platform.stack as u32,
            partitions: symbol(PARTITIONS),
            sizes: system
                .partitions
                .iter()
                .map(|it| {
                    let blocks = it.demands.iter().map(|demand| demand.live as u64).sum();
                    (it.size as u32, blocks)
                })
                .collect(),
            recovery: microseconds * u64::from(platform.frequency) / 1_000_000,
        }
    }

    /// Where all partitions lie: first address and bytes.
    #[must_use]
    pub fn partitions(&self) -> Option<(u32, u32)> {
        let bytes = self.sizes.iter().map(|(size, _)| size).sum();
        self.partitions.map(|first| (first, bytes))
    }

    /// What `address` is for.
    #[must_use]
    pub fn part(&self, address: u32) -> Part {
        if address < self.constants_end {
            return Part::Image;
        }
        let mut left = self.partitions.and_then(|first| address.checked_sub(first));
        for &(size, blocks) in &self.sizes {
            match left {
                Some(behind) if behind < size => return Part::Partition { blocks },
                behind => left = behind.and_then(|behind| behind.checked_sub(size)),
            }
        }
        if address < self.stacks.end {
            Part::Data
        } else {
            Part::Unused
        }
    }

    /// Of an address on a stack, what lies below it there.
    #[must_use]
    pub fn below_on_stack(&self, address: u32) -> Option<Range<u32>> {
        if !self.stacks.contains(&address) {
            return None;
        }
        let behind = address - self.stacks.start;
        Some(address - behind % self.stack.max(1)..address)
    }
}

/// A bit that flipped in memory that is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hit {
    /// The mission's cycle.
    pub at: u64,
    /// Resets before it.
    pub boot: usize,
    /// Where.
    pub part: Part,
    /// Blocks of a partition that it may yet have spoilt.
    left: u64,
}

/// Why something went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// A bit flipped in code or constants, and the unit had not had the time to find it.
    Image,
    /// A bit flipped in data.
    Data,
    /// A bit flipped in a partition.
    Partition,
}

/// Something that went wrong: within which cycles, and how many resets were before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    /// Resets before it.
    pub boot: usize,
    /// It was not before this cycle.
    pub from: u64,
    /// Nor behind this one.
    pub to: u64,
}

/// All that flipped.
#[derive(Clone, Debug, Default)]
pub struct Hits(Vec<Hit>);

impl Hits {
    /// A bit has flipped in `part`.
    pub fn add(&mut self, at: u64, boot: usize, part: Part) {
        let left = match part {
            Part::Unused => return,
            Part::Partition { blocks } => blocks,
            Part::Image | Part::Data => 0,
        };
        self.0.push(Hit {
            at,
            boot,
            part,
            left,
        });
    }

    /// All of them, in their order.
    #[must_use]
    pub fn all(&self) -> &[Hit] {
        &self.0
    }

    /// Whether any happened since reset number `boot`.
    #[must_use]
    pub fn any(&self, boot: usize) -> bool {
        self.0.iter().any(|hit| hit.boot == boot)
    }

    /// Whether one happened since reset number `boot` that nothing but a reset ends.
    #[must_use]
    pub fn lasting(&self, boot: usize) -> bool {
        let of = |hit: &Hit| hit.boot == boot && hit.part != Part::Image;
        self.0.iter().any(of)
    }

    /// What explains that something went wrong at `time`, if anything does. What a partition's hit may have spoilt is used up by
    /// `blocks` of it.
    pub fn explain(&mut self, map: &Map, time: Time, blocks: u64) -> Option<Why> {
        let before = |hit: &&mut Hit| hit.boot == time.boot && hit.at <= time.to;
        let mut partition = None;
        let mut data = None;
        for hit in self.0.iter_mut().filter(before) {
            match hit.part {
                Part::Image if time.from <= hit.at + map.recovery => return Some(Why::Image),
                Part::Data => data = Some(Why::Data),
                Part::Partition { .. } if hit.left >= blocks => partition = Some(hit),
                _ => {}
            }
        }
        data.or_else(|| {
            partition?.left -= blocks;
            Some(Why::Partition)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DATA: Part = Part::Data;
    const TWO: Part = Part::Partition { blocks: 2 };

    fn map() -> Map {
        Map {
            constants_end: BASE + 100,
            stacks: BASE + 500..BASE + 700,
            stack: 100,
            partitions: Some(BASE + 200),
            sizes: vec![(50, 1), (50, 2)],
            recovery: 1000,
        }
    }

    #[test]
    fn each_address_is_of_its_part() {
        let one = Part::Partition { blocks: 1 };
        let parts = [
            (0, Part::Image),
            (99, Part::Image),
            (100, DATA),
            (199, DATA),
            (200, one),
            (249, one),
            (250, TWO),
            (299, TWO),
            (300, DATA),
            (699, DATA),
            (700, Part::Unused),
        ];
        for (at, part) in parts {
            assert_eq!(map().part(BASE + at), part, "{at}");
        }
        assert_eq!(map().partitions(), Some((BASE + 200, 100)));
        assert_eq!(map().below_on_stack(BASE + 499), None);
        let below = |at| map().below_on_stack(BASE + at).map(|it| it.len());
        assert_eq!(
            (below(500), below(599), below(600)),
            (Some(0), Some(99), Some(0))
        );
    }

    fn at(cycle: u64) -> Time {
        Time {
            boot: 3,
            from: cycle,
            to: cycle,
        }
    }

    #[test]
    fn the_image_excuses_until_it_must_have_been_found() {
        let mut hits = Hits::default();
        hits.add(50, 3, Part::Image);
        assert!(hits.any(3) && !hits.lasting(3) && !hits.any(2));
        let mut why = |cycle| hits.explain(&map(), at(cycle), 1);
        assert_eq!(why(49), None);
        assert_eq!(why(50), Some(Why::Image));
        assert_eq!(why(1050), Some(Why::Image));
        assert_eq!(why(1051), None);
        let other = Time { boot: 4, ..at(60) };
        assert_eq!(hits.explain(&map(), other, 1), None);
    }

    #[test]
    fn data_excuses_until_a_reset_and_a_partition_its_blocks() {
        let mut hits = Hits::default();
        hits.add(50, 3, TWO);
        hits.add(60, 3, Part::Unused);
        let mut why = |cycle, blocks| hits.explain(&map(), at(cycle), blocks);
        assert_eq!(why(2000, 3), None);
        assert_eq!(why(2000, 1), Some(Why::Partition));
        assert_eq!(why(2000, 1), Some(Why::Partition));
        assert_eq!(why(2000, 1), None);
        hits.add(3000, 3, DATA);
        assert_eq!(hits.explain(&map(), at(2999), 1), None);
        assert_eq!(hits.explain(&map(), at(9_000_000), 7), Some(Why::Data));
        assert!(hits.lasting(3));
    }

    #[test]
    fn the_flight_image_names_what_the_map_needs() {
        let system = System::of_mission();
        let (image, _) = crate::image(None).expect("the flight software is built");
        let map = Map::new(&system, &image);
        let segment = &image.segments()[0];
        assert_eq!(segment.address, BASE);
        assert!(map.constants_end > BASE + 0x1000 && map.stacks.start > map.constants_end);
        assert_eq!(map.stacks.end, BASE + segment.bytes.len() as u32);
        assert_eq!(map.stacks.len() as u32, 2 * map.stack + 2048);
        let (first, bytes) = map.partitions().expect("it is named");
        assert!(first > map.constants_end && first + bytes <= map.stacks.start);
        // A pass of the check is well below a minute.
        assert!(map.recovery < 30 * u64::from(system.platform.frequency));
    }
}
