//! `AnyIndex`: the index that a description names, chosen at run time.
//!
//! Invariant: it decides what the index it stands for decides.

use super::buddy::Buddy;
use super::classes::{ChosenClasses, SizeClasses};
use super::first_fit::{FirstFitClasses, FirstFitTree};
use super::fixed::FixedSizes;
use super::kingsley::Kingsley;
use super::lea::Lea;
use super::list::{ChosenList, ListFit};
use super::{Limits, forward_index};
use crate::description::IndexKind;
use crate::store::Store;

/// One of the indexes; `B` is the store's block.
#[derive(Clone, Debug)]
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
    /// First fit by a tree of sizes.
    FirstFit(FirstFitTree<B>),
    /// First fit by a tree of size classes.
    FirstFitByClass(FirstFitClasses<B>),
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
            IndexKind::FirstFit {
                by_class: false, ..
            } => AnyIndex::FirstFit(FirstFitTree::new()),
            IndexKind::FirstFit { by_class: true, .. } => {
                AnyIndex::FirstFitByClass(FirstFitClasses::new())
            }
            IndexKind::Buddy { lowest: false } => AnyIndex::Buddy(Buddy::new()),
            IndexKind::Buddy { lowest: true } => AnyIndex::LowestBuddy(Buddy::new()),
        }
    }
}

forward_index!(
    [S: Store] S, S::Block, AnyIndex<S::Block>:
    [List Classes Kingsley Lea FixedSizes FirstFit FirstFitByClass Buddy LowestBuddy]
);
