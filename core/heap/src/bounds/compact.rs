//! Compact-fit: the only heap here whose space bound does not grow with the ratio of largest
//! and smallest block.
//!
//! Proof: `docs/guarantees.md#compact-fit`. A class with h used page-blocks has at most κ pages
//! that are not full, so at most h pages, and at most κ + (h − κ)/π. Summed over the classes under
//! Σ h r ≤ M, r the smallest request of a class, that is a linear program whose fractional
//! optimum is found greedily.

use super::{
    Bound, BoundError, Candidate, Demand, Geometry, Load, Sizes, Standing, Text, Times, necessary,
};
use crate::compact::complexity::Configuration;
use crate::compact::options::{CLASSES, Kappa, Options, Partition};
use crate::compact::{ENTRY, Needs};

/// The guarantee of a compact-fit heap for a demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactBound {
    /// Which of the configurations of the slides it is.
    pub configuration: Configuration,
    /// Bytes of memory with which no sequence within the demand is refused, all tables
    /// included.
    pub heap_bytes: u128,
    /// Of these, bytes of pages.
    pub page_bytes: u128,
    /// Most pages at once.
    pub pages: u128,
    /// Bytes of the table of handles, of which each block needs one.
    pub handle_bytes: u128,
    /// Bytes of records of pages, and of classes.
    pub record_bytes: u128,
    /// Classes that the demand reaches.
    pub classes: usize,
    /// Pages that κ may cost beyond those of blocks packed without a hole.
    pub not_full_pages: u128,
    /// β of the largest of these classes: bytes of a page-block, which a free may copy.
    pub page_block: u128,
    /// Most bytes of free page-blocks in pages that are not full: κ(π − 1)β summed over these
    /// classes, the size-class fragmentation of one instance; `None` where κ is infinite.
    pub size_class_bytes: Option<u128>,
    /// The formula with the numbers of this demand.
    pub formula: Text,
}

/// Where the bound comes from.
pub const CITATION: &str = "Craciunas, Kirsch, Payer, Sokolova, Stadler, Staudinger: A \
                            Compacting Real-Time Memory Management System (USENIX ATC 2008); \
                            Kirsch, Sokolova (ARTIST summer school 2009); summed over classes here";
/// Where the proof is written out.
pub const PROOF: &str = "docs/guarantees.md#compact-fit";

/// A class that the demand reaches.
#[derive(Clone, Copy)]
struct Reached {
    /// Smallest request, r.
    request: u128,
    /// Page-blocks of a page, π.
    blocks: u128,
    /// Bytes of a page-block, β.
    bytes: u128,
}

/// The guarantee of moving compact-fit, with at most `moves` moves under way at once, for a
/// demand. O(classes).
///
/// # Errors
/// [`BoundError`] where the demand contradicts itself, exceeds the largest class or the
/// alignment of blocks, or the bound exceeds 128 bits.
pub fn compact_fit(
    options: &Options,
    moves: u64,
    demand: &Demand,
) -> Result<CompactBound, BoundError> {
    let needs = Needs::of(options);
    let live = u128::from(checked(demand, options)?);
    let (reached, classes) = reached(options, demand, Needs::RECORD);
    let reached = &reached[..classes];
    let kappa = match options.kappa {
        Kappa::Finite(kappa) => Some(u128::from(kappa)),
        Kappa::Infinite => None,
    };
    let stored = stored(reached, live);
    let packed = kappa.map(|kappa| packed(reached, live, kappa));
    let settled = packed.map_or(stored, |packed| packed.min(stored));
    let transient = match (kappa, options.increment) {
        (Some(_), Some(_)) => u128::from(moves),
        _ => 0,
    };
    let pages = settled + transient;
    let page = options.partition.page as u128;
    let handles = live / u128::from(demand.smallest);
    let page_bytes = product(pages, page)?;
    let handle_bytes = product(handles, ENTRY as u128)?;
    // The table has a record for each page that the memory could hold without handles.
    let record = needs.page_record as u128;
    let inner = page_bytes + handle_bytes + needs.alignment as u128;
    let with_records = product(inner, page + record)?.div_ceil(page) + record;
    let heap_bytes = needs.fixed as u128 + with_records;
    let densest = reached.iter().map(|class| class.blocks * class.request);
    let dense = densest.min().unwrap_or(1);
    let scattered = |class: &Reached| (class.blocks - 1) * class.bytes;
    let size_class_bytes = kappa.map(|kappa| kappa * reached.iter().map(scattered).sum::<u128>());
    let not_full_pages = settled - (live / dense).min(settled);
    let formula = match packed {
        Some(packed) if packed <= stored => Text::format(format_args!(
            "P·(κ·C + ⌊(M − κ·Σr)/min(π·r)⌋ + moves) + records + handles, P = {page}, \
             C = {classes} classes: {page}·{pages} + {} + {handle_bytes}",
            heap_bytes - page_bytes - handle_bytes
        )),
        _ => Text::format(format_args!(
            "P·(Σ⌈⌊M/r⌋/π⌉ + moves) + records + handles over {classes} classes, P = {page}: \
             {page}·{pages} + {} + {handle_bytes}",
            heap_bytes - page_bytes - handle_bytes
        )),
    };
    Ok(CompactBound {
        configuration: Configuration::of(options, false),
        heap_bytes,
        page_bytes,
        pages,
        handle_bytes,
        record_bytes: heap_bytes - page_bytes - handle_bytes,
        classes,
        not_full_pages,
        page_block: reached.last().map_or(0, |class| class.bytes),
        size_class_bytes,
        formula,
    })
}

