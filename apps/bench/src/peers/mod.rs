//! The measured allocators, in the order of the tables.

mod compact;
pub(crate) mod floor;
mod general;
mod metes;
#[cfg(feature = "c-peers")]
mod o1heap;
pub(crate) mod rust;

use crate::Error;
use crate::peer::{Kind, Peer};

/// Floors and heaps in Rust.
const ARENAS: &[Peer] = &[
    Peer::arena::<floor::Null>("null", "", Kind::Floor),
    Peer::arena::<floor::Pool64>("pool-64", "", Kind::Floor),
    Peer::arena::<floor::PowerLists>("pow2-lists", "", Kind::Arena),
    Peer::arena::<rust::Rlsf32>(BASELINE, "rlsf", Kind::Arena),
    Peer::arena::<rust::Rlsf8>("rlsf:second_level=8", "rlsf", Kind::Arena),
    Peer::arena::<rust::Talc>("talc", "talc", Kind::Arena),
    Peer::arena::<rust::Buddy>(
        "buddy_system_allocator",
        "buddy_system_allocator",
        Kind::Arena,
    ),
    Peer::arena::<rust::LinkedList>(
        "linked_list_allocator",
        "linked_list_allocator",
        Kind::Arena,
    ),
    Peer::arena::<rust::Dlmalloc>("dlmalloc", "dlmalloc", Kind::Arena),
    Peer::arena::<rust::Offset>("offset-allocator", "offset-allocator", Kind::OutOfBand),
    #[cfg(feature = "c-peers")]
    Peer::arena::<o1heap::O1Heap>("o1heap", "o1heap", Kind::Arena),
];

/// The peer that every ratio is taken to.
pub(crate) const BASELINE: &str = "rlsf";

/// Every allocator of this build.
pub(crate) fn all() -> Vec<Peer> {
    [metes::HEAPS, compact::HEAPS, ARENAS, general::GENERAL].concat()
}

/// The allocators named, in the order of the tables; all if none is named.
pub(crate) fn named(names: &[String]) -> Result<Vec<Peer>, Error> {
    let peers = all();
    if let Some(unknown) = names
        .iter()
        .find(|name| !peers.iter().any(|peer| peer.name == **name))
    {
        return Err(Error::UnknownHeap {
            name: unknown.clone(),
            known: peers
                .iter()
                .map(|peer| peer.name)
                .collect::<Vec<_>>()
                .join(", "),
        });
    }
    Ok(peers
        .into_iter()
        .filter(|peer| names.is_empty() || names.iter().any(|name| name == peer.name))
        .collect())
}
