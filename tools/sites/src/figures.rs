//! What was asked of the heap from each site.
//!
//! A block belongs to the site that gave it its present size: that of its allocation, or of its last resize. Its
//! lifetime counts where it was allocated.
//!
//! *Invariant:* over all sites, allocations and resizes are those of the trace, live bytes those at its peak, leaked
//! bytes those live at its end.

use std::collections::HashMap;

use metes_trace::{Op, Trace};
use serde::Serialize;

/// How long blocks of a site lived that were freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Lifetime {
    /// Of half of them no longer than this.
    pub median: u64,
    /// The longest.
    pub most: u64,
}

/// Figures of a site. Bytes are requested bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Figures {
    /// Blocks that came into being.
    pub allocations: u64,
    /// Blocks that got another size.
    pub resizes: u64,
    /// Bytes asked for, by both.
    pub bytes: u64,
    /// Blocks that were freed by the thread that allocated them before it asked for anything else.
    pub temporary: u64,
    /// Blocks live at the peak.
    pub peak_blocks: u64,
    /// Their bytes.
    pub peak_bytes: u64,
    /// Blocks that were never freed.
    pub leaked_blocks: u64,
    /// Their bytes.
    pub leaked_bytes: u64,
    /// Of those that were freed; none if none was.
    pub lifetime: Option<Lifetime>,
    /// Bytes that a heap's blocks take beyond those requested, at the peak; none if no heap was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waste: Option<u64>,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sites {
    /// By site; the first is of requests whose stack is not known.
    pub figures: Vec<Figures>,
    /// Index of the event after which most bytes were live.
    pub peak_event: usize,
    /// Bytes live then.
    pub peak_live: u64,
    /// Bytes live after the last event.
    pub leaked: u64,
    /// Lifetimes are nanoseconds; else they are events.
    pub timed: bool,
}

/// A block, while it is live.
#[derive(Clone, Copy)]
struct Block {
    /// Who allocated it, and who gave it its size.
    from: u32,
    owner: u32,
    size: u64,
    born: u64,
}

impl Sites {
    /// The figures of a trace. O(events log events).
    #[must_use]
    pub fn of(trace: &Trace) -> Sites {
        let timed = trace.provenance.timed;
        let mut sites = Sites {
            figures: vec![Figures::default(); trace.stacks.len() + 1],
            peak_event: 0,
            peak_live: 0,
            leaked: 0,
            timed,
        };
        (sites.peak_event, sites.peak_live) = peak(trace);
        let mut live: Vec<Option<Block>> = Vec::with_capacity(trace.block_count());
        let mut lifetimes: Vec<(u32, u64)> = Vec::new();
        // The last request of each thread, where that is an allocation: the block.
        let mut last: HashMap<u32, u64> = HashMap::new();
        for (index, event) in trace.iter().enumerate() {
            let now = if timed { event.time_ns } else { index as u64 };
            let site = match trace.stacks.stack(event.site) {
                Some(_) => event.site as u32,
                None => 0,
            };
            let figures = &mut sites.figures[site as usize];
            match event.op {
                Op::Alloc => {
                    figures.allocations += 1;
                    figures.bytes = figures.bytes.saturating_add(event.size);
                    last.insert(event.thread, event.block);
                    live.push(Some(Block {
                        from: site,
                        owner: site,
                        size: event.size,
                        born: now,
                    }));
                }
                Op::Resize => {
                    figures.resizes += 1;
                    figures.bytes = figures.bytes.saturating_add(event.size);
                    last.remove(&event.thread);
                    if let Some(Some(block)) = live.get_mut(event.block as usize) {
                        block.owner = site;
                        block.size = event.size;
                    }
                }
                Op::Free => {
                    if let Some(block) = live.get_mut(event.block as usize).and_then(Option::take) {
                        lifetimes.push((block.from, now.saturating_sub(block.born)));
                        let at_once = last.get(&event.thread) == Some(&event.block);
                        sites.figures[block.from as usize].temporary += u64::from(at_once);
                    }
                }
                Op::Access => {}
            }
            if index == sites.peak_event {
                sites.hold(&live, |figures, size| {
                    figures.peak_blocks += 1;
                    figures.peak_bytes = figures.peak_bytes.saturating_add(size);
                });
            }
        }
        let mut leaked = 0u64;
        sites.hold(&live, |figures, size| {
            figures.leaked_blocks += 1;
            figures.leaked_bytes = figures.leaked_bytes.saturating_add(size);
            leaked = leaked.saturating_add(size);
        });
        sites.leaked = leaked;
        lifetimes.sort_unstable();
        for own in lifetimes.chunk_by(|one, other| one.0 == other.0) {
            let &[(site, _), ..] = own else { continue };
            sites.figures[site as usize].lifetime = Some(Lifetime {
                median: own[(own.len() - 1) / 2].1,
                most: own[own.len() - 1].1,
            });
        }
        sites
    }

