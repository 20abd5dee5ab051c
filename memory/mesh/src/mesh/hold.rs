//! Holding a heap: by its lock, or, its own node, without it.
//!
//! A lock is taken and given back by an exchange each. Who uses its own heap alone most of the time would pay them for
//! nothing; so, where the fabric has a barrier that one node can make all pass, its own node says in a word of its own that
//! it is at the heap, by a plain store, and looks at the lock. Another one takes the lock, makes all nodes pass a barrier, and looks
//! at that word: one of both sees the other. (Dekker's way to exclude, the barriers all on one side: Dice, Huang and
//! Yang, *Asymmetric Dekker Synchronization*, 2001.) As a barrier costs more than an exchange, the way without one is closed
//! by who comes by, and open again after its own node has held the heap by its lock so many times in turn
//! ([`Options::alone`](super::Options::alone)).
//!
//! Invariant: while a node is at its heap without its lock, `Bias` is [`OPEN`], and another one that has the lock has changed
//! nothing.

use super::Mesh;
use crate::fabric::{Fabric, Word};
use crate::refusal::Expelled;
use crate::space::Node;
use crate::words::Holder;

/// Says that the way without a lock is open; below it is a count.
pub(crate) const OPEN: u64 = 1 << 15;

/// How a heap is held.
#[derive(Clone, Copy)]
pub(super) enum Hold {
    /// By its lock.
    Lock,
    /// By its own node, without it.
    Home,
}

impl<F: Fabric> Mesh<'_, F> {
    /// Holds a heap; nothing if another node does after so many tries.
    pub(super) fn hold(&mut self, node: Node, tries: u32) -> Option<Hold> {
        if node == self.me.node && self.enter() {
            return Some(Hold::Home);
        }
        self.lock(node, tries).then_some(Hold::Lock)
    }

    pub(super) fn let_go(&self, node: Node, hold: Hold) -> Result<(), Expelled> {
        match hold {
            Hold::Lock => self.unlock(node),
            Hold::Home => {
                self.fabric.store(node, Word::Home, 0);
                Ok(())
            }
        }
    }

    /// Holds the own heap without its lock, if that is open and nobody has the lock.
    fn enter(&self) -> bool {
        let me = self.me.node;
        if self.fabric.load(me, Word::Bias) != OPEN {
            return false;
        }
        self.fabric
            .store(me, Word::Home, Holder::word(Some(self.me)));
        self.fabric.near_barrier();
        // In this order: who sees a lock given back sees that its holder has closed this way.
        let free = self.fabric.load(me, Word::Lock) == 0;
        if free && self.fabric.load(me, Word::Bias) == OPEN {
            return true;
        }
        self.fabric.store(me, Word::Home, 0);
        false
    }

    /// Takes the lock of a heap; false if another node holds it after so many tries.
    pub(super) fn lock(&mut self, node: Node, tries: u32) -> bool {
        let mine = Holder::word(Some(self.me));
        for again in 0..tries {
            if again > 0 {
                self.fabric.relax();
            }
            let seen = self.fabric.load(node, Word::Lock);
            let dead = Holder::of(seen).map(|holder| self.is_dead(holder));
            if dead == Some(false) {
                continue;
            }
            if self
                .fabric
                .compare_exchange(node, Word::Lock, seen, mine)
                .is_ok()
            {
                let left = tries - again;
                return self.has_alone(node, dead == Some(true), left);
            }
        }
        false
    }

    /// Sees to it that who has taken the lock is alone: that the heap's own node is not there, and that what a dead holder has
    /// left is brought in order. Otherwise gives the lock back.
    fn has_alone(&mut self, node: Node, took_over: bool, tries: u32) -> bool {
        let bias = self.fabric.load(node, Word::Bias);
        let mut left_something = took_over;
        if node == self.me.node {
            self.count_alone(bias);
        } else if bias == OPEN {
            let Some(died) = self.drive_out(node, tries) else {
                // What a dead holder has changed it had closed the way for; so whoever takes the lock next finds all as
                // this node did.
                let _ = self.unlock(node);
                return false;
            };
            left_something |= died;
        } else if bias > 0 {
            self.fabric.store(node, Word::Bias, 0);
        }
        if left_something {
            self.counts.taken_over += 1;
            self.mend(node);
        }
        true
    }

    /// Counts that this node holds its own heap by its lock; opens the way without.
    fn count_alone(&self, bias: u64) {
        if self.has_barrier && bias != OPEN {
            let alone = bias + 1;
            let open = alone >= u64::from(self.options.alone.clamp(1, OPEN as u32 - 1));
            let bias = if open { OPEN } else { alone };
            self.fabric.store(self.me.node, Word::Bias, bias);
        }
    }

    /// Closes the way without a lock, which this node has: whether the heap's own node died on it. Nothing if it is there all
    /// the time.
    fn drive_out(&mut self, node: Node, tries: u32) -> Option<bool> {
        self.counts.barriers += 1;
        if !self.fabric.barrier() {
            return None;
        }
        for again in 0..tries {
            if again > 0 {
                self.fabric.relax();
            }
            let home = Holder::of(self.fabric.load(node, Word::Home));
            let died = home.map(|holder| self.is_dead(holder));
            if died == Some(false) {
                continue;
            }
            // Before all else: who goes on here then brings in order what its own node has left.
            self.fabric.store(node, Word::Bias, 0);
            if died == Some(true) {
                self.fabric.store(node, Word::Home, 0);
            }
            return Some(died == Some(true));
        }
        None
    }

    fn is_dead(&self, holder: Holder) -> bool {
        self.fabric.load(holder.node, Word::Epoch) != holder.epoch
    }

    /// Gives a lock back.
    pub(super) fn unlock(&self, node: Node) -> Result<(), Expelled> {
        let mine = Holder::word(Some(self.me));
        let unlocked = self.fabric.compare_exchange(node, Word::Lock, mine, 0);
        unlocked.map_err(|_| Expelled)
    }
}
