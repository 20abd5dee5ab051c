//! Resizing a block while others use the heap.
//!
//! A block that changes its class is copied under the locks of both classes, the smaller one
//! first. Its new page-block is nobody's until its handle turns to it.

use super::super::automaton::{Class, Slot};
use super::super::backing::{Backing, Place, RECORD, Record};
use super::super::handles::{BadHandle, Handle};
use super::super::refusal::{Refused, Resize};
use super::SharedCompactFit;
use super::moves::Compaction;
use crate::lock::Lock;

/// What came of an attempt.
enum Attempt {
    /// The block is resized; a move may follow.
    Done(Option<Compaction>),
    /// The block is being moved.
    Moving(Compaction),
    /// There is no page-block.
    Exhausted,
}

impl<L: Lock + 'static> SharedCompactFit<L> {
    /// Resizes a block within its class, or moves it to another; the handle stays good.
    /// O(1) within the class, else O(bytes of the page-block) in one critical section. A
    /// pinned block is resized only within its class.
    ///
    /// # Errors
    /// [`Resize`]; the block is as it was.
    pub fn resize(&self, handle: Handle, size: usize, align: usize) -> Result<(), Resize> {
        let wanted = self.class_for(size, align).inspect_err(|_| self.failed())?;
        loop {
            match self.attempt(handle, wanted, size)? {
                None => {}
                Some(Attempt::Done(compaction)) => {
                    self.complete(compaction);
                    return Ok(());
                }
                Some(Attempt::Moving(compaction)) => self.complete(Some(compaction)),
                Some(Attempt::Exhausted) => {
                    self.failed();
                    return Err(Resize::Refused(Refused::Exhausted));
                }
            }
        }
    }

    fn failed(&self) {
        self.reserve.hold(|reserve| reserve.counters.failed());
    }

    /// `None` when the block has changed its place meanwhile.
    fn attempt(
        &self,
        handle: Handle,
        wanted: usize,
        size: usize,
    ) -> Result<Option<Attempt>, BadHandle> {
        let place = self.entries.place(handle)?;
        let index = self.class_at(place);
        if index == wanted {
            return self
                .classes
                .hold(index, |_| self.relabel(handle, place, index, size));
        }
        let (low, high) = (index.min(wanted), index.max(wanted));
        self.classes.hold(low, |lower| {
            self.classes.hold(high, |higher| {
                let (old, new) = match index == low {
                    true => (lower, higher),
                    false => (higher, lower),
                };
                self.reclass(handle, place, (index, old), (wanted, new), size)
            })
        })
    }

    /// Whether the block of a handle is at `place`, in a page of class `index`, both of which
    /// are held, and is not being moved.
    fn settled(
        &self,
        handle: Handle,
        place: Place,
        index: usize,
    ) -> Result<Option<Result<(), Compaction>>, BadHandle> {
        if self.class_at(place) != index || !self.entries.stands(handle, place)? {
            return Ok(None);
        }
        Ok(Some(match self.under_way_from(place) {
            Some(compaction) => Err(compaction),
            None => Ok(()),
        }))
    }

    /// Resizes a block within its class, which is held.
    fn relabel(
        &self,
        handle: Handle,
        place: Place,
        index: usize,
        size: usize,
    ) -> Result<Option<Attempt>, BadHandle> {
        self.in_contents_of(place, || {
            match self.settled(handle, place, index)? {
                None => return Ok(None),
                Some(Err(compaction)) => return Ok(Some(Attempt::Moving(compaction))),
                Some(Ok(())) => {}
            }
            self.set_size(place, place, size);
            Ok(Some(Attempt::Done(None)))
        })
    }

    /// Writes the record of the block at `to`, which was at `from`, and counts.
    fn set_size(&self, from: Place, to: Place, size: usize) {
        let record = self.backing.record(from);
        let mut backing = self.backing;
        backing.set_record(
            to,
            Record {
                owner: record.owner,
                size: size as u32,
            },
        );
        self.reserve
            .hold(|reserve| reserve.counters.resized(record.size as usize, size));
    }

    /// Moves a block to another class; both are held.
    fn reclass(
        &self,
        handle: Handle,
        place: Place,
        (index, old): (usize, &mut Class),
        (wanted, new): (usize, &mut Class),
        size: usize,
    ) -> Result<Option<Attempt>, BadHandle> {
        let settled = self.in_contents_of(place, || {
            let settled = self.settled(handle, place, index)?;
            self.entries.unpinned(handle)?;
            Ok(settled)
        })?;
        match settled {
            None => return Ok(None),
            Some(Err(compaction)) => return Ok(Some(Attempt::Moving(compaction))),
            Some(Ok(())) => {}
        }
        // The block stays where it is: whatever ends, pins or moves it needs its class.
        let Some(taken) = self.page_block(new, wanted) else {
            return Ok(Some(Attempt::Exhausted));
        };
        let to = self.place(new, taken);
        self.in_contents_of(place, || {
            let kept = RECORD + size.min(self.backing.record(place).size as usize);
            let mut backing = self.backing;
            backing.carry(place, to, 0..kept);
            self.set_size(place, to, size);
            self.entries.moved(handle.index(), to);
        });
        let slot = self.slot(old, place);
        let (_, compaction) = self.vacate(old, index, slot);
        Ok(Some(Attempt::Done(compaction)))
    }

    /// Takes a page-block of a class that is held.
    fn page_block(&self, class: &mut Class, index: usize) -> Option<Slot> {
        if let Some(number) = self.recallable(class, index) {
            return Some(self.recall(class, number).0);
        }
        let supply = || {
            self.reserve
                .hold(|reserve| reserve.supply.take(&self.table))
        };
        Some(class.allocate(&self.table, supply)?.0)
    }
}