/// The guarantee of moving compact-fit as that of every heap: see [`compact_fit`].
///
/// # Errors
/// As [`compact_fit`].
pub fn moving(options: &Options, moves: u64, demand: &Demand) -> Result<Bound, BoundError> {
    let found = compact_fit(options, moves, demand)?;
    let candidate = Candidate {
        method: match options.kappa {
            Kappa::Finite(_) => "compaction",
            Kappa::Infinite => "storage by class",
        },
        bytes: found.heap_bytes,
        standing: Standing::Proved,
        formula: found.formula,
        citation: CITATION,
        proof: PROOF,
    };
    let mut bound = empty(options.declares().times, demand)?;
    bound.note = Some(
        "access is through a handle; the necessary bytes are for heaps that never move a block, \
         and this one does",
    );
    bound.offer(&Load::new(&Geometry::UNIT, demand)?, candidate);
    Ok(bound)
}

/// The guarantee of the page-blocks of non-compacting compact-fit, for a demand that does not
/// exceed its largest class. Records lie outside.
///
/// # Errors
/// As [`compact_fit`].
pub fn page_blocks(partition: &Partition, demand: &Demand) -> Result<Bound, BoundError> {
    let options = Options {
        partition: *partition,
        kappa: Kappa::Infinite,
        increment: None,
    };
    let live = u128::from(checked(demand, &options)?);
    let (reached, classes) = reached(&options, demand, 0);
    let pages = stored(&reached[..classes], live);
    let page = partition.page as u128;
    let candidate = Candidate {
        method: "storage by class",
        bytes: product(pages, page)?,
        standing: Standing::Proved,
        formula: Text::format(format_args!(
            "P·Σ⌈⌊M/r⌋/π⌉ over {classes} classes, P = {page}: {page}·{pages}"
        )),
        citation: CITATION,
        proof: "docs/guarantees.md#storage",
    };
    let mut bound = empty(options.declares().times, demand)?;
    bound.outside_bytes = product(pages, Needs::page_record(partition, 0) as u128)?;
    bound.offer(&Load::new(&Geometry::UNIT, demand)?, candidate);
    Ok(bound)
}

fn empty(time: Times, demand: &Demand) -> Result<Bound, BoundError> {
    Ok(Bound {
        time,
        heap_bytes: None,
        outside_bytes: 0,
        used: None,
        others: Default::default(),
        necessary_bytes: necessary(&Geometry::UNIT, demand)?,
        note: None,
    })
}

/// M of a demand that a heap with these options serves.
fn checked(demand: &Demand, options: &Options) -> Result<u64, BoundError> {
    // The checks of a demand are those of every heap.
    Load::new(&Geometry::UNIT, demand)?;
    let largest = options.partition.largest as u64;
    if demand.largest > largest {
        return Err(BoundError::Parameter {
            name: "largest block (n)",
            value: demand.largest,
            allowed: "at most the largest class of the heap, or give it a larger page and \
                      largest class",
        });
    }
    if demand.alignment > 16 {
        return Err(BoundError::Parameter {
            name: "alignment",
            value: demand.alignment,
            allowed: "at most 16: larger ones leave classes out",
        });
    }
    Ok(demand.live)
}

/// The classes that the demand reaches, smallest first.
fn reached(options: &Options, demand: &Demand, record: usize) -> ([Reached; CLASSES], usize) {
    let mut found = [Reached {
        request: 0,
        blocks: 0,
        bytes: 0,
    }; CLASSES];
    let mut count = 0;
    let mut below = 0u64;
    for block in options.partition.classes(record) {
        let capacity = (block - record) as u64;
        let least = demand.smallest.max(below + 1);
        let request = match demand.sizes {
            Sizes::Any => least,
            Sizes::Doubling => {
                let times = least.div_ceil(demand.smallest).next_power_of_two();
                demand.smallest.saturating_mul(times)
            }
        };
        if request <= capacity.min(demand.largest) {
            found[count] = Reached {
                request: request.into(),
                blocks: (options.partition.page / block) as u128,
                bytes: block as u128,
            };
            count += 1;
        }
        below = capacity;
    }
    (found, count)
}

/// Pages when at most κ of a class are not full: the fractional optimum, rounded down.
fn packed(reached: &[Reached], live: u128, kappa: u128) -> u128 {
    let densities = reached.iter().map(|class| class.blocks * class.request);
    let dense = densities.min().unwrap_or(1);
    let (mut pages, mut left) = (0, live);
    // Requests grow with the class, so the cheapest pages come first.
    for class in reached {
        if class.request >= dense {
            break;
        }
        let more = kappa.min(left / class.request);
        pages += more;
        left -= more * class.request;
        if more < kappa {
            // The rest does not pay for a page here; it may pay for part of one.
            return pages + u128::from(left > 0);
        }
    }
    pages + left / dense + u128::from(!left.is_multiple_of(dense))
}

