//! Proven bounds in time and space of every named heap.
//!
//! [`bound`] takes a heap, its block geometry and a demand (most live bytes M, largest request
//! n, smallest request l) and gives the heap size that provably suffices, with the formula, the
//! source and the place of the proof. Exact integer arithmetic; no allocation; no panic on any
//! input. Where two bounds hold the smaller one counts and both are reported.
//!
//! Invariant: a [`Candidate`] of standing [`Standing::Proved`] rests on a proof written out in
//! `docs/guarantees.md`; nothing weaker carries that standing.

mod any_fit;
mod block_table;
pub mod compact;
mod composite;
mod demand;
mod describe;
mod error;
mod first_fit;
mod fragmented;
mod heap;
#[cfg(test)]
mod lowest;
mod ordered;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod real_heaps;
mod storage;
#[cfg(test)]
mod tests;
mod text;

use any_fit::Ceiling;
pub use block_table::block_table;
pub use composite::{KeptList, PartBound, Pool, each_list, each_part};
use demand::Load;
pub use demand::{Demand, Geometry, Sizes};
pub use describe::{described, described_in};
pub use error::{BoundError, Quantity};
pub use fragmented::fragmented;
pub use heap::{BuddyChoice, ClassSearch, Coalescing, HeapKind, Limits, Order, Part, Splitting};
pub use text::Text;

pub use crate::complexity::{Time, Times};

/// How well a bound is founded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Proved in `docs/guarantees.md`.
    Proved,
    /// A published theorem, cited; its derivation was not repeated here.
    Published,
    /// Held in every small case searched exhaustively, not proved for this policy. Reported,
    /// never chosen.
    Conjectured,
}

impl Standing {
    /// The standing in one word.
    pub const fn name(self) -> &'static str {
        match self {
            Standing::Proved => "proved",
            Standing::Published => "published",
            Standing::Conjectured => "conjectured",
        }
    }
}

/// One bound on the heap size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Which bound: `any-fit`, `first-fit frontier`, `buddy frontier`, …
    pub method: &'static str,
    /// Bytes that suffice, control bytes included.
    pub bytes: u128,
    /// How well it is founded.
    pub standing: Standing,
    /// The formula with the numbers of this demand.
    pub formula: Text,
    /// Where the bound comes from.
    pub citation: &'static str,
    /// Where the proof is written out, or the checks are described.
    pub proof: &'static str,
}

const CANDIDATES: usize = 3;
/// Ending of the names of the bounds that hold without resizing in place.
const FRONTIER: &str = "frontier";
const WORN: &str = "no finite bound is proved: shrinking in place and alignments above the granule \
                    cut blocks that are never merged again (docs/guarantees.md#no-coalescing)";

/// The guarantee of a heap for a demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Time per operation.
    pub time: Times,
    /// Bytes of managed memory with which no sequence within the demand is refused; `None`
    /// where no finite size is known to suffice. A larger heap suffices as well.
    pub heap_bytes: Option<u128>,
    /// Bytes outside the managed memory: bitmaps and out-of-band records.
    pub outside_bytes: u128,
    /// The bound behind `heap_bytes`: formula, citation, proof. `None` for composites, whose
    /// parts each have their own, and where `heap_bytes` is `None`.
    pub used: Option<Candidate>,
    /// The bounds that were computed as well and are larger, or only conjectured.
    pub others: [Option<Candidate>; CANDIDATES],
    /// Robson's lower bound: no heap that never moves a block does with less.
    pub necessary_bytes: u128,
    /// Why there is no finite bound, or what the bound assumes.
    pub note: Option<&'static str>,
}

impl Bound {
    /// The formula in use, with numbers; the reason where there is none.
    pub fn formula(&self) -> Text {
        match (&self.used, self.note) {
            (Some(used), _) => used.formula,
            (None, Some(note)) => Text::format(format_args!("{note}")),
            (None, None) => Text::EMPTY,
        }
    }

