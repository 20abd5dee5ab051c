//! `QuickAny`: the quickest index that decides as a description says, chosen at run time.
//!
//! Invariant: it decides and counts as [`AnyIndex`](metes_heap::index::any::AnyIndex) of
//! the same description does, trees as over boundary tags.

use metes_heap::Store;
use metes_heap::description::IndexKind;
use metes_heap::index::any::AnyIndex;
use metes_heap::index::classes::ChosenClasses;
use metes_heap::index::first_fit::{Classes, Exact};
use metes_heap::index::list::ChosenList;
use metes_heap::index::{Limits, forward_index};
use metes_heap::store::ledger::LedgerBlock;

use super::{MANY_PROBES, QuickBuddy, QuickClasses, QuickList, QuickTree};

/// One of the indexes.
#[derive(Debug)]
pub(crate) enum QuickAny {
    /// The library's own: nothing is walked, or what is walked is short.
    Own(AnyIndex<LedgerBlock>),
    List(QuickList),
    Classes(QuickClasses),
    LowestBuddy(QuickBuddy),
    Tree(QuickTree<Exact>),
    ClassTree(QuickTree<Classes>),
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
            IndexKind::FirstFit {
                by_class: false, ..
            } => QuickAny::Tree(QuickTree::new()),
            IndexKind::FirstFit { by_class: true, .. } => QuickAny::ClassTree(QuickTree::new()),
            kind => QuickAny::Own(AnyIndex::new(kind, limits)),
        }
    }
}

forward_index!(
    [S: Store<Block = LedgerBlock>] S, LedgerBlock, QuickAny:
    [Own List Classes LowestBuddy Tree ClassTree]
);
