//! `forward_index!`: an index that is one of several, as an enum.
//!
//! Invariant: every method of [`Index`](super::Index) is forwarded, those with a default too; a test
//! compares the two lists.

/// Implements [`Index`](crate::index::Index) for an enum whose variants each hold one index, by passing
/// every call on to it. Named are the generics in brackets, the store, its block, the enum, and the
/// variants; attributes in front go to each method. Which variant it is may not change while the heap has
/// blocks.
///
/// ```
/// use metes_heap::index::forward_index;
/// use metes_heap::store::tagged::{Tagged, TaggedBlock};
/// use metes_heap::{Buddy, Kingsley};
///
/// enum Either {
///     Buddy(Buddy<false>),
///     Kingsley(Kingsley<TaggedBlock>),
/// }
///
/// forward_index!(#[inline(always)] [] Tagged, TaggedBlock, Either: [Buddy Kingsley]);
/// ```
#[macro_export]
macro_rules! forward_index {
    (@each [$($variant:ident)*] $self:expr, $index:ident => $call:expr) => {
        match $self {
            $(Self::$variant($index) => $call,)*
        }
    };
    ($(#[$attribute:meta])* [$($generics:tt)*] $store:ty, $block:ty, $of:ty: $variants:tt) => {
        // SAFETY: every call goes to one and the same index, which keeps the contract.
        unsafe impl<$($generics)*> $crate::index::Index<$store> for $of {
            $(#[$attribute])*
            fn halves(&self) -> bool {
                $crate::forward_index!(@each $variants self, index => $crate::index::Index::<$store>::halves(index))
            }

            $(#[$attribute])*
            fn reads_lists_first(&self) -> bool {
                $crate::forward_index!(@each $variants self, index => $crate::index::Index::<$store>::reads_lists_first(index))
            }

            fn heads(&mut self, span: usize, geometry: $crate::store::Geometry) -> Option<usize> {
                $crate::forward_index!(@each $variants self, index => $crate::index::Index::<$store>::heads(index, span, geometry))
            }

            $(#[$attribute])*
            fn first_head(&self) -> usize {
                $crate::forward_index!(@each $variants self, index => $crate::index::Index::<$store>::first_head(index))
            }

            fn attach(&mut self, store: &mut $store, base: $block) {
                $crate::forward_index!(@each $variants self, index => $crate::index::Index::attach(index, store, base))
            }

            fn has_room_for_region(&self, store: &$store, length: usize) -> bool {
                $crate::forward_index!(@each $variants self, index => $crate::index::Index::has_room_for_region(index, store, length))
            }

            fn attach_further(&mut self, store: &mut $store, first: $block, room: usize) {
                $crate::forward_index!(@each $variants self, index => $crate::index::Index::attach_further(index, store, first, room))
            }

            fn may_extend(&self, store: &$store, room: usize) -> bool {
                $crate::forward_index!(@each $variants self, index => $crate::index::Index::may_extend(index, store, room))
            }

            $(#[$attribute])*
            fn block_size(&self, need: usize) -> usize {
                $crate::forward_index!(@each $variants self, index => $crate::index::Index::<$store>::block_size(index, need))
            }

            $(#[$attribute])*
            fn insert(&mut self, store: &mut $store, block: $block, size: usize) {
                $crate::forward_index!(@each $variants self, index => $crate::index::Index::insert(index, store, block, size))
            }

            $(#[$attribute])*
            fn remove(&mut self, store: &mut $store, block: $block, size: usize) {
                $crate::forward_index!(@each $variants self, index => $crate::index::Index::remove(index, store, block, size))
            }

            $(#[$attribute])*
            fn take(&mut self, store: &mut $store, need: usize) -> Option<($block, usize)> {
                $crate::forward_index!(@each $variants self, index => $crate::index::Index::take(index, store, need))
            }

            $(#[$attribute])*
            fn insert_is_sound(&self, store: &$store, size: usize) -> bool {
                $crate::forward_index!(@each $variants self, index => $crate::index::Index::insert_is_sound(index, store, size))
            }

            $(#[$attribute])*
            fn remove_is_sound(&self, store: &$store, block: $block) -> bool {
                $crate::forward_index!(@each $variants self, index => $crate::index::Index::remove_is_sound(index, store, block))
            }

            $(#[$attribute])*
            fn retain_is_sound(&self, store: &$store, size: usize) -> bool {
                $crate::forward_index!(@each $variants self, index => $crate::index::Index::retain_is_sound(index, store, size))
            }

            $(#[$attribute])*
            fn limits(&self) -> $crate::index::Limits {
                $crate::forward_index!(@each $variants self, index => $crate::index::Index::<$store>::limits(index))
            }

            $(#[$attribute])*
            fn retain(&mut self, store: &mut $store, block: $block, size: usize) -> bool {
                $crate::forward_index!(@each $variants self, index => $crate::index::Index::retain(index, store, block, size))
            }

            $(#[$attribute])*
            fn recall(&mut self, store: &mut $store, need: usize) -> Option<$block> {
                $crate::forward_index!(@each $variants self, index => $crate::index::Index::recall(index, store, need))
            }

            $(#[$attribute])*
            fn gathers(&self, store: &$store, need: usize) -> bool {
                $crate::forward_index!(@each $variants self, index => $crate::index::Index::gathers(index, store, need))
            }

            $(#[$attribute])*
            fn relinquishes(&self) -> bool {
                $crate::forward_index!(@each $variants self, index => $crate::index::Index::<$store>::relinquishes(index))
            }

            $(#[$attribute])*
            fn relinquish(&mut self, store: &mut $store) -> Option<$block> {
                $crate::forward_index!(@each $variants self, index => $crate::index::Index::relinquish(index, store))
            }

            $(#[$attribute])*
            fn wilderness(&self) -> Option<$block> {
                $crate::forward_index!(@each $variants self, index => $crate::index::Index::<$store>::wilderness(index))
            }

            fn each(&self, store: &$store, visit: &mut dyn FnMut($block) -> bool) -> bool {
                $crate::forward_index!(@each $variants self, index => $crate::index::Index::each(index, store, visit))
            }
        }
    };
}

#[cfg(test)]
mod tests {
    extern crate std;

    use std::collections::BTreeSet;

    /// Names of the functions that `text` declares.
    fn functions(text: &str) -> BTreeSet<&str> {
        text.split("fn ")
            .skip(1)
            .filter_map(|rest| rest.split_once('('))
            .map(|(name, _)| name)
            .filter(|name| {
                name.chars()
                    .all(|letter| letter.is_ascii_lowercase() || letter == '_')
            })
            .collect()
    }

    #[test]
    fn every_method_is_forwarded() {
        let (_, declared) = include_str!("mod.rs")
            .split_once("pub unsafe trait Index")
            .unwrap();
        let (declared, _) = declared.split_once("\n}\n").unwrap();
        let own = include_str!("forward.rs");
        let (forwarded, _) = own.split_once("#[cfg(test)]").unwrap();
        let (_, forwarded) = forwarded.split_once("unsafe impl").unwrap();
        let declared = functions(declared);
        assert!(
            declared.len() > 15 && declared.contains("relinquishes"),
            "{declared:?}"
        );
        assert_eq!(functions(forwarded), declared);
    }
}
