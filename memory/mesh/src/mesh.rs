//! The manager: how a node allocates and frees, and goes on where another one has died.
//!
//! **A request** (paper, section II, figure 3) tries the own heap; then the others, from the one that served last on, passing
//! over each that another node holds; then, if one was passed over, all again, waiting a little for each lock. It is refused
//! as [`Refusal::Full`] only after a pass in which every heap was looked into.
//!
//! **A free** marks the block's tag, which only one node can, and puts the block at the head of the chain of its heap: no
//! lock, whoever frees it. Who next holds that heap's lock frees some of the chain, and all of it before it finds the heap
//! full: so a heap whose owner does nothing is emptied by those that need it.
//!
//! **The own heap** is held without its lock where the fabric has a barrier and nobody else has come by for a while; see
//! `mesh/hold.rs`.
//!
//! **A death** leaves a lock held. Its word names holder and epoch, so that another node may take it over; [`Word::Work`]
//! says what the dead one was at: what it was about to free is freed, and a heap that it was changing is rebuilt from the
//! tags of blocks in use, so that nothing is lost. All else is found by tags, too: blocks of the dead, and blocks that it had
//! marked and not yet parked.
//!
//! Invariant: a block is in use (tag: its owner), parked or about to be (tag: freed, by whom), or in its heap (no tag). Each
//! step keeps that true for who takes the next one, so a node may die between any two.

mod death;
mod hold;

#[cfg(all(test, loom))]
pub(crate) use hold::OPEN;

use core::sync::atomic::{Ordering, fence};

use crate::fabric::{Fabric, Word};
use crate::local::LocalHeap;
use crate::refusal::{BadFree, Expelled, Refusal};
use crate::space::{Node, Place};
use crate::words::{Holder, Tag, Work};

/// Bounds on what a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Parked blocks that a holder frees for others, at most, unless the heap is full without them.
    pub drained: u32,
    /// Times that a lock is tried in a pass that waits.
    pub tries: u32,
    /// Passes that wait, before a request is refused as [`Refusal::Busy`].
    pub passes: u32,
    /// Times in turn that this node holds its own heap by its lock, before it does without where the fabric has a
    /// [barrier](Fabric::barrier).
    pub alone: u32,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            drained: 8,
            tries: 1 << 12,
            passes: 64,
            alone: 256,
        }
    }
}

/// What a node has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Requests that its own heap served.
    pub local: u64,
    /// Requests that another heap served.
    pub remote: u64,
    /// Requests refused because every heap was full.
    pub full: u64,
    /// Requests refused because a heap could not be looked into.
    pub busy: u64,
    /// Heaps that were looked into.
    pub visits: u64,
    /// Heaps that were passed over, as another node held them.
    pub skips: u64,
    /// Most heaps that one request looked into or passed over.
    pub longest: u64,
    /// Blocks freed into their heaps at once.
    pub freed: u64,
    /// Blocks parked.
    pub parked: u64,
    /// Parked blocks freed into their heaps.
    pub drained: u64,
    /// Locks taken over of dead nodes.
    pub taken_over: u64,
    /// Barriers that all nodes were made to pass.
    pub barriers: u64,
}

/// Which heaps a request looks into.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    All,
    /// The own one.
    Home,
    /// All others.
    Away,
}

/// What a look into a heap brought.
enum Visit {
    Served(u64),
    Full,
    Skipped,
}

/// A node's view of the mesh.
#[derive(Debug)]
pub struct Mesh<'f, F> {
    fabric: &'f F,
    me: Holder,
    /// The other heap that served last: where the search goes on (next fit over heaps).
    hint: Node,
    options: Options,
    /// Whether the fabric has a barrier.
    has_barrier: bool,
    counts: Counts,
}

impl<'f, F: Fabric> Mesh<'f, F> {
    /// The view of `node`, with default bounds.
    pub fn new(fabric: &'f F, node: Node) -> Self {
        Mesh::with_options(fabric, node, Options::default())
    }