    fn hold(&mut self, live: &[Option<Block>], mut held: impl FnMut(&mut Figures, u64)) {
        for block in live.iter().flatten() {
            held(&mut self.figures[block.owner as usize], block.size);
        }
    }

    /// The sites with something to show, the most of it first; the same every time.
    #[must_use]
    pub fn ordered(&self, by: impl Fn(&Figures) -> u64) -> Vec<usize> {
        let mut sites: Vec<usize> = (0..self.figures.len()).collect();
        sites.retain(|&site| by(&self.figures[site]) > 0);
        sites.sort_by_key(|&site| (std::cmp::Reverse(by(&self.figures[site])), site));
        sites
    }

    /// The sum of a figure over all sites.
    #[must_use]
    pub fn total(&self, by: impl Fn(&Figures) -> u64) -> u64 {
        self.figures.iter().map(by).fold(0, u64::saturating_add)
    }
}

/// The first event after which most bytes are live, and how many those are.
fn peak(trace: &Trace) -> (usize, u64) {
    let mut sizes: Vec<u64> = Vec::with_capacity(trace.block_count());
    let (mut live, mut at, mut most) = (0u64, 0, 0);
    for (index, event) in trace.iter().enumerate() {
        match event.op {
            Op::Alloc => {
                sizes.push(event.size);
                live = live.saturating_add(event.size);
            }
            Op::Resize | Op::Free => {
                let new = if event.op == Op::Free { 0 } else { event.size };
                if let Some(size) = sizes.get_mut(event.block as usize) {
                    live = live.saturating_sub(*size).saturating_add(new);
                    *size = new;
                }
            }
            Op::Access => {}
        }
        if live > most {
            (at, most) = (index, live);
        }
    }
    (at, most)
}

#[cfg(test)]
mod tests {
    use metes_trace::stacks::Ending;
    use metes_trace::{Provenance, StacksBuilder, TraceBuilder};
    use proptest::prelude::*;

    use super::*;

    fn trace(events: impl FnOnce(&mut TraceBuilder), sites: u64) -> Trace {
        let mut builder = TraceBuilder::new();
        events(&mut builder);
        let mut trace = builder.finish(Provenance {
            timed: true,
            ..Provenance::default()
        });
        let mut stacks = StacksBuilder::default();
        for site in 0..sites {
            stacks.stack(&[(None, site)], Ending::Whole);
        }
        trace.stacks = stacks.finish();
        trace
    }

