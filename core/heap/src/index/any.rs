//! `AnyIndex`: the index that a description names, chosen at run time.
//!
//! Invariant: it decides what the index it stands for decides.

use super::buddy::Buddy;
use super::classes::{ChosenClasses, SizeClasses};
use super::fixed::FixedSizes;
use super::kingsley::Kingsley;
use super::lea::Lea;
use super::list::{ChosenList, ListFit};
use super::{Index, Limits};
use crate::description::IndexKind;
use crate::store::{Geometry, Store};

/// One of the indexes; `B` is the store's block.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "one per heap, and nothing may be allocated"
)]
pub enum AnyIndex<B> {
    /// A searched list.
    List(ListFit<ChosenList, B>),
    /// Size classes.
    Classes(SizeClasses<ChosenClasses>),
    /// Kingsley.
    Kingsley(Kingsley<B>),
    /// Sorted bins with deferred coalescing.
    Lea(Lea<B>),
    /// Fixed block sizes.
    FixedSizes(FixedSizes<B>),
    /// Binary buddy, latest freed first.
    Buddy(Buddy<false>),
    /// Binary buddy, lowest address first.
    LowestBuddy(Buddy<true>),
}

impl<B> AnyIndex<B> {
    /// The index that `kind` describes.
    pub const fn new(kind: IndexKind, limits: Limits) -> Self {
        match kind {
            IndexKind::List {
                fit,
                order,
                depth_percent,
                max_fit_percent,
                links,
            } => AnyIndex::List(ListFit::with(ChosenList {
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
            } => AnyIndex::Classes(SizeClasses::with(ChosenClasses {
                second_level_log2: second_level.trailing_zeros(),
                probes,
                limits,
            })),
            IndexKind::Kingsley => AnyIndex::Kingsley(Kingsley::new()),
            IndexKind::Lea { keep_up_to } => AnyIndex::Lea(Lea::new(keep_up_to)),
            IndexKind::FixedSizes { sizes } => AnyIndex::FixedSizes(FixedSizes::new(sizes)),
            IndexKind::Buddy { lowest: false } => AnyIndex::Buddy(Buddy::new()),
            IndexKind::Buddy { lowest: true } => AnyIndex::LowestBuddy(Buddy::new()),
        }
    }
}

macro_rules! each {
    ($self:expr, $index:ident => $call:expr) => {
        match $self {
            AnyIndex::List($index) => $call,
            AnyIndex::Classes($index) => $call,
            AnyIndex::Kingsley($index) => $call,
            AnyIndex::Lea($index) => $call,
            AnyIndex::FixedSizes($index) => $call,
            AnyIndex::Buddy($index) => $call,
            AnyIndex::LowestBuddy($index) => $call,
        }
    };
}

// SAFETY: every call goes to one and the same index, which keeps the contract.
unsafe impl<S: Store> Index<S> for AnyIndex<S::Block> {
    fn halves(&self) -> bool {
        each!(self, index => Index::<S>::halves(index))
    }

    fn reads_lists_first(&self) -> bool {
        each!(self, index => Index::<S>::reads_lists_first(index))
    }

    fn heads(&mut self, span: usize, geometry: Geometry) -> Option<usize> {
        each!(self, index => Index::<S>::heads(index, span, geometry))
    }

    fn attach(&mut self, store: &mut S, base: S::Block) {
        each!(self, index => index.attach(store, base));
    }

    fn block_size(&self, need: usize) -> usize {
        each!(self, index => Index::<S>::block_size(index, need))
    }

    fn insert(&mut self, store: &mut S, block: S::Block, size: usize) {
        each!(self, index => index.insert(store, block, size));
    }

    fn remove(&mut self, store: &mut S, block: S::Block, size: usize) {
        each!(self, index => index.remove(store, block, size));
    }

    fn insert_is_sound(&self, store: &S, size: usize) -> bool {
        each!(self, index => index.insert_is_sound(store, size))
    }

    fn remove_is_sound(&self, store: &S, block: S::Block) -> bool {
        each!(self, index => index.remove_is_sound(store, block))
    }

    fn retain_is_sound(&self, store: &S, size: usize) -> bool {
        each!(self, index => index.retain_is_sound(store, size))
    }

    fn take(&mut self, store: &mut S, need: usize) -> Option<(S::Block, usize)> {
        each!(self, index => index.take(store, need))
    }

    fn limits(&self) -> Limits {
        each!(self, index => Index::<S>::limits(index))
    }

    fn retain(&mut self, store: &mut S, block: S::Block, size: usize) -> bool {
        each!(self, index => index.retain(store, block, size))
    }

    fn recall(&mut self, store: &mut S, need: usize) -> Option<S::Block> {
        each!(self, index => index.recall(store, need))
    }

    fn gathers(&self, store: &S, need: usize) -> bool {
        each!(self, index => index.gathers(store, need))
    }

    fn relinquishes(&self) -> bool {
        each!(self, index => Index::<S>::relinquishes(index))
    }

    fn relinquish(&mut self, store: &mut S) -> Option<S::Block> {
        each!(self, index => index.relinquish(store))
    }

    fn wilderness(&self) -> Option<S::Block> {
        each!(self, index => Index::<S>::wilderness(index))
    }

    fn each(&self, store: &S, visit: &mut dyn FnMut(S::Block) -> bool) -> bool {
        each!(self, index => index.each(store, visit))
    }
}
