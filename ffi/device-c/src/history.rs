//! What happened to blocks: the last so many allocations, frees and refusals.
//!
//! Invariant: nothing is kept, and no time is asked for, until it is wanted; room for a million
//! events at most is taken when it is, and more as they come.

use std::collections::VecDeque;
use std::time::{SystemTime, UNIX_EPOCH};

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Action {
    /// A block was allocated.
    Allocate,
    /// A block was freed.
    Free,
    /// A request was refused, as no memory was left.
    Refusal,
}

/// `metes_device_event`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Event {
    address: u64,
    bytes: u64,
    stream: u64,
    microseconds: u64,
    action: Action,
}

impl Event {
    /// An event whose time is written when it is kept.
    pub(crate) fn now(action: Action, address: u64, bytes: u64, stream: u64) -> Self {
        Event {
            address,
            bytes,
            stream,
            microseconds: 0,
            action,
        }
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct History {
    events: VecDeque<Event>,
    most: usize,
}

impl History {
    /// Forgets everything, and keeps up to `most` events from now on; 0 keeps none.
    pub(crate) fn keep(&mut self, most: usize) {
        self.events = VecDeque::new();
        // A limit that means "all there will be" is no reason to take so much room now.
        self.events.reserve(most.min(1 << 20));
        self.most = most;
    }

    pub(crate) fn note(&mut self, event: Event) {
        if self.most == 0 {
            return;
        }
        if self.events.len() == self.most {
            self.events.pop_front();
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH);
        self.events.push_back(Event {
            microseconds: since.map_or(0, |since| since.as_micros() as u64),
            ..event
        });
    }

    pub(crate) fn events(&self) -> impl ExactSizeIterator<Item = &Event> {
        self.events.iter()
    }
}