    /// The source of the formula in use.
    pub fn citation(&self) -> &'static str {
        match (&self.used, self.heap_bytes) {
            (Some(used), _) => used.citation,
            (None, Some(_)) => {
                "the bounds of the pools added up (docs/guarantees.md#several-pools)"
            }
            (None, None) => "docs/guarantees.md#not-guaranteed",
        }
    }
}

/// The guarantee of `heap` with blocks laid out by `geometry` for `demand`.
///
/// Time: O(1) for any-fit bounds without classes, otherwise at most the square of the number of
/// size classes (below 2^20 steps).
///
/// # Errors
/// [`BoundError`] where the input contradicts itself or the bound exceeds 128 bits.
pub fn bound(
    heap: &HeapKind<'_>,
    geometry: &Geometry,
    demand: &Demand,
) -> Result<Bound, BoundError> {
    let load = Load::new(geometry, demand)?;
    let mut bound = Bound {
        time: heap.times()?,
        heap_bytes: None,
        outside_bytes: 0,
        used: None,
        others: [None; CANDIDATES],
        necessary_bytes: necessary(geometry, demand)?,
        note: None,
    };
    match *heap {
        HeapKind::Composite(parts) => composite(&mut bound, parts, demand)?,
        HeapKind::ObjectPool { slot, slab } => {
            if slot < demand.largest {
                return Err(BoundError::SlotTooSmall {
                    slot,
                    largest: demand.largest,
                });
            }
            let Some(bytes) = storage::pool(&load, slot.into(), slab.into())? else {
                return Err(BoundError::Parameter {
                    name: "slab",
                    value: slab,
                    allowed: "at least the slot, or 0 for none",
                });
            };
            bound.outside_bytes = (bytes / u128::from(slot)).div_ceil(8);
            bound.offer(&load, pool_candidate(&load, slot, slab, bytes));
        }
        HeapKind::Kingsley { .. } | HeapKind::FixedSizes { .. }
            if demand.resized_in_place || load.pad > 0 =>
        {
            bound.note = Some(WORN);
        }
        HeapKind::Kingsley { page } => {
            let load = load.rounded_to_power(true, demand.alignment);
            let bytes = storage::bytes(&load, Ceiling::Exact, page.into())?;
            bound.offer(&load, storage_candidate(&load, bytes, "powers of two"));
        }
        HeapKind::FixedSizes { .. } => {
            let bytes = storage::bytes(&load, heap.ceiling()?, 0)?;
            bound.offer(&load, storage_candidate(&load, bytes, "sizes of the table"));
        }
        HeapKind::Buddy { choice, outside } => {
            if load.pad > 0 {
                bound.note = Some("serves alignments up to that of the first block only");
            }
            let load = load.rounded_to_power(true, demand.alignment);
            buddy(&mut bound, &load, choice, demand.resized_in_place)?;
            if let (Some(bytes), Some(record)) = (bound.heap_bytes, outside) {
                let chunks = bytes / load.gross(load.smallest);
                bound.outside_bytes = demand::product(chunks, record.into())?;
            }
        }
        HeapKind::HalfFit {
            power_of_two: true, ..
        } => {
            let load = load.rounded_to_power(false, demand.alignment);
            any_fit_heap(&mut bound, heap, &load, Ceiling::Exact)?;
            if load.pad == 0 {
                let bytes = ordered::herter_half_fit(&load)?;
                bound.offer(&load, herter_candidate(&load, bytes));
            }
        }
        _ => searched(&mut bound, heap, load, demand)?,
    }
    if let Some(used) = bound.used
        && used.method.ends_with(FRONTIER)
    {
        bound.note = Some(match heap {
            HeapKind::Buddy { .. } => {
                "holds for allocating, freeing and resizing by moving; a program that resizes in \
                 place needs the any-fit bound"
            }
            _ if demand.resized_in_place => {
                "M counts each live block at the largest request that it has had"
            }
            _ => {
                "holds for allocating, freeing and resizing by moving; a program that resizes in \
                 place needs the any-fit bound, or M counted at each block's largest request"
            }
        });
    }
    Ok(bound)
}

