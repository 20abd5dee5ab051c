//! Timelines over events of a device: for each stream a short queue of points, oldest first.
//!
//! Invariant: the queue of a stream holds its points in the order of their tickets, none of
//! which had run when last looked at, and never more than [`DEPTH`]. All tickets up to
//! `completed` have run; those between two points complete with the later one.

use core::fmt::Debug;
use std::collections::VecDeque;

use super::{Error, Stream, Ticket, Timeline};
use crate::backend;

/// Points of a stream that are known at a time. If a further one is marked, it takes the place
/// of the last, with which less is known but nothing wrong.
pub(crate) const DEPTH: usize = 8;

/// What a device must be able to do with events.
pub(crate) trait Events: Debug {
    /// The device's own name of a stream.
    type Raw: Copy + PartialEq + Debug;
    /// A point in the work of a stream.
    type Event: Copy + Debug;

    /// Begins to follow a stream.
    fn meet(&mut self, raw: Self::Raw) -> Result<(), backend::Error>;
    /// Follows it no longer.
    fn part(&mut self, raw: Self::Raw);
    /// An event behind everything issued to the stream so far.
    fn record(&mut self, raw: Self::Raw) -> Result<Self::Event, backend::Error>;
    /// Takes an event back.
    fn retire(&mut self, event: Self::Event);
    /// Whether what is before the event has run.
    fn has_run(&mut self, event: Self::Event) -> Result<bool, backend::Error>;
    /// Waits for it.
    fn wait(&mut self, event: Self::Event) -> Result<(), backend::Error>;
    /// Lets what is issued to the stream from now on run behind the event.
    fn order(&mut self, raw: Self::Raw, event: Self::Event) -> Result<(), backend::Error>;
    /// Whether the stream is being captured into a graph.
    fn capturing(&mut self, raw: Self::Raw) -> Result<bool, backend::Error>;
    /// Whether the error says that there is no such stream.
    fn is_gone(error: &backend::Error) -> bool;
}

/// A timeline over events.
#[derive(Debug)]
pub(crate) struct Tracked<E: Events> {
    pub(crate) events: E,
    slots: Vec<Slot<E>>,
}

#[derive(Debug)]
struct Slot<E: Events> {
    generation: u32,
    raw: Option<E::Raw>,
    last: Ticket,
    completed: Ticket,
    points: VecDeque<(Ticket, E::Event)>,
}

impl<E: Events> Tracked<E> {
    pub(crate) fn new(events: E, streams: usize) -> Self {
        let slot = || Slot {
            generation: 0,
            raw: None,
            last: 0,
            completed: 0,
            points: VecDeque::with_capacity(DEPTH),
        };
        Tracked {
            events,
            slots: (0..streams).map(|_| slot()).collect(),
        }
    }

    /// Follows a stream; one that is followed already keeps its name.
    pub(crate) fn join(&mut self, raw: E::Raw) -> Result<Stream, Error> {
        let most = self.slots.len();
        let known = self.slots.iter().position(|slot| slot.raw == Some(raw));
        let free = || self.slots.iter().position(|slot| slot.raw.is_none());
        let place = known.or_else(free).ok_or(Error::Streams(most))?;
        if known.is_none() {
            self.events.meet(raw)?;
        }
        let slot = &mut self.slots[place];
        if known.is_none() {
            slot.raw = Some(raw);
            (slot.last, slot.completed) = (0, 0);
        }
        Ok(Stream {
            slot: place as u32,
            generation: slot.generation,
        })
    }

    /// The device's name of a stream.
    fn raw(&self, stream: Stream) -> Result<E::Raw, Error> {
        self.slots
            .get(stream.slot())
            .filter(|slot| slot.generation == stream.generation)
            .and_then(|slot| slot.raw)
            .ok_or(Error::NoStream(stream))
    }

