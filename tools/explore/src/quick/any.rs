//! `QuickAny`: the quickest index that decides as a description says, chosen at run time.
//!
//! Invariant: it decides and counts as [`AnyIndex`](metes_heap::index::any::AnyIndex) of
//! the same description does.

use metes_heap::description::IndexKind;
use metes_heap::index::any::AnyIndex;
use metes_heap::index::classes::ChosenClasses;
use metes_heap::index::list::ChosenList;
use metes_heap::index::{Index, Limits};
use metes_heap::store::ledger::LedgerBlock;
use metes_heap::{Geometry, Store};

use super::{MANY_PROBES, QuickBuddy, QuickClasses, QuickList};

/// One of the indexes.
#[derive(Debug)]
pub(crate) enum QuickAny {
    /// The library's own: nothing is walked, or what is walked is short.
    Own(AnyIndex<LedgerBlock>),
    List(QuickList),
    Classes(QuickClasses),
    LowestBuddy(QuickBuddy),
}

impl QuickAny {
    /// The index that `kind` describes.
    pub(crate) fn new(kind: IndexKind, limits: Limits) -> Self {
        match kind {
            IndexKind::List {
                fit,
                order,
                depth_percent,
                max_fit_percent,
                links,
            } => QuickAny::List(QuickList::with(ChosenList {
                fit,
                order,
                depth_percent,
                max_fit_percent,
                links,
                limits,
            })),
            IndexKind::Classes {
                second_level,
                probes,
            } if probes >= MANY_PROBES => QuickAny::Classes(QuickClasses::with(ChosenClasses {
                second_level_log2: second_level.trailing_zeros(),
                probes,
                limits,
            })),
            IndexKind::Buddy { lowest: true } => QuickAny::LowestBuddy(QuickBuddy::new()),
            kind => QuickAny::Own(AnyIndex::new(kind, limits)),
        }
    }
}

macro_rules! each {
    ($self:expr, $index:ident => $call:expr) => {
        match $self {
            QuickAny::Own($index) => $call,
            QuickAny::List($index) => $call,
            QuickAny::Classes($index) => $call,
            QuickAny::LowestBuddy($index) => $call,
        }
    };
}

// SAFETY: every call goes to one and the same index, which keeps the contract.
unsafe impl<S: Store<Block = LedgerBlock>> Index<S> for QuickAny {
    fn halves(&self) -> bool {
        each!(self, index => Index::<S>::halves(index))
    }

    fn reads_lists_first(&self) -> bool {
        each!(self, index => Index::<S>::reads_lists_first(index))
    }

    fn heads(&mut self, span: usize, geometry: Geometry) -> Option<usize> {
        each!(self, index => Index::<S>::heads(index, span, geometry))
    }

    fn attach(&mut self, store: &mut S, base: LedgerBlock) {
        each!(self, index => index.attach(store, base));
    }

    fn block_size(&self, need: usize) -> usize {
        each!(self, index => Index::<S>::block_size(index, need))
    }

    fn insert(&mut self, store: &mut S, block: LedgerBlock, size: usize) {
        each!(self, index => index.insert(store, block, size));
    }

    fn remove(&mut self, store: &mut S, block: LedgerBlock, size: usize) {
        each!(self, index => index.remove(store, block, size));
    }

    fn take(&mut self, store: &mut S, need: usize) -> Option<(LedgerBlock, usize)> {
        each!(self, index => index.take(store, need))
    }

    fn limits(&self) -> Limits {
        each!(self, index => Index::<S>::limits(index))
    }

    fn retain(&mut self, store: &mut S, block: LedgerBlock, size: usize) -> bool {
        each!(self, index => index.retain(store, block, size))
    }

    fn recall(&mut self, store: &mut S, need: usize) -> Option<LedgerBlock> {
        each!(self, index => index.recall(store, need))
    }

    fn gathers(&self, store: &S, need: usize) -> bool {
        each!(self, index => index.gathers(store, need))
    }

    fn relinquishes(&self) -> bool {
        each!(self, index => Index::<S>::relinquishes(index))
    }

    fn relinquish(&mut self, store: &mut S) -> Option<LedgerBlock> {
        each!(self, index => index.relinquish(store))
    }

    fn wilderness(&self) -> Option<LedgerBlock> {
        each!(self, index => Index::<S>::wilderness(index))
    }

    fn each(&self, store: &S, visit: &mut dyn FnMut(LedgerBlock) -> bool) -> bool {
        each!(self, index => index.each(store, visit))
    }
}