impl Bound {
    /// Takes a bound into account: the least one that is proved or published is used.
    fn offer(&mut self, load: &Load, mut candidate: Candidate) {
        candidate.bytes += load.control;
        let better = candidate.standing != Standing::Conjectured
            && self.used.is_none_or(|used| candidate.bytes < used.bytes);
        let other = if better {
            self.heap_bytes = Some(candidate.bytes);
            self.used.replace(candidate)
        } else {
            Some(candidate)
        };
        if let (Some(other), Some(place)) =
            (other, self.others.iter_mut().find(|other| other.is_none()))
        {
            *place = Some(other);
        }
    }
}

/// Robson's lower bound for a demand: no heap that never moves a block does with less. O(log n).
///
/// # Errors
/// [`BoundError`] where the demand contradicts itself.
pub fn necessary(geometry: &Geometry, demand: &Demand) -> Result<u128, BoundError> {
    ordered::necessary(&Load::new(geometry, demand)?)
}

/// Heaps that search holes: fits, segregated fit, half-fit, TLSF.
fn searched(
    bound: &mut Bound,
    heap: &HeapKind<'_>,
    mut load: Load,
    demand: &Demand,
) -> Result<(), BoundError> {
    let resized = demand.resized_in_place;
    let limits = heap.limits();
    if limits.coalescing == Coalescing::Never {
        if resized || load.pad > 0 {
            bound.note = Some(WORN);
            return Ok(());
        }
        return uncoalesced(bound, heap, &load, limits);
    }
    if let Some(reason) = limits.refuses() {
        bound.note = Some(reason);
        return Ok(());
    }
    if matches!(heap, HeapKind::ExactFit { .. }) {
        bound.note = Some(
            "no finite bound holds in general: exact fit passes over every hole of another size, \
             and merged holes have other sizes (docs/guarantees.md#limited-search)",
        );
        return Ok(());
    }
    if let Splitting::Above(remainder) = limits.splitting {
        let remainder = u128::from(remainder).next_multiple_of(load.granule);
        load.slack = remainder.max(load.minimum) - load.granule;
    }
    let ceiling = heap.ceiling()?;
    any_fit_heap(bound, heap, &load, ceiling)?;
    let lowest = matches!(
        heap,
        HeapKind::FirstFitByClass { .. }
            | HeapKind::FirstFit {
                order: Order::Address,
                ..
            }
    );
    if lowest
        && (!resized || demand.live_at_largest)
        && let Some(bytes) = first_fit::first_fit(&load, ceiling, resized)
    {
        bound.offer(&load, first_fit_candidate(&load, ceiling, bytes));
    }
    if let (Coalescing::UpTo(limit), Some(bytes)) = (limits.coalescing, bound.heap_bytes)
        && u128::from(limit) < bytes
    {
        bound.used = None;
        bound.heap_bytes = None;
        bound.others = [None; CANDIDATES];
        bound.note = Some(
            "no finite bound is proved: coalescing stops below the size that would suffice, \
             so neighbouring holes may stay apart",
        );
    }
    Ok(())
}

/// Heaps that keep freed blocks as they are.
fn uncoalesced(
    bound: &mut Bound,
    heap: &HeapKind<'_>,
    load: &Load,
    limits: &Limits,
) -> Result<(), BoundError> {
    let exact = matches!(heap, HeapKind::ExactFit { .. });
    match limits.splitting {
        Splitting::Always if exact => {
            let load = Load { slack: 0, ..*load };
            let bytes = storage::bytes(&load, Ceiling::Exact, 0)?;
            bound.offer(&load, storage_candidate(&load, bytes, "block sizes"));
        }
        Splitting::Never => {
            bound.note = Some(
                "no finite bound is proved: without splitting a small request may keep a block \
                 of any size busy",
            );
        }
        _ => {
            bound.note = Some(
                "no finite bound is proved: blocks that are split and never merged again wear \
                 down to the smallest size (docs/guarantees.md#no-coalescing)",
            );
        }
    }
    Ok(())
}