    /// The first point at or behind the ticket, if that has not run.
    fn point(&self, stream: Stream, ticket: Ticket) -> Result<Option<E::Event>, Error> {
        let slot = &self.slots[stream.slot()];
        if ticket > slot.last {
            return Err(Error::Unmarked {
                stream,
                ticket,
                last: slot.last,
            });
        }
        if ticket <= slot.completed {
            return Ok(None);
        }
        let point = slot.points.iter().find(|(point, _)| *point >= ticket);
        Ok(point.map(|&(_, event)| event))
    }

    /// Takes the points off whose work has run.
    fn advance(&mut self, stream: Stream) -> Result<Ticket, Error> {
        let slot = &mut self.slots[stream.slot()];
        while let Some(&(ticket, event)) = slot.points.front() {
            if !told::<E, _>(stream, self.events.has_run(event))? {
                break;
            }
            slot.points.pop_front();
            slot.completed = ticket;
            self.events.retire(event);
        }
        Ok(slot.completed)
    }
}

/// The device's answer about a stream.
fn told<E: Events, T>(stream: Stream, answer: Result<T, backend::Error>) -> Result<T, Error> {
    answer.map_err(|error| {
        if E::is_gone(&error) {
            Error::NoStream(stream)
        } else {
            Error::Backend(error)
        }
    })
}

impl<E: Events> Timeline for Tracked<E> {
    fn streams(&self) -> usize {
        self.slots.len()
    }

    fn mark(&mut self, stream: Stream, ticket: Ticket) -> Result<(), Error> {
        let raw = self.raw(stream)?;
        let last = self.slots[stream.slot()].last;
        if ticket <= last {
            return Err(Error::Order {
                stream,
                ticket,
                last,
            });
        }
        if self.capturing(stream)? {
            return Err(Error::Capturing(stream));
        }
        if self.slots[stream.slot()].points.len() == DEPTH {
            self.advance(stream)?;
        }
        let event = told::<E, _>(stream, self.events.record(raw))?;
        let slot = &mut self.slots[stream.slot()];
        if slot.points.len() == DEPTH
            && let Some((_, replaced)) = slot.points.pop_back()
        {
            self.events.retire(replaced);
        }
        slot.points.push_back((ticket, event));
        slot.last = ticket;
        Ok(())
    }

    fn completed(&mut self, stream: Stream) -> Result<Ticket, Error> {
        self.raw(stream)?;
        self.advance(stream)
    }

    fn wait(&mut self, stream: Stream, ticket: Ticket) -> Result<(), Error> {
        self.raw(stream)?;
        if let Some(event) = self.point(stream, ticket)? {
            told::<E, _>(stream, self.events.wait(event))?;
            self.advance(stream)?;
        }
        Ok(())
    }

    fn order(&mut self, waiter: Stream, stream: Stream, ticket: Ticket) -> Result<(), Error> {
        let raw = self.raw(waiter)?;
        self.raw(stream)?;
        let point = self.point(stream, ticket)?;
        if self.capturing(waiter)? {
            return Err(Error::Capturing(waiter));
        }
        // A stream runs in order, so it is behind its own tickets anyway.
        if waiter != stream
            && let Some(event) = point
        {
            told::<E, _>(waiter, self.events.order(raw, event))?;
        }
        Ok(())
    }

    fn capturing(&mut self, stream: Stream) -> Result<bool, Error> {
        let raw = self.raw(stream)?;
        told::<E, _>(stream, self.events.capturing(raw))
    }

    fn leave(&mut self, stream: Stream) -> Result<(), Error> {
        self.raw(stream)?;
        let last = self.slots[stream.slot()].last;
        self.wait(stream, last)?;
        let slot = &mut self.slots[stream.slot()];
        slot.generation = slot.generation.wrapping_add(1);
        if let Some(raw) = slot.raw.take() {
            self.events.part(raw);
        }
        Ok(())
    }
}

impl<E: Events> Drop for Tracked<E> {
    fn drop(&mut self) {
        for slot in &mut self.slots {
            for (_, event) in slot.points.drain(..) {
                self.events.retire(event);
            }
            if let Some(raw) = slot.raw.take() {
                self.events.part(raw);
            }
        }
    }
}