    /// The view of `node`.
    pub fn with_options(fabric: &'f F, node: Node, options: Options) -> Self {
        // Of a node that is taken for dead, the epoch before: so it is told that at once.
        let epoch = fabric.load(node, Word::Epoch) & !1;
        Mesh {
            fabric,
            me: Holder { node, epoch },
            hint: node,
            options,
            has_barrier: fabric.barrier(),
            counts: Counts::default(),
        }
    }

    /// This node.
    pub fn node(&self) -> Node {
        self.me.node
    }

    /// How many nodes there are.
    pub fn nodes(&self) -> u32 {
        self.fabric.space().nodes()
    }

    /// What it has done.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Takes a block of `size` bytes, aligned to `align`, a power of two: of the own heap if it has room, or else of another's. With no other
    /// node at work, looks into each heap once at most.
    ///
    /// # Errors
    /// [`Refusal`] says how sure it is.
    pub fn allocate(&mut self, size: u64, align: u64) -> Result<u64, Refusal> {
        self.request(Scope::All, size, align)
    }

    /// Takes a block of the own heap alone: [`Refusal::Full`] says that this one is full.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn allocate_home(&mut self, size: u64, align: u64) -> Result<u64, Refusal> {
        self.request(Scope::Home, size, align)
    }

    /// Takes a block of another's heap, of each time another one where that can be: [`Refusal::Full`] says that all others
    /// are full.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn allocate_away(&mut self, size: u64, align: u64) -> Result<u64, Refusal> {
        let address = self.request(Scope::Away, size, align)?;
        let space = self.fabric.space();
        self.hint = Node((self.hint.0 + 1) % space.nodes());
        Ok(address)
    }

    fn request(&mut self, scope: Scope, size: u64, align: u64) -> Result<u64, Refusal> {
        let before = self.counts.visits + self.counts.skips;
        let found = self.find(scope, size, align);
        let looked = self.counts.visits + self.counts.skips - before;
        self.counts.longest = self.counts.longest.max(looked);
        match found {
            Ok(place) if place.node == self.me.node => self.counts.local += 1,
            Ok(_) => self.counts.remote += 1,
            Err(Refusal::Full) => self.counts.full += 1,
            Err(Refusal::Busy) => self.counts.busy += 1,
            Err(Refusal::Unleased | Refusal::Expelled) => {}
        }
        found.map(|place| self.fabric.space().address(place))
    }

    fn find(&mut self, scope: Scope, size: u64, align: u64) -> Result<Place, Refusal> {
        for pass in 0..=self.options.passes {
            let tries = if pass == 0 { 1 } else { self.options.tries };
            if let Some(decided) = self.pass(scope, size, align, tries)? {
                return decided;
            }
        }
        Err(Refusal::Busy)
    }

    /// Looks into every heap of the scope, the own one first; nothing is decided if one was passed over and none served.
    fn pass(
        &mut self,
        scope: Scope,
        size: u64,
        align: u64,
        tries: u32,
    ) -> Result<Option<Result<Place, Refusal>>, Refusal> {
        let me = self.me.node;
        let mut passed_over = false;
        let home = (scope != Scope::Away).then_some(me);
        let others = self.fabric.space().from(self.hint);
        let others = others.filter(|&node| node != me && scope != Scope::Home);
        for node in home.into_iter().chain(others) {
            match self
                .visit(node, size, align, tries)
                .map_err(|Expelled| Refusal::Expelled)?
            {
                Visit::Served(offset) => {
                    if node != me {
                        self.hint = node;
                    }
                    return Ok(Some(Ok(Place { node, offset })));
                }
                Visit::Full => {}
                Visit::Skipped => passed_over = true,
            }
        }
        Ok((!passed_over).then_some(Err(Refusal::Full)))
    }

    fn visit(&mut self, node: Node, size: u64, align: u64, tries: u32) -> Result<Visit, Expelled> {
        self.in_epoch()?;
        let fabric = self.fabric;
        fabric.at(node, || self.look_into(node, size, align, tries))
    }

    fn look_into(
        &mut self,
        node: Node,
        size: u64,
        align: u64,
        tries: u32,
    ) -> Result<Visit, Expelled> {
        // What is left out serves nobody.
        if self.fabric.load(node, Word::LeftOut) != 0 {
            return Ok(Visit::Full);
        }
        let Some(hold) = self.hold(node, tries) else {
            self.counts.skips += 1;
            return Ok(Visit::Skipped);
        };
        self.counts.visits += 1;
        let visit = self.take(node, size, align);
        self.let_go(node, hold)?;
        Ok(visit)
    }

    /// Takes a block of a heap whose lock is held.
    fn take(&mut self, node: Node, size: u64, align: u64) -> Visit {
        // A death that the lock has told of may have left the heap out.
        if self.fabric.load(node, Word::LeftOut) != 0 {
            return Visit::Full;
        }
        self.drain(node, self.options.drained);
        let taken = self.take_block(node, size, align).or_else(|| {
            (self.drain(node, u32::MAX) > 0)
                .then(|| self.take_block(node, size, align))
                .flatten()
        });
        taken.map_or(Visit::Full, Visit::Served)
    }

    fn take_block(&mut self, node: Node, size: u64, align: u64) -> Option<u64> {
        self.begin_change(node);
        // SAFETY: the lock is held, and nothing is freed.
        let taken = unsafe {
            self.fabric
                .with_heap(node, |heap| heap.allocate(size, align))
        };
        if let Some(offset) = taken {
            let (granule, upper) = granule::<F>(offset);
            let tag = Tag {
                owner: self.me.node,
                upper,
                freed: false,
            };
            debug_assert_eq!(self.fabric.tag(node, granule), 0, "no block began there");
            self.fabric.set_tag(node, granule, Tag::bits(Some(tag)));
        }
        self.fabric.store(node, Word::Work, Work::Nothing.word());
        taken
    }

    /// Frees the block at `address`, of whichever heap: into it, if that is the own one (or the fabric
    /// [acts there](Fabric::acts_there)) and nobody holds it, or else parked.
    ///
    /// # Errors
    /// [`BadFree`]; any address may be tried.
    pub fn free(&mut self, address: u64) -> Result<(), BadFree> {
        let place = self.fabric.space().place(address).ok_or(BadFree::Outside)?;
        self.in_epoch().map_err(|Expelled| BadFree::Expelled)?;
        let fabric = self.fabric;
        fabric.at(place.node, || self.give_back(place))
    }

    fn give_back(&mut self, place: Place) -> Result<(), BadFree> {
        self.mark(place).ok_or(BadFree::NotInUse)?;
        if (place.node == self.me.node || self.fabric.acts_there())
            && let Some(hold) = self.hold(place.node, 1)
        {
            let serves = self.fabric.load(place.node, Word::LeftOut) == 0;
            if serves {
                let work = Work::Free(place.offset).word();
                self.fabric.store(place.node, Word::Work, work);
                self.release(place);
                self.counts.freed += 1;
                self.drain(place.node, self.options.drained);
            }
            self.let_go(place.node, hold)
                .map_err(|Expelled| BadFree::Expelled)?;
            if serves {
                return Ok(());
            }
        }
        self.park(place);
        Ok(())
    }

    /// Marks the block at `place` as freed by this node, which one node can do once.
    fn mark(&self, place: Place) -> Option<()> {
        let half = F::Heap::APART / 2;
        if !place.offset.is_multiple_of(half) {
            return None;
        }
        let (granule, upper) = granule::<F>(place.offset);
        let mut bits = self.fabric.tag(place.node, granule);
        loop {
            let tag = Tag::of(bits).filter(|tag| !tag.freed && tag.upper == upper)?;
            let freed = Tag {
                owner: self.me.node,
                freed: true,
                ..tag
            };
            let new = Tag::bits(Some(freed));
            match self.fabric.exchange_tag(place.node, granule, bits, new) {
                Ok(()) => return Some(()),
                Err(found) => bits = found,
            }
        }
    }

    /// Puts a block that this node has marked at the head of its heap's chain.
    fn park(&mut self, place: Place) {
        let Place { node, offset } = place;
        let mut head = self.fabric.load(node, Word::Parked);
        loop {
            // SAFETY: this node has freed the block, and nobody else sees it before it is parked.
            unsafe { self.fabric.set_link(node, offset, head) };
            match self
                .fabric
                .compare_exchange(node, Word::Parked, head, chained(offset))
            {
                Ok(()) => break,
                Err(found) => head = found,
            }
        }
        self.counts.parked += 1;
    }

    /// Frees up to `most` parked blocks of a heap whose lock is held; how many.
    fn drain(&mut self, node: Node, most: u32) -> u32 {
        for count in 0..most {
            let Some(offset) = self.first_parked(node) else {
                return count;
            };
            self.fabric
                .store(node, Word::Work, Work::Free(offset).word());
            // SAFETY: the lock is held, and the block is the chain's first.
            let next = unsafe { self.fabric.link(node, offset) };
            self.fabric.store(node, Word::Draining, next);
            self.release(Place { node, offset });
            self.counts.drained += 1;
        }
        most
    }

    /// The first block that was taken off the chain; takes off what is there, if there is none.
    fn first_parked(&self, node: Node) -> Option<u64> {
        let mut first = self.fabric.load(node, Word::Draining);
        while first == 0 {
            let head = self.fabric.load(node, Word::Parked);
            if head == 0 {
                return None;
            }
            // Before it is taken off, so that who goes on here knows of it; see `mend`.
            self.fabric.store(node, Word::Draining, head);
            match self.fabric.compare_exchange(node, Word::Parked, head, 0) {
                Ok(()) => first = head,
                Err(_) => self.fabric.store(node, Word::Draining, 0),
            }
        }
        Some(offset_of(first))
    }

    /// Frees a marked block into its heap, whose lock is held, and whose work that is.
    fn release(&self, place: Place) {
        let Place { node, offset } = place;
        self.fabric.set_tag(node, granule::<F>(offset).0, 0);
        self.begin_change(node);
        // SAFETY: the lock is held; the block was in use until it was marked, and is released once: it is off the chain.
        unsafe { self.fabric.with_heap(node, |heap| heap.free(offset)) };
        self.fabric.store(node, Word::Work, Work::Nothing.word());
    }

    /// Whether this node is not taken for dead.
    fn in_epoch(&self) -> Result<(), Expelled> {
        let epoch = self.fabric.load(self.me.node, Word::Epoch);
        (epoch == self.me.epoch).then_some(()).ok_or(Expelled)
    }

    /// Says that the heap, whose lock is held, is being changed, before it is.
    fn begin_change(&self, node: Node) {
        self.fabric.store(node, Word::Work, Work::Change.word());
        fence(Ordering::Release);
    }
}

/// The granule that a payload begins in, and whether in its upper half.
fn granule<F: Fabric>(offset: u64) -> (u64, bool) {
    let half = F::Heap::APART / 2;
    debug_assert_eq!(offset % half, 0, "payloads are aligned to half a granule");
    (offset / F::Heap::APART, offset / half % 2 == 1)
}

fn offset_in<F: Fabric>(granule: u64, tag: Tag) -> u64 {
    let half = F::Heap::APART / 2;
    granule * F::Heap::APART + if tag.upper { half } else { 0 }
}

/// A block in a chain; 0 is the end.
fn chained(offset: u64) -> u64 {
    offset | 1
}

fn offset_of(link: u64) -> u64 {
    link & !1
}