    #[test]
    fn a_block_is_of_the_site_that_sized_it_last_and_lives_where_it_was_born() {
        let trace = trace(
            |builder| {
                let one = builder.alloc_at(1, 10, 0, 100, 16).unwrap();
                builder.resize_at(2, 20, 0, one, 300, 16).unwrap();
                let two = builder.alloc_at(1, 30, 0, 50, 16).unwrap();
                builder.free(40, 0, one).unwrap();
                builder.alloc_at(9, 50, 0, 7, 16).unwrap();
                builder.free(70, 0, two).unwrap();
            },
            2,
        );
        let sites = Sites::of(&trace);
        let [unknown, one, two] = &*sites.figures else {
            panic!("three sites")
        };
        assert_eq!((one.allocations, one.bytes, one.peak_bytes), (2, 150, 50));
        assert_eq!((two.resizes, two.bytes, two.peak_bytes), (1, 300, 300));
        assert_eq!((unknown.allocations, unknown.leaked_bytes), (1, 7));
        assert_eq!(
            (sites.peak_event, sites.peak_live, sites.leaked),
            (2, 350, 7)
        );
        let lifetime = Lifetime {
            median: 30,
            most: 40,
        };
        assert_eq!((one.lifetime, two.lifetime), (Some(lifetime), None));
        assert_eq!(sites.total(|figures| figures.temporary), 0);
        assert_eq!(sites.ordered(|figures| figures.bytes), [2, 1, 0]);
    }

    #[test]
    fn temporary_is_what_its_thread_frees_before_anything_else() {
        let trace = trace(
            |builder| {
                let one = builder.alloc_at(1, 1, 0, 8, 16).unwrap();
                // Another thread is no matter.
                let other = builder.alloc_at(2, 2, 1, 8, 16).unwrap();
                builder.free(3, 0, one).unwrap();
                // Freed by another thread, or after a resize, or later.
                builder.free(4, 0, other).unwrap();
                let resized = builder.alloc_at(2, 5, 0, 8, 16).unwrap();
                builder.resize_at(2, 6, 0, resized, 9, 16).unwrap();
                builder.free(7, 0, resized).unwrap();
                let late = builder.alloc_at(2, 8, 0, 8, 16).unwrap();
                let soon = builder.alloc_at(2, 9, 0, 8, 16).unwrap();
                builder.free(10, 0, soon).unwrap();
                builder.free(11, 0, late).unwrap();
            },
            2,
        );
        let figures = Sites::of(&trace).figures;
        assert_eq!((figures[1].temporary, figures[2].temporary), (1, 1));
    }

    proptest! {
        #[test]
        fn sums_over_sites_are_those_of_the_trace(
            steps in prop::collection::vec((0u8..3, 0u64..5, 0u64..1000, any::<prop::sample::Index>()), 1..200)
        ) {
            let trace = trace(
                |builder| {
                    let mut live = vec![builder.alloc(0, 0, 1, 16).unwrap()];
                    for (now, (what, site, size, pick)) in (1..).zip(&steps) {
                        let pick = pick.index(live.len().max(1));
                        match (what, live.get(pick).copied()) {
                            (1, Some(block)) => builder.resize_at(*site, now, 0, block, *size, 16).unwrap(),
                            (2, Some(block)) => {
                                builder.free(now, 0, block).unwrap();
                                live.swap_remove(pick);
                            }
                            _ => live.push(builder.alloc_at(*site, now, 0, *size, 16).unwrap()),
                        }
                    }
                },
                3,
            );
            let sites = Sites::of(&trace);
            let profile = metes_trace::profile(&trace);
            prop_assert_eq!(sites.peak_live, profile.peak_live);
            prop_assert_eq!(sites.total(|figures| figures.peak_bytes), profile.peak_live);
            prop_assert_eq!(sites.total(|figures| figures.leaked_bytes), sites.leaked);
            let count = |op| trace.ops().iter().filter(|&&own| own == op).count() as u64;
            prop_assert_eq!(sites.total(|figures| figures.allocations), count(Op::Alloc));
            prop_assert_eq!(sites.total(|figures| figures.resizes), count(Op::Resize));
            let leaked = count(Op::Alloc) - count(Op::Free);
            prop_assert_eq!(sites.total(|figures| figures.leaked_blocks), leaked);
        }
    }
}
