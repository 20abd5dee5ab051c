//! Deaths: what the living do about a node that takes no further step, and how it comes back.
//!
//! Invariant: whoever goes on where a dead node stopped may die there, too; each step leaves what the next one needs.

use super::{Mesh, chained, offset_in, offset_of};
use crate::fabric::{Fabric, Word};
use crate::local::LocalHeap;
use crate::refusal::{Expelled, Refusal};
use crate::space::{Node, Place};
use crate::words::{Tag, Work};

impl<F: Fabric> Mesh<'_, F> {
    /// Brings a heap whose holder has died to a state between two steps.
    pub(super) fn mend(&mut self, node: Node) {
        match Work::of(self.fabric.load(node, Word::Work)) {
            Work::Change => {
                if !self.rebuild(node) {
                    self.fabric.store(node, Word::LeftOut, 1);
                }
                self.fabric.store(node, Word::Work, Work::Nothing.word());
            }
            Work::Free(offset) => {
                if self.fabric.load(node, Word::Draining) == chained(offset) {
                    // SAFETY: the lock is held, and the block is still the chain's first.
                    let next = unsafe { self.fabric.link(node, offset) };
                    self.fabric.store(node, Word::Draining, next);
                }
                self.release(Place { node, offset });
            }
            Work::Nothing => self.mend_chain(node),
        }
    }

    /// Makes a heap whole, whose lock is held, whatever state its lists are in; false if that cannot be.
    fn rebuild(&self, node: Node) -> bool {
        // Should it be broken off, too.
        self.begin_change(node);
        let fabric = self.fabric;
        // Under the lock, tags neither come nor go.
        let used = self.tags(node);
        let used = used.map(|(granule, tag)| offset_in::<F>(granule, tag));
        // SAFETY: the lock is held; all blocks in use have tags, and one that was about to be freed or taken has none.
        unsafe { fabric.with_heap(node, |heap| heap.rebuild(used)) }
    }

    /// Granules of a heap in which blocks begin, in order.
    fn tags(&self, node: Node) -> impl Iterator<Item = (u64, Tag)> + Clone + use<'_, F> {
        let fabric = self.fabric;
        let granules = fabric.space().size().div_ceil(F::Heap::APART);
        (0..granules)
            .filter_map(move |granule| Some((granule, Tag::of(fabric.tag(node, granule))?)))
    }

    /// Where what was about to be taken off the chain is still on it, it was not.
    fn mend_chain(&self, node: Node) {
        let draining = self.fabric.load(node, Word::Draining);
        let mut at = self.fabric.load(node, Word::Parked);
        while at != 0 && draining != 0 {
            if at == draining {
                self.fabric.store(node, Word::Draining, 0);
                return;
            }
            // SAFETY: the lock is held, so nobody takes blocks off the chain.
            at = unsafe { self.fabric.link(node, offset_of(at)) };
        }
    }

    /// Takes `dead` for dead, for good: its heap serves no more, its locks may be taken over. Whoever says so must be sure
    /// that it takes no further step.
    pub fn declare_dead(&self, dead: Node) {
        let epoch = self.fabric.load(dead, Word::Epoch);
        if epoch & 1 == 0 {
            // Another node may have been quicker.
            let _ = self
                .fabric
                .compare_exchange(dead, Word::Epoch, epoch, epoch + 1);
        }
        self.fabric.store(dead, Word::LeftOut, 1);
    }

    /// Takes a node back that was taken for dead, after its blocks were [adopted](Self::adopt): its heap is rebuilt from the
    /// blocks in use and serves again, and a new view of the node ([`Mesh::new`]) works on. Whoever says so must be sure that
    /// the node's memory is as the nodes left it, and that nothing of its life before takes a further step. Linear in the
    /// heap's granules.
    ///
    /// # Errors
    /// [`Refusal::Busy`] where the heap was held by others all the time, to be called again; [`Refusal::Full`] where it cannot
    /// be made whole: the node stays dead.
    pub fn readmit(&mut self, dead: Node) -> Result<(), Refusal> {
        let epoch = self.fabric.load(dead, Word::Epoch);
        if epoch & 1 == 0 {
            return Ok(());
        }
        self.wait_for(dead)?;
        let whole = self.rebuild(dead);
        self.fabric.store(dead, Word::Work, Work::Nothing.word());
        if whole {
            self.settle(dead, dead);
            self.fabric.store(dead, Word::LeftOut, 0);
        }
        self.unlock(dead).map_err(|Expelled| Refusal::Expelled)?;
        if !whole {
            return Err(Refusal::Full);
        }
        // Another node may have been quicker.
        let _ = self
            .fabric
            .compare_exchange(dead, Word::Epoch, epoch, epoch + 1);
        Ok(())
    }

    /// Takes the lock of a heap, however long others hold it within the bounds.
    fn wait_for(&mut self, node: Node) -> Result<(), Refusal> {
        let tries = self.options.tries.saturating_mul(self.options.passes);
        self.in_epoch().map_err(|Expelled| Refusal::Expelled)?;
        self.lock(node, tries).then_some(()).ok_or(Refusal::Busy)
    }

    /// Makes the blocks of a dead node this one's, tells `adopted` the address of each, and brings blocks that it was about to
    /// park into their heaps. Nothing of a node that lives. Linear in the granules of all heaps.
    ///
    /// # Errors
    /// [`Refusal::Busy`] where a heap was held by others all the time: to be called again, nothing is told twice.
    pub fn adopt(&mut self, dead: Node, mut adopted: impl FnMut(u64)) -> Result<(), Refusal> {
        if self.fabric.load(dead, Word::Epoch) & 1 == 0 {
            return Ok(());
        }
        let fabric = self.fabric;
        for node in fabric.space().from(self.me.node) {
            fabric.at(node, || self.adopt_of(node, dead, &mut adopted))?;
        }
        Ok(())
    }

    /// As [`adopt`](Self::adopt), of the blocks of one heap.
    fn adopt_of(
        &mut self,
        node: Node,
        dead: Node,
        adopted: &mut impl FnMut(u64),
    ) -> Result<(), Refusal> {
        let mut unparked = false;
        for (granule, tag) in self.tags(node).filter(|(_, tag)| tag.owner == dead) {
            unparked |= tag.freed;
            let bits = Tag::bits(Some(tag));
            let mine = Tag::bits(Some(Tag {
                owner: self.me.node,
                ..tag
            }));
            if !tag.freed && self.fabric.exchange_tag(node, granule, bits, mine).is_ok() {
                let offset = offset_in::<F>(granule, tag);
                adopted(self.fabric.space().address(Place { node, offset }));
            }
        }
        if unparked && self.fabric.load(node, Word::LeftOut) == 0 {
            self.take_in(node, dead)?;
        }
        Ok(())
    }

    /// Frees what `dead` had marked and not parked: what is marked by it when the chain is empty, as it parks no more.
    fn take_in(&mut self, node: Node, dead: Node) -> Result<(), Refusal> {
        self.wait_for(node)?;
        if self.fabric.load(node, Word::LeftOut) == 0 {
            self.settle(node, dead);
        }
        self.unlock(node).map_err(|Expelled| Refusal::Expelled)
    }

    /// Frees all of a heap, whose lock is held, that is parked, or marked by the dead.
    fn settle(&mut self, node: Node, dead: Node) {
        self.drain(node, u32::MAX);
        let marked = |tag: Tag| tag.freed && tag.owner == dead;
        for (granule, tag) in self.tags(node).filter(|&(_, tag)| marked(tag)) {
            let offset = offset_in::<F>(granule, tag);
            self.fabric
                .store(node, Word::Work, Work::Free(offset).word());
            self.release(Place { node, offset });
        }
    }
}
