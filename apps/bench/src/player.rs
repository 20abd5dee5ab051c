//! Plays events on a heap: the one loop through which every allocator is driven.
//!
//! Invariant: `handles[slot]` is the handle of the live block of that slot, or
//! zero.

use metes_step::Call;

use crate::peer::{ALIGN, Handle, Kind, Peer, Session};
use crate::workload::{Event, Operation};

/// The blocks held by a caller.
pub(crate) struct Player {
    handles: Vec<Handle>,
}

/// A request that failed: which event of the sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused(pub(crate) usize);

impl Player {
    /// A caller with `slots` empty slots.
    pub(crate) fn new(slots: usize) -> Self {
        Player {
            handles: vec![0; slots],
        }
    }

    /// Plays events one after another and stops at the first refusal.
    pub(crate) fn play(&mut self, session: &Session, events: &[Event]) -> Result<(), Refused> {
        for (index, event) in events.iter().enumerate() {
            if !self.step(session, event) {
                return Err(Refused(index));
            }
        }
        Ok(())
    }

    /// Plays one event; false if the allocator refused it.
    #[inline]
    pub(crate) fn step(&mut self, session: &Session, event: &Event) -> bool {
        let call = self.prepare(session, event);
        // SAFETY: `prepare` makes calls on live blocks only.
        let result = unsafe { call.invoke() };
        self.accept(event, result)
    }

    /// The call that an event stands for, for those who measure calls.
    #[inline]
    pub(crate) fn prepare(&self, session: &Session, event: &Event) -> Call {
        let handle = self.handles[event.slot as usize];
        let heap = session.heap.expose_provenance();
        let calls = &session.calls;
        let plain = event.align <= ALIGN;
        let (function, arguments) = match event.operation {
            Operation::Allocate if plain => (calls.allocate as usize, [event.size, heap, 0, 0, 0]),
            Operation::Allocate => (
                calls.allocate_aligned as usize,
                [event.size, event.align, heap, 0, 0],
            ),
            Operation::Free if plain => (calls.free as usize, [handle, event.size, heap, 0, 0]),
            Operation::Free => (
                calls.free_aligned as usize,
                [handle, event.size, event.align, heap, 0],
            ),
            Operation::Resize => (
                calls.resize as usize,
                [handle, event.old, event.size, event.align, heap],
            ),
        };
        Call {
            function,
            arguments,
        }
    }

    /// Takes the result of a call into account; false if it was a refusal.
    #[inline]
    pub(crate) fn accept(&mut self, event: &Event, result: Handle) -> bool {
        let slot = &mut self.handles[event.slot as usize];
        match event.operation {
            Operation::Free => {
                *slot = 0;
                true
            }
            Operation::Allocate | Operation::Resize if result == 0 => false,
            Operation::Allocate | Operation::Resize => {
                *slot = result;
                true
            }
        }
    }

    /// Gives every block back to an allocator that outlives its session.
    pub(crate) fn release(&mut self, session: &Session, peer: &Peer) {
        if peer.kind != Kind::General {
            return;
        }
        for handle in self.handles.iter_mut().filter(|handle| **handle != 0) {
            // SAFETY: the block is live; process-wide allocators need no size.
            unsafe { (session.calls.free)(*handle, 0, session.heap) };
            *handle = 0;
        }
    }

    /// Handle of a slot, zero if empty.
    #[cfg(all(test, not(feature = "plain")))]
    pub(crate) fn handle(&self, slot: u32) -> Handle {
        self.handles[slot as usize]
    }
}
