//! Lists of free blocks, linked in one direction or in both.
//!
//! A list is a ring through its head. With *double* links a block can be taken
//! out wherever it lies; with *single* links a block knows only what follows it:
//! entering and leaving the list write fewer words, but a block that neither a
//! search nor a pop has just found must be looked for from the head, one read a
//! step. So single links cost nothing where blocks leave by search or by pop
//! alone (without coalescing, and in dedicated lists), and are honest but dear
//! where merging takes neighbours out of the middle.
//!
//! The words of a free block stay where they are: the backward link is there and
//! unused, so that block sizes and placements do not depend on the links. In a
//! head it names the last block where blocks enter at the back.
//!
//! Invariant: the forward links of a ring lead from its head through every block
//! of the list back to the head; with double links the backward links contradict
//! none of them; in FIFO order the backward link of the head is the last block.

use super::list::Order;
use super::{walk_list, whole_list_is_sound};
use crate::store::Store;

/// In which directions the blocks of a list are linked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Links {
    /// Each block knows the next one only.
    Single,
    /// Each block knows both its neighbours.
    #[default]
    Double,
}

/// One list: its head, the order in which it is kept and its links.
#[derive(Clone, Copy)]
pub(crate) struct Ring<B> {
    pub(crate) head: B,
    pub(crate) order: Order,
    pub(crate) links: Links,
}

impl<B: Copy + Eq> Ring<B> {
    /// The links that are kept: a store that verifies needs both to see that one
    /// was overwritten.
    #[inline(always)]
    fn links_in<S: Store>(&self) -> Links {
        match S::VERIFIES {
            true => Links::Double,
            false => self.links,
        }
    }

    /// Whether a block can be inserted along sound links; a walk in address order.
    pub(crate) fn insert_is_sound<S: Store<Block = B>>(&self, store: &S, number: usize) -> bool {
        match self.order {
            Order::Address => whole_list_is_sound(store, number),
            Order::Lifo => store.forward_is_sound(self.head),
            Order::Fifo => store.backward_is_sound(self.head),
        }
    }

    /// Links a free block in where the order says; returns what precedes it,
    /// which may be the head. Linear in address order, else O(1).
    #[inline(always)]
    pub(crate) fn insert<S: Store<Block = B>>(&self, store: &mut S, block: B) -> B {
        let before = match self.order {
            Order::Lifo => self.head,
            Order::Fifo => store.previous(self.head),
            Order::Address => {
                let mut before = self.head;
                loop {
                    let next = store.next(before);
                    if next == self.head || store.precedes(block, next) {
                        break before;
                    }
                    before = next;
                }
            }
        };
        match self.links_in::<S>() {
            Links::Double => {
                store.link_after(before, block);
            }
            Links::Single => {
                // What enters at the back is followed by the head: no need to read it.
                let next = match self.order {
                    Order::Fifo => self.head,
                    _ => store.next(before),
                };
                store.set_next(block, next);
                store.set_next(before, block);
                if self.order == Order::Fifo {
                    store.set_previous(self.head, block);
                }
            }
        }
        before
    }

    /// Takes a block out; `before` is what precedes it where links are single.
    /// Returns what follows it. O(1).
    #[inline(always)]
    pub(crate) fn take_out<S: Store<Block = B>>(&self, store: &mut S, before: B, block: B) -> B {
        match self.links_in::<S>() {
            Links::Double => store.unlink(block).1,
            Links::Single => {
                let next = store.next(block);
                store.set_next(before, next);
                if self.order == Order::Fifo && next == self.head {
                    store.set_previous(self.head, before);
                }
                next
            }
        }
    }

    /// What precedes a block of the list, where links are single; a read a step.
    #[inline(always)]
    pub(crate) fn before<S: Store<Block = B>>(&self, store: &S, block: B) -> B {
        let mut before = self.head;
        if self.links_in::<S>() == Links::Single {
            loop {
                let next = store.next(before);
                debug_assert!(next != self.head, "the block is in this list");
                if next == block {
                    break;
                }
                before = next;
            }
        }
        before
    }

    /// Takes the first block out. O(1).
    #[inline(always)]
    pub(crate) fn pop<S: Store<Block = B>>(&self, store: &mut S) -> Option<B> {
        let block = store.next(self.head);
        let sound =
            !S::VERIFIES || (store.forward_is_sound(self.head) && store.forward_is_sound(block));
        if block == self.head || !sound {
            return None;
        }
        self.take_out(store, self.head, block);
        Some(block)
    }

    /// Walks the list; `false` once `visit` says so, or when links contradict
    /// each other or the order. `number` is that of the head.
    pub(crate) fn walk<S: Store<Block = B>>(
        &self,
        store: &S,
        number: usize,
        visit: &mut dyn FnMut(B) -> bool,
    ) -> bool {
        let mut last = self.head;
        let mut in_order = |block: B| {
            let rising = last == self.head || store.precedes(last, block);
            last = block;
            (rising || self.order != Order::Address) && visit(block)
        };
        match self.links_in::<S>() {
            Links::Double => walk_list(store, number, &mut in_order),
            Links::Single => {
                let mut block = store.next(self.head);
                while block != self.head {
                    if !store.can_be_listed(block) || !in_order(block) {
                        return false;
                    }
                    block = store.next(block);
                }
                self.order != Order::Fifo || store.previous(self.head) == last
            }
        }
    }
}
