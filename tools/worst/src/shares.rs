//! How memory is shared out among the pools of a heap.
//!
//! Invariant: a heap of one pool and no slabs has all of it.

use metes_config::{Config, GuaranteeError};
use metes_explore::Options;
use metes_heap::Description;
use metes_heap::bounds::Demand;
use metes_heap::description::DedicatedPool;

/// Bytes of each part of a heap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shares {
    /// Of the general pools, in order.
    general: Vec<u64>,
    /// Of all slabs.
    slabs: u64,
}

/// In how many equal parts the memory of a heap that runs is divided, a power of two: one for
/// each general pool, one for slabs and one for their records.
pub(crate) fn parts(heap: &Description) -> usize {
    let slabs = match heap.slabs().is_empty() {
        true => 0,
        false => 2,
    };
    (heap.general.len() + slabs).next_power_of_two()
}

impl Shares {
    /// Equal parts of `bytes`.
    pub(crate) fn equal(heap: &Description, bytes: u64) -> Self {
        let part = bytes / parts(heap) as u64;
        Shares {
            general: vec![part; heap.general.len()],
            slabs: match heap.slabs().is_empty() {
                true => 0,
                false => part,
            },
        }
    }

    /// Each part in the bytes of its own bound. `None` where one has no bound.
    ///
    /// # Errors
    /// [`GuaranteeError`] where the demand contradicts itself.
    pub(crate) fn bounded(
        config: &Config,
        demand: &Demand,
    ) -> Result<Option<Self>, GuaranteeError> {
        let heap = &config.heap;
        let of = |config: &Config, smallest: u64, largest: u64| {
            if smallest > largest {
                return Ok(Some(0));
            }
            let asked = Demand {
                smallest,
                largest,
                ..*demand
            };
            let bound = metes_config::guarantee(config, &asked)?.heap_bytes;
            Ok(bound.and_then(|bytes| u64::try_from(bytes).ok()))
        };
        let slots = match heap.slabs().is_empty() {
            true => 0,
            false => heap.slabs().largest() as u64,
        };
        let Some(slabs) = of(config, demand.smallest, demand.largest.min(slots))? else {
            return Ok(None);
        };
        let mut general = Vec::new();
        let mut next = demand.smallest.max(slots + 1);
        for pool in heap.general.iter() {
            let mut alone = config.clone();
            alone.heap = Description::of(pool.index);
            alone.heap.general =
                metes_heap::description::List::from_slice(&[metes_heap::description::General {
                    limits: pool.limits,
                    ..metes_heap::description::General::of(pool.index)
                }]);
            for list in heap.dedicated_of(&pool) {
                alone
                    .heap
                    .dedicated
                    .push(DedicatedPool { level: 0, ..list });
            }
            alone.levels.clear();
            let up_to = pool.up_to as u64;
            let Some(bytes) = of(&alone, next, demand.largest.min(up_to))? else {
                return Ok(None);
            };
            // A pool that nothing is asked of has its control structure still.
            general.push(if bytes == 0 { CONTROL } else { bytes });
            next = next.max(up_to.saturating_add(1));
        }
        Ok(Some(Shares { general, slabs }))
    }

    /// All parts together.
    pub(crate) fn total(&self) -> u64 {
        self.general.iter().sum::<u64>() + self.slabs
    }

    /// Fixes the parts of a replayed heap.
    pub(crate) fn fix(&self, heap: &Description, options: &mut Options) {
        for (fixed, bytes) in options.arena.fixed.iter_mut().zip(&self.general) {
            *fixed = usize::try_from(*bytes).ok();
        }
        let slabs = heap.slabs();
        if !slabs.is_empty() {
            // Fixed regions do not count against their level, so what it has is for slabs, and
            // for their records, which no bound counts.
            let count = usize::try_from(self.slabs).unwrap_or(usize::MAX) / slabs.bytes();
            let bytes = count.saturating_mul(slabs.bytes() + slabs.record_bytes());
            options.arena.levels[usize::from(slabs.level())] = Some(bytes);
        }
    }
}

/// Bytes in which the control structure of any index fits.
const CONTROL: u64 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::space::SpaceSearch;
    use crate::victim::Replayed;

    const POOLS: &str = r#"
        [[pool]]
        kind = "object"
        size = 64

        [[pool]]
        kind = "general"
        index = "kingsley"
        up_to = 500

        [[pool]]
        kind = "general"
        index = "tlsf"
    "#;

    /// Requests refused by a heap in these shares.
    fn refused(config: &Config, demand: Demand, shares: &Shares) -> u64 {
        let space = SpaceSearch {
            victim: &mut Replayed::with_shares(config, Some(shares.clone())),
            demand,
            bound: Some(shares.total()),
            operations: 400_000,
            seed: 1,
        }
        .run(&mut |_| ())
        .unwrap();
        assert!(space.operations_in_bound > 50_000);
        space.refused_in_bound
    }

    /// In its bytes no pool refuses; in less the one that has less does, also the slabs, whose
    /// requests the pools behind them would serve.
    #[test]
    fn each_pool_needs_the_bytes_of_its_bound() {
        let config = metes_config::parse(POOLS, "heap.toml").unwrap();
        let demand = Demand::new(40_000, 900, 16);
        let shares = Shares::bounded(&config, &demand).unwrap().unwrap();
        let whole = metes_config::guarantee(&config, &demand).unwrap();
        assert!(u128::from(shares.total()) <= whole.heap_bytes.unwrap());
        assert_eq!(refused(&config, demand, &shares), 0);
        let mut less = shares.clone();
        less.slabs = less.slabs * 9 / 10;
        assert!(refused(&config, demand, &less) > 0);
        let mut less = shares;
        less.general[0] /= 2;
        assert!(refused(&config, demand, &less) > 0);
    }
}