fn any_fit_heap(
    bound: &mut Bound,
    heap: &HeapKind<'_>,
    load: &Load,
    ceiling: Ceiling,
) -> Result<(), BoundError> {
    let bytes = any_fit::bytes(load, ceiling)?;
    let search = match (heap, ceiling) {
        (_, Ceiling::Table(_)) => {
            Text::format(format_args!("s' = s rounded up to a size of the table"))
        }
        (_, Ceiling::Exact) => Text::format(format_args!("s' = s")),
        (_, Ceiling::Classes { per_doubling } | Ceiling::Rounded { per_doubling }) => Text::format(
            format_args!("s' = s rounded up to a class, {per_doubling} per doubling"),
        ),
    };
    let occupied = match load.rounding {
        demand::Rounding::Granule => Text::format(format_args!("w = {}", load.waste())),
        demand::Rounding::PowerOfTwo => Text::format(format_args!("blocks powers of two")),
    };
    bound.offer(
        load,
        Candidate {
            method: "any-fit",
            bytes,
            standing: Standing::Proved,
            formula: Text::format(format_args!(
                "max over s <= n of (M-s)(1 + (s'-g+w)/l) + s', M = {}, n = {}, l = {}, g = {}, \
                 record = {}, {occupied}, {search}",
                load.live, load.largest, load.smallest, load.granule, load.record,
            )),
            citation: "Metes, any-fit bound of coalescing heaps",
            proof: "docs/guarantees.md#any-fit",
        },
    );
    Ok(())
}

fn buddy(
    bound: &mut Bound,
    load: &Load,
    choice: BuddyChoice,
    resized_in_place: bool,
) -> Result<(), BoundError> {
    let numbers = Text::format(format_args!(
        "M' = {}, smallest block {}, largest block {}",
        load.occupied(load.live)?,
        load.gross(load.smallest),
        load.gross(load.top_request())
    ));
    bound.offer(
        load,
        Candidate {
            method: "buddy any-fit",
            bytes: ordered::any_buddy(load)?,
            standing: Standing::Proved,
            formula: Text::format(format_args!(
                "max over orders of s (floor((M-r) c) + 1), c = chunks a live byte keeps busy, {numbers}"
            )),
            citation: "Metes, any-fit bound of aligned buddies",
            proof: "docs/guarantees.md#buddy-any",
        },
    );
    if choice == BuddyChoice::LowestAddress && !resized_in_place {
        bound.offer(
            load,
            Candidate {
                method: "buddy frontier",
                bytes: ordered::lowest_buddy(load)?,
                standing: Standing::Proved,
                formula: Text::format(format_args!(
                    "G(i) = 2^i floor((M' + sum over j<i of 2^j ceil(G(j)/2^i)) / 2^i), {numbers}"
                )),
                citation: "Metes, frontier bound; attains the optimum of Robson, JACM 18(3) 1971 \
                           and JACM 21(3) 1974, where M is a multiple of n",
                proof: "docs/guarantees.md#buddy",
            },
        );
    }
    if choice == BuddyChoice::SmallestThenLowest && !resized_in_place {
        bound.offer(
            load,
            Candidate {
                method: "Robson",
                bytes: ordered::robson_buddy(load)?,
                standing: Standing::Conjectured,
                formula: Text::format(format_args!(
                    "M'(1 + log2(n)/2) - n + 1 rounded up to n, {numbers}"
                )),
                citation: "Robson, JACM 18(3) 1971; JACM 21(3) 1974, 491-499",
                proof: "docs/guarantees.md#buddy-smallest",
            },
        );
    }
    Ok(())
}

