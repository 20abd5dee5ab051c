//! All that is guaranteed of a heap for a demand: of one of pointers or of handles, with what its mapped
//! blocks add and what compact-fit promises in the terms of its slides.
//!
//! Invariant: the bound has mapped blocks in it wherever the demand may have some.

use metes_heap::bounds::compact::CompactBound;
use metes_heap::bounds::{self, Bound, Demand, KeptList, PartBound, Pool};
use metes_heap::compact::complexity::Configuration;
use metes_heap::compact::{MOVES, Options};
use metes_heap::complexity::Predictability;
use metes_heap::description::ObjectPoolKind;
use metes_heap::mapped;

use crate::{Config, GuaranteeError, HandleHeap, guarantee};

/// A heap of pointers or of handles.
#[derive(Clone, Debug)]
pub enum AnyHeap {
    /// One that gives pointers.
    Pointers(Box<Config>),
    /// One whose blocks move or lie in pieces.
    Handles(HandleHeap),
}

/// What a heap guarantees for a demand.
#[derive(Clone, Debug)]
pub struct Guaranteed {
    /// The heap in words.
    pub name: String,
    /// What programs may ask for.
    pub demand: Demand,
    /// Memory and time that suffice, mapped blocks included.
    pub bound: Bound,
    /// What fragmentation depends on.
    pub fragmentation: Predictability,
    /// Of compact-fit whose blocks move.
    pub compact: Option<CompactGuarantee>,
    /// Of a heap that may map blocks of the demand.
    pub mapped: Option<MappedPart>,
    /// Of a heap of several pools: what each that the demand reaches adds, by rising size.
    pub parts: Vec<NamedPart>,
    /// What each dedicated list adds to the live bytes of the pools behind it, by rising size.
    pub lists: Vec<KeptList>,
}

/// What a pool adds to the bound of a heap.
#[derive(Clone, Debug)]
pub struct NamedPart {
    /// The pool in words.
    pub name: String,
    /// What it adds.
    pub part: PartBound,
}

/// What blocks that are mappings of their own add to a bound, which has them then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedPart {
    /// From so many bytes on.
    pub from: usize,
    /// The bound on the pools alone.
    pub pools: Option<u128>,
}

/// What is known of compact-fit in the terms of its slides.
#[derive(Clone, Debug)]
pub struct CompactGuarantee {
    /// Its parameters.
    pub options: Options,
    /// Its bound.
    pub bound: CompactBound,
}

impl Guaranteed {
    /// What a heap guarantees in 64-bit memory. As [`guarantee`] in time.
    ///
    /// # Errors
    /// [`GuaranteeError`] where there is none to compute.
    pub fn of(heap: &AnyHeap, demand: Demand) -> Result<Self, GuaranteeError> {
        match heap {
            AnyHeap::Pointers(config) => Self::of_pointers(config, demand),
            AnyHeap::Handles(heap) => Ok(Guaranteed {
                name: heap.spec(),
                demand,
                bound: of_handles(heap, &demand)?,
                fragmentation: heap.declares().fragmentation,
                compact: None,
                mapped: None,
                parts: Vec::new(),
                lists: Vec::new(),
            }),
        }
    }

    fn of_pointers(config: &Config, demand: Demand) -> Result<Self, GuaranteeError> {
        let mut bound = guarantee(config, &demand)?;
        let compact = config.compact_fit();
        let compact = compact.map(|options| CompactGuarantee::new(options, &demand));
        Ok(Guaranteed {
            name: config.name(),
            demand,
            fragmentation: config.declares().fragmentation,
            compact: compact.transpose()?,
            mapped: MappedPart::add(config, &demand, &mut bound),
            parts: NamedPart::of(config, &demand)?,
            lists: crate::guarantee::lists(config, &demand)?,
            bound,
        })
    }

    /// Whether some memory suffices.
    pub fn holds(&self) -> bool {
        self.bound.heap_bytes.is_some()
    }
}

