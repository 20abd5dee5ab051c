//! Pools of graphs: blocks that captured work uses whenever the graph runs.
//!
//! A block that is freed while a graph is captured, or later, is kept for its pool: the next
//! capture into the pool may have it, as the framework runs the graphs of a pool one after
//! another, and nobody else before the pool is released.
//!
//! Invariant: a block is kept by the pool of its entry in the table, and in use of the heap.

use crate::failure::Failure;

/// The framework's name of a pool.
pub(crate) type Id = (u64, u64);

/// A pool of graphs.
#[derive(Debug)]
struct Pool {
    id: Id,
    /// Captures into it that were not released.
    graphs: usize,
    /// Blocks that no tensor has: bytes that they were requested with, and addresses.
    kept: Vec<(u64, u64)>,
}

/// The pools of a heap, by numbers that are not used again before they are released.
#[derive(Debug, Default)]
pub(crate) struct Graphs {
    pools: Vec<Option<Pool>>,
    /// The pool that is captured into.
    active: Option<u32>,
}

impl Graphs {
    fn number(&self, id: Id) -> Option<u32> {
        let same = |pool: &Option<Pool>| pool.as_ref().is_some_and(|pool| pool.id == id);
        self.pools.iter().position(same).map(|number| number as u32)
    }

    fn pool(&mut self, number: u32) -> Option<&mut Pool> {
        self.pools.get_mut(number as usize)?.as_mut()
    }

    /// What is captured from now on is of this pool.
    pub(crate) fn begin(&mut self, id: Id) -> Result<(), Failure> {
        if self.active.is_some() {
            return Err(Failure::invalid(
                "a pool is captured into already: a heap takes one capture at a time",
            ));
        }
        let number = self.number(id).unwrap_or_else(|| {
            // Numbers are not used again: blocks of a released pool may have them still.
            self.pools.push(Some(Pool {
                id,
                graphs: 0,
                kept: Vec::new(),
            }));
            self.pools.len() as u32 - 1
        });
        if let Some(pool) = self.pool(number) {
            pool.graphs += 1;
        }
        self.active = Some(number);
        Ok(())
    }

    pub(crate) fn end(&mut self, id: Id) {
        if self.active.is_some() && self.active == self.number(id) {
            self.active = None;
        }
    }

    /// One graph of the pool less; its number if that was the last.
    pub(crate) fn release(&mut self, id: Id) -> Option<u32> {
        let number = self.number(id)?;
        let pool = self.pool(number)?;
        pool.graphs = pool.graphs.saturating_sub(1);
        (pool.graphs == 0).then_some(number)
    }

    /// The last of a pool: the addresses that it kept. It is no pool any more.
    pub(crate) fn close(&mut self, number: u32) -> Vec<u64> {
        let pool = self.pools.get_mut(number as usize).and_then(Option::take);
        let kept = pool.map_or(Vec::new(), |pool| pool.kept);
        kept.into_iter().map(|(_, address)| address).collect()
    }

    /// The pool that is captured into.
    pub(crate) fn active(&self) -> Option<u32> {
        self.active
    }

    /// Whether a pool still keeps its blocks.
    pub(crate) fn keeps(&self, number: u32) -> bool {
        matches!(self.pools.get(number as usize), Some(Some(_)))
    }

    /// Blocks that are kept.
    pub(crate) fn kept(&self) -> usize {
        self.pools
            .iter()
            .flatten()
            .map(|pool| pool.kept.len())
            .sum()
    }

    pub(crate) fn keep(&mut self, number: u32, bytes: u64, address: u64) {
        if let Some(pool) = self.pool(number) {
            pool.kept.push((bytes, address));
        }
    }

    /// The smallest kept block for a request, unless an eighth of it and a MiB would be wasted.
    /// Linear in the kept blocks.
    pub(crate) fn take(&mut self, number: u32, bytes: u64, align: u64) -> Option<u64> {
        let pool = self.pool(number)?;
        let most = bytes.saturating_add(bytes / 8).saturating_add(1 << 20);
        let fits = |(size, address): (u64, u64)| {
            size >= bytes && size <= most && address.is_multiple_of(align)
        };
        let (place, _) = (pool.kept.iter().enumerate())
            .filter(|(_, block)| fits(**block))
            .min_by_key(|(_, (size, _))| *size)?;
        Some(pool.kept.swap_remove(place).1)
    }
}