fn first_fit_candidate(load: &Load, ceiling: Ceiling, bytes: u128) -> Candidate {
    let search = match ceiling {
        Ceiling::Rounded { per_doubling } => Text::format(format_args!(
            "s' = s rounded up, {per_doubling} per doubling"
        )),
        _ => Text::format(format_args!("s' = s")),
    };
    Candidate {
        method: "first-fit frontier",
        bytes,
        standing: Standing::Proved,
        formula: Text::format(format_args!(
            "G(m) = s + (M-r + sum over j<m of (x(j+1)-x(j)) G(j)) / x(m), \
             x(j) = r(j)/(s(j)+h+slack), h = s'(m)-g, M = {}, n = {}, l = {}, g = {}, \
             record = {}, slack = {}, {search}",
            load.live, load.largest, load.smallest, load.granule, load.record, load.slack,
        )),
        citation: "Metes, frontier bound; compare Robson, Computer Journal 20(3) 1977, 242-244, \
                   and Knuth, TAOCP 1, exercise 2.5-43: M H_n / ln 2",
        proof: "docs/guarantees.md#first-fit",
    }
}

fn herter_candidate(load: &Load, bytes: u128) -> Candidate {
    Candidate {
        method: "Herter",
        bytes,
        standing: Standing::Published,
        formula: Text::format(format_args!(
            "M'(1 + ceil(log2 n')), M' = sum of power-of-two blocks, M = {}, n' = {}, l' = {}",
            load.live,
            load.gross(load.top_request()),
            load.gross(load.smallest)
        )),
        citation: "Herter, dissertation 2014, as quoted by the o1heap documentation: \
                   2M(1 + ceil(log2 n)); derivation not repeated here",
        proof: "docs/guarantees.md#half-fit",
    }
}

fn storage_candidate(load: &Load, bytes: u128, blocks: &'static str) -> Candidate {
    Candidate {
        method: "segregated storage",
        bytes,
        standing: Standing::Proved,
        formula: Text::format(format_args!(
            "sum over classes of block * floor(M / smallest request of the class), blocks are \
             {blocks}, M = {}, n = {}, l = {}, record = {}",
            load.live, load.largest, load.smallest, load.record
        )),
        citation: "Metes, storage bound; attained by filling one class after another",
        proof: "docs/guarantees.md#storage",
    }
}

fn pool_candidate(load: &Load, slot: u64, slab: u64, bytes: u128) -> Candidate {
    Candidate {
        method: "object pool",
        bytes,
        standing: Standing::Proved,
        formula: Text::format(format_args!(
            "slot * floor(M / l), in whole slabs, slot = {slot}, slab = {slab}, M = {}, l = {}",
            load.live, load.smallest
        )),
        citation: "Metes, equal slots never fragment",
        proof: "docs/guarantees.md#pool",
    }
}

/// Sum over the pools, each with the requests that are routed to it.
fn composite(bound: &mut Bound, parts: &[Part<'_>], demand: &Demand) -> Result<(), BoundError> {
    let mut total = Some(0u128);
    let mut next = demand.smallest;
    for part in parts {
        let Some(routed) = part.routed(demand) else {
            continue;
        };
        if routed.smallest != next {
            return Err(BoundError::Routing {
                from: next.min(routed.smallest),
            });
        }
        next = routed.largest.saturating_add(1);
        let inner = self::bound(&part.heap, &part.geometry, &routed)?;
        let sum = |total: u128, bytes: u128| total.checked_add(bytes).ok_or(BoundError::Overflow);
        total = match (total, inner.heap_bytes) {
            (Some(total), Some(bytes)) => Some(sum(total, bytes)?),
            _ => None,
        };
        bound.outside_bytes = sum(bound.outside_bytes, inner.outside_bytes)?;
        if inner.heap_bytes.is_none() {
            bound.note = inner.note;
        }
    }
    if next <= demand.largest {
        return Err(BoundError::Routing { from: next });
    }
    bound.heap_bytes = total;
    if total.is_some() {
        bound.note = Some("sum over the pools of each pool's bound for the requests routed to it");
    }
    Ok(())
}