impl NamedPart {
    fn of(config: &Config, demand: &Demand) -> Result<Vec<Self>, GuaranteeError> {
        let named = |part: PartBound| {
            let heap = match part.pool {
                Pool::Objects(pool) => return Self::objects(&pool, part),
                Pool::General(pool) => crate::spec::of(pool.index, pool.limits),
            };
            NamedPart {
                name: Config::of(heap).name(),
                part,
            }
        };
        let parts = crate::guarantee::parts(config, demand)?;
        Ok(parts.into_iter().map(named).collect())
    }

    fn objects(pool: &ObjectPoolKind, part: PartBound) -> Self {
        NamedPart {
            name: format!("objects {}", pool.size),
            part,
        }
    }
}

impl MappedPart {
    /// Why what mapped blocks add is enough.
    pub const PROOF: &str = "a mapped block has a quarter of the threshold at least, so at most k = M/(t/4) are mapped, and \
         less than a page each is beside their bytes; with the pools, a table of 2k entries and 1/32 \
         for pages that are kept";

    /// Of a heap that may have mapped blocks where requests are as large as the demand's largest;
    /// adds them to the bound.
    fn add(config: &Config, demand: &Demand, bound: &mut Bound) -> Option<Self> {
        let from = config.arena.mapped?;
        if demand.largest < from as u64 {
            return None;
        }
        let pools = bound.heap_bytes;
        bound.heap_bytes = pools.map(|pools| mapped::most(from, pools, demand.live));
        Some(MappedPart { from, pools })
    }
}

impl CompactGuarantee {
    fn new(options: Options, demand: &Demand) -> Result<Self, GuaranteeError> {
        let bound = bounds::compact::compact_fit(&options, MOVES as u64, demand);
        let bound = bound.map_err(GuaranteeError::Bound)?;
        Ok(CompactGuarantee { options, bound })
    }

    /// One heap for all threads, and one for each.
    pub fn configurations(&self) -> [Configuration; 2] {
        [true, false].map(|shared| Configuration::of(&self.options, shared))
    }

    /// Bytes that nobody can interrupt: min(β, ι) of the largest class in reach.
    pub fn latency_bytes(&self) -> Option<u128> {
        let increment = self.options.increment;
        let increment = increment.map_or(u128::MAX, |bytes| bytes as u128);
        let moves = self.bound.size_class_bytes.is_some();
        moves.then(|| self.bound.page_block.min(increment))
    }
}

/// All that suffices for a heap in 64-bit memory, what lies outside its pools and mapped blocks included;
/// `None` where no finite size is known to. As [`guarantee`] in time.
///
/// # Errors
/// As [`guarantee`].
pub fn suffices(config: &Config, demand: &Demand) -> Result<Option<u128>, GuaranteeError> {
    let mut bound = guarantee(config, demand)?;
    let _ = MappedPart::add(config, demand, &mut bound);
    let outside = bound.outside_bytes;
    Ok(bound.heap_bytes.map(|bytes| bytes.saturating_add(outside)))
}

