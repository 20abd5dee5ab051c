//! Partitions: what is live at most, and the memory with which its heap never refuses it.
//!
//! A demand bounds the number of its blocks, so the any-fit argument (`docs/guarantees.md#any-fit`) is made with that
//! number instead of M/l: when a request is refused, the other live blocks take at most their block sizes, each with a
//! remainder too small to split off, and there are at most as many holes as live blocks, the request's own counted, each
//! less than the ceiling s' of the heap's search. Where a heap is no such heap, its own bound stands, of any sizes up to the
//! largest.
//!
//! *Invariant:* in a partition of `heap_bytes` no request within its demands is refused.

use std::num::NonZeroU64;

use metes_bounds::Declared;
use metes_duster_system::{Demand, Partition, System};
use metes_heap::bounds::{self, Geometry};
use metes_heap::index::Index;
use metes_heap::store;
use metes_heap::{AnyIndex, ByHandle, Ledger};

use super::{Row, Unit};

/// Bytes of a word of LEON3.
const WORD: usize = 4;

/// What is known of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartitionBound {
    /// Its name.
    pub name: String,
    /// Requested bytes that are live at a time, at most.
    pub live: u64,
    /// Blocks that are live at a time, at most.
    pub blocks: u64,
    /// Bytes with which its heap refuses nothing, or why there is no such number.
    pub heap_bytes: Result<u64, String>,
}

/// The bounds of all partitions, in the order of the declaration.
#[must_use]
pub fn partitions(system: &System) -> Vec<PartitionBound> {
    let of = |it: &Partition| PartitionBound {
        name: it.name.clone(),
        live: it
            .demands
            .iter()
            .map(|demand| demand.size as u64 * demand.live as u64)
            .sum(),
        blocks: it.demands.iter().map(|demand| demand.live as u64).sum(),
        heap_bytes: heap_bytes(&it.heap, &it.demands),
    };
    system.partitions.iter().map(of).collect()
}

/// Bytes with which the heap called `name` serves all of `demands`, boundary tags of 32-bit words included.
pub(super) fn heap_bytes(name: &str, demands: &[Demand]) -> Result<u64, String> {
    let heap = metes_config::spec(name)
        .map_err(|error| error.one_line())?
        .heap;
    let shape = store::Geometry::tagged(WORD);
    let live = |demand: &Demand| demand.live as u64;
    let blocks: u64 = demands.iter().map(live).sum();
    let total: u64 = demands.iter().map(|it| it.size as u64 * live(it)).sum();
    if demands.iter().any(|it| it.size == 0) || blocks == 0 {
        return Err("it has no demand; say what is asked of it".to_owned());
    }
    // How many list heads there are depends on the memory: those of a larger memory do for a smaller one.
    let mut span = 2 * total;
    loop {
        let mut heads = heap.dedicated.len();
        for pool in heap.general.iter() {
            let mut index = AnyIndex::new(pool.index, pool.limits);
            let own = Index::<Ledger<'_, ByHandle>>::heads(&mut index, span as usize, shape);
            heads += own.ok_or("no index is laid out for so much memory")?;
        }
        let geometry = Geometry::of(&shape, heads);
        let one = |size: u64, live: u64, least: u64| {
            let demand = bounds::Demand::new(live, size, least);
            bounds::described(&heap, &geometry, &demand).map_err(|error| error.to_string())
        };
        let largest = demands.iter().map(|it| it.size as u64).max().unwrap_or(1);
        let whole = one(largest, total, 1)?.heap_bytes;
        let mut counted = Some(0);
        for demand in demands {
            let of_one = one(demand.size as u64, demand.size as u64, demand.size as u64)?;
            let any_fit = of_one.used.filter(|used| used.method == "any-fit");
            let ceiling = any_fit.map(|used| used.bytes - u128::from(geometry.control));
            let bytes = ceiling.map(|ceiling| refused_at(demand, demands, ceiling, &geometry));
            counted = counted
                .zip(bytes)
                .map(|(most, bytes): (u128, u128)| most.max(bytes));
        }
        let least = [whole, counted].into_iter().flatten().min();
        let least =
            least.ok_or_else(|| format!("no finite bound is known of {name} for this demand"))?;
        let bytes = u64::try_from(least).unwrap_or(u64::MAX);
        if bytes <= span || span >= 1 << 31 {
            return Ok(bytes.next_multiple_of(8));
        }
        span = bytes.max(2 * span);
    }
}

/// The memory that is surely too small for a refusal of one of `refused`'s blocks.
fn refused_at(refused: &Demand, demands: &[Demand], ceiling: u128, geometry: &Geometry) -> u128 {
    let remainder = geometry.minimum - geometry.granule;
    let block = |it: &Demand| {
        let size = (it.size as u64 + geometry.record).next_multiple_of(geometry.granule);
        u128::from(size.max(geometry.minimum) + remainder)
    };
    let occupied: u128 = demands.iter().map(|it| block(it) * it.live as u128).sum();
    let holes: u128 = demands.iter().map(|it| it.live as u128).sum();
    let granule = u128::from(geometry.granule);
    occupied - block(refused) + holes * (ceiling - granule) + granule + u128::from(geometry.control)
}

/// Blocks of a demand that live at a time by its burst, rate and lifetime, if it declares them: a class of a contract.
fn contracted(demand: &Demand) -> Option<u64> {
    let class = Declared {
        largest: demand.size as u64,
        burst: demand.burst?,
        amount: demand.rate?,
        per: NonZeroU64::new(1_000_000)?,
        lifetime: Some(demand.lifetime?),
    };
    class.bound().and_then(|blocks| u64::try_from(blocks).ok())
}