/// Pages when nothing is known but that a page is opened only while all others of its class
/// are full.
fn stored(reached: &[Reached], live: u128) -> u128 {
    reached
        .iter()
        .map(|class| (live / class.request).div_ceil(class.blocks))
        .sum()
}

fn product(a: u128, b: u128) -> Result<u128, BoundError> {
    a.checked_mul(b).ok_or(BoundError::Overflow)
}

#[cfg(test)]
mod tests {
    use core::mem::MaybeUninit;
    use std::boxed::Box;
    use std::vec;
    use std::vec::Vec;

    use proptest::prelude::*;

    use super::*;
    use crate::Memory;
    use crate::compact::{CompactFit, Copying, Handle, Partition};

    fn options(page: usize, kappa: u32, factor: u32) -> Options {
        Options {
            partition: Partition {
                page,
                smallest: 32,
                largest: page - 8,
                factor,
                ..Partition::DEFAULT
            },
            kappa: match kappa {
                0 => Kappa::Infinite,
                kappa => Kappa::Finite(kappa),
            },
            increment: None,
        }
    }

    /// A heap in exactly the memory that the bound says suffices.
    fn tight(options: &Options, demand: &Demand) -> CompactFit<Copying> {
        let bound = compact_fit(options, 0, demand).unwrap();
        let memory = Box::leak(Box::new_uninit_slice(bound.heap_bytes as usize));
        let memory: &'static mut [MaybeUninit<u8>] = memory;
        CompactFit::new(options, Memory::from_static(memory)).unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

        /// Phases that fill the heap with one size and then thin it out: the class of
        /// adversaries that hurts heaps without compaction most.
        #[test]
        fn nothing_within_the_demand_is_refused(
            kappa in 0u32..4,
            page in prop::sample::select(vec![512usize, 1024, 4096]),
            factor in prop::sample::select(vec![1125u32, 1500, 2000]),
            live in 2_000u64..20_000,
            phases in prop::collection::vec((1u64..500, 1usize..12, any::<u64>()), 1..12),
        ) {
            let options = options(page, kappa, factor);
            let demand = Demand::new(live, 500, 1);
            let mut heap = tight(&options, &demand);
            let mut blocks: Vec<(Handle, u64)> = Vec::new();
            let mut used = 0;
            for (size, keep, mut seed) in phases {
                while used + size <= live {
                    let handle = heap.allocate(size as usize, 8);
                    prop_assert!(handle.is_ok(), "refused {size} B beside {used} live");
                    blocks.push((handle.unwrap(), size));
                    used += size;
                }
                let mut kept = Vec::new();
                for (index, (handle, size)) in blocks.drain(..).enumerate() {
                    seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    let stays = match seed % 2 {
                        _ if keep == 11 => (seed >> 33) % 3 == 0,
                        _ => index % keep == 0,
                    };
                    if stays {
                        kept.push((handle, size));
                    } else {
                        heap.free(handle).unwrap();
                        used -= size;
                    }
                }
                blocks = kept;
            }
            prop_assert_eq!(heap.check(), Ok(()));
        }
    }

    /// The maximum over every way to share M between classes, for a few classes.
    fn exhaustive(reached: &[Reached], live: u128, kappa: u128) -> u128 {
        let Some((class, rest)) = reached.split_first() else {
            return 0;
        };
        (0..=live / class.request)
            .map(|used| {
                let pages = match used.checked_sub(kappa) {
                    Some(more) => kappa + more / class.blocks,
                    None => used,
                };
                pages + exhaustive(rest, live - used * class.request, kappa)
            })
            .max()
            .unwrap_or(0)
    }

    #[test]
    fn the_greedy_optimum_is_at_least_the_true_one_and_close() {
        for kappa in 1..4 {
            for live in (10..160).step_by(7) {
                for (a, b, c) in [(1, 5, 9), (2, 3, 10), (3, 7, 8)] {
                    let classes = [(a, 8), (b, 4), (c, 2)].map(|(request, blocks)| Reached {
                        request,
                        blocks,
                        bytes: 0,
                    });
                    let true_one = exhaustive(&classes, live, kappa);
                    let bound = packed(&classes, live, kappa);
                    assert!(bound >= true_one, "{bound} < {true_one}");
                    assert!(bound <= true_one + 3, "{bound} far above {true_one}");
                }
            }
        }
    }

    #[test]
    fn contradictions_are_refused() {
        let options = options(4096, 1, 1125);
        let too_large = Demand::new(1 << 20, 5000, 16);
        assert!(matches!(
            compact_fit(&options, 0, &too_large),
            Err(BoundError::Parameter { .. })
        ));
        assert!(compact_fit(&options, 0, &Demand::new(10, 100, 16)).is_err());
    }
}