/// The guarantee of a heap of handles.
fn of_handles(heap: &HandleHeap, demand: &Demand) -> Result<Bound, GuaranteeError> {
    match heap {
        HandleHeap::Fragmented(options) => bounds::fragmented(options, demand),
        HandleHeap::BlockTable(options) => bounds::block_table(options, MOVES as u64, demand),
    }
    .map_err(GuaranteeError::Bound)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(spec: &str, demand: Demand) -> Guaranteed {
        let heap = match crate::handle_heap(spec) {
            Some(heap) => AnyHeap::Handles(heap.unwrap()),
            None => AnyHeap::Pointers(Box::new(crate::spec(spec).unwrap())),
        };
        Guaranteed::of(&heap, demand).unwrap()
    }

    #[test]
    fn mapped_blocks_are_in_the_bound_where_the_demand_may_have_some() {
        let small = Demand::new(1 << 20, 1 << 10, 16);
        let large = Demand::new(1 << 20, 1 << 16, 16);
        for (demand, mapped) in [(small, false), (large, true)] {
            let [without, with] = ["tlsf", "tlsf:mapped=64KiB"].map(|spec| of(spec, demand));
            assert_eq!(with.mapped.is_some(), mapped);
            let [without, with] = [without, with].map(|own| own.bound.heap_bytes.unwrap());
            assert_eq!(with > without, mapped);
        }
    }

    #[test]
    fn nothing_is_promised_beyond_what_a_tree_is_laid_out_for() {
        let demand = |live| Demand::new(live, 1 << 12, 64);
        let holds = |spec, live| of(spec, demand(live)).holds();
        assert!(holds("first-fit:search=tree", 1 << 20));
        assert!(!holds("first-fit:search=tree,span=64KiB", 1 << 20));
        // Nothing said: 256 MiB.
        assert!(!holds("first-fit:search=tree", 1 << 30));
        assert!(holds("first-fit:search=tree,span=16GiB", 1 << 30));
    }

    #[test]
    fn compact_fit_tells_what_cannot_be_interrupted() {
        let demand = Demand::new(1 << 20, 1 << 10, 16);
        assert!(of("tlsf", demand).compact.is_none());
        let compact = of("compact-fit:kappa=1", demand).compact.unwrap();
        let whole = compact.latency_bytes().unwrap();
        let by_increments = of("compact-fit:kappa=1,increment=64", demand);
        let latency = by_increments.compact.unwrap().latency_bytes();
        assert_eq!(latency, Some(64));
        assert!(whole > 64 && whole == compact.bound.page_block);
    }

    #[test]
    fn the_bound_of_several_pools_is_that_of_its_parts() {
        let demand = Demand::new(1 << 20, 4096, 8);
        let whole = of("objects 16/64 + best-fit up to 1KiB + tlsf", demand);
        let names: Vec<&str> = whole.parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names, ["objects 16", "objects 64", "best-fit", "tlsf"]);
        let parts = whole.parts.iter().map(|part| part.part.bound);
        let sum: u128 = parts.map(|bound| bound.heap_bytes.unwrap()).sum();
        assert_eq!(whole.bound.heap_bytes, Some(sum));
        let reached = |part: &NamedPart| (part.part.demand.smallest, part.part.demand.largest);
        let reached: Vec<_> = whole.parts.iter().map(reached).collect();
        assert_eq!(reached, [(8, 16), (17, 64), (65, 1024), (1025, 4096)]);
        // Lists that keep without limit leave their pool without a bound.
        let kept = of("objects 16 + dedicated 40 + tlsf", demand);
        let bounds: Vec<bool> = kept
            .parts
            .iter()
            .map(|own| own.part.bound.heap_bytes.is_some())
            .collect();
        assert_eq!((kept.holds(), bounds), (false, vec![true, false]));
        // Those with a limit have one, and say of what it is made.
        let kept = of("objects 16 + dedicated:limit=8 40/56 + tlsf", demand);
        assert!(kept.holds());
        let lists: Vec<_> = { kept.lists.iter() }
            .map(|own| (own.list.size, own.block, own.live))
            .collect();
        assert_eq!(lists, [(40, 48, Some(8 * 40)), (56, 64, Some(8 * 56))]);
        let behind = kept.parts[1].part.demand.live;
        assert_eq!(behind, (1 << 20) + 8 * 40 + 8 * 56);
        let alone = of("dedicated:limit=8 40 + tlsf", demand);
        let more = Demand::new((1 << 20) + 8 * 40, 4096, 8);
        let [alone, plain] = [alone, of("tlsf", more)].map(|own| own.bound.heap_bytes);
        // A list has a head in the memory, too.
        assert!(alone > plain && alone < plain.map(|bytes| bytes + 1024));
        // What no request reaches adds nothing, and what is of one pool has no parts.
        let small = of("objects 16/64 + tlsf", Demand::new(1 << 20, 16, 8));
        assert_eq!(small.parts.len(), 1);
        assert!(of("tlsf", demand).parts.is_empty());
    }

    #[test]
    fn heaps_of_handles_have_guarantees() {
        let guaranteed = of("fragmented", Demand::new(1 << 20, 1 << 10, 16));
        assert!(guaranteed.holds() && guaranteed.mapped.is_none());
    }
}