pub(super) fn rows(system: &System, partitions: &[PartitionBound]) -> Vec<Row> {
    let mut rows = Vec::new();
    for (bound, partition) in partitions.iter().zip(&system.partitions) {
        let subject = format!("partition {}", partition.name);
        for demand in &partition.demands {
            if let Some(blocks) = contracted(demand) {
                let subject = format!("{subject}, {}", demand.what);
                let row = Row::most(
                    subject,
                    "blocks by rate and lifetime",
                    Unit::Items,
                    Some(blocks),
                    demand.live as u64,
                );
                rows.push(row.note("burst + rate x lifetime"));
            }
        }
        let bytes = bound.heap_bytes.as_ref();
        let row = Row::most(
            subject,
            "memory",
            Unit::Bytes,
            bytes.ok().copied(),
            partition.size as u64,
        );
        rows.push(row.note(match bytes {
            Ok(_) => format!(
                "{} live in at most {} blocks, {}",
                bound.live, bound.blocks, partition.heap
            ),
            Err(why) => why.clone(),
        }));
    }
    let all: u64 = system.partitions.iter().map(|it| it.size as u64).sum();
    let stacks = system.platform.cores as u64 * system.platform.stack as u64;
    let row = Row::most(
        "RAM".to_owned(),
        "partitions and stacks",
        Unit::Bytes,
        Some(all + stacks),
        system.platform.memory as u64,
    );
    rows.push(row.note("code and static data beside them are the linker's to place"));
    rows
}

#[cfg(test)]
mod tests {
    use metes_heap::{Heap, Record};
    use metes_random::Random;
    use proptest::prelude::*;

    use super::*;

    fn demand(size: usize, live: usize) -> Demand {
        Demand {
            what: String::new(),
            size,
            live,
            burst: None,
            rate: None,
            lifetime: None,
        }
    }

    /// Requests within the demands, as hostile as drawing makes them: full, then half of it freed, in turn.
    fn refuses(name: &str, demands: &[Demand], bytes: usize, seed: u64) -> Option<usize> {
        let pool = metes_config::spec(name)
            .unwrap()
            .heap
            .general
            .iter()
            .next()
            .unwrap();
        let mut records = vec![Record::SPARE; bytes / 16 + 400];
        let store = Ledger::new(&mut records, ByHandle, store::Geometry::tagged(WORD));
        let mut heap = Heap::new(AnyIndex::new(pool.index, pool.limits), store);
        heap.add_region(bytes).unwrap();
        let mut random = Random::new(seed);
        let mut held: Vec<Vec<_>> = vec![Vec::new(); demands.len()];
        for step in 0..600 {
            let of = random.below(demands.len() as u64) as usize;
            let free = if step / 60 % 2 == 0 {
                random.below(8) == 0
            } else {
                random.below(8) < 5
            };
            let (demand, held) = (&demands[of], &mut held[of]);
            if free && !held.is_empty() {
                let place = held.swap_remove(random.below(held.len() as u64) as usize);
                heap.release_place(place).unwrap();
            } else if held.len() < demand.live {
                let largest = demand.size as u64;
                let size = match random.below(4) {
                    0 => largest,
                    1 => 1 + random.below(largest.min(16)),
                    2 => (largest * 2 / 3).max(1),
                    _ => 1 + random.below(largest),
                };
                let Some(place) = heap.allocate(size as usize, 8) else {
                    return Some(step);
                };
                held.push(place);
            }
        }
        None
    }

    const HEAPS: [&str; 6] = [
        "tlsf:second_level=8",
        "tlsf:second_level=32",
        "half-fit",
        "first-fit",
        "best-fit",
        "segregated-fit",
    ];

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

        #[test]
        fn nothing_within_the_demands_is_refused(
            demands in prop::collection::vec((1usize..1500, 1usize..24), 1..4),
            heap in 0..HEAPS.len(),
            seed in any::<u64>(),
        ) {
            let demands: Vec<_> = demands.into_iter().map(|(size, live)| demand(size, live)).collect();
            let bytes = heap_bytes(HEAPS[heap], &demands).unwrap();
            let refused = refuses(HEAPS[heap], &demands, bytes as usize, seed);
            prop_assert_eq!(refused, None, "{} in {} bytes", HEAPS[heap], bytes);
        }
    }

    #[test]
    fn much_less_is_refused() {
        let demands = [demand(1024, 40)];
        let bytes = heap_bytes("tlsf:second_level=8", &demands).unwrap();
        assert!((41_000..90_000).contains(&bytes), "{bytes}");
        assert!((0..20).any(|seed| {
            refuses(
                "tlsf:second_level=8",
                &demands,
                bytes as usize * 2 / 5,
                seed,
            )
            .is_some()
        }));
    }

    #[test]
    fn heaps_without_bound_are_told() {
        let of = |name: &str, demands: &[Demand]| heap_bytes(name, demands).unwrap_err();
        assert!(of("exact-fit", &[demand(64, 4)]).contains("no finite bound"));
        assert!(of("tlsf", &[]).contains("no demand"));
        assert!(of("tlsf", &[demand(0, 4)]).contains("no demand"));
        assert!(of("nonsense", &[demand(64, 4)]).contains("nonsense"));
    }
}
