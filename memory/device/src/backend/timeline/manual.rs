//! A timeline in software, whose streams come as far as a test says.
//!
//! Invariant: no stream comes past a point that was [ordered](Timeline::order) behind another
//! stream's ticket before that stream has come to the ticket, as on a device.

use super::{Error, Stream, Ticket, Timeline};

/// Streams whose progress is said, not made.
#[derive(Debug)]
pub struct Manual {
    streams: Vec<Slot>,
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    followed: bool,
    capturing: bool,
    last: Ticket,
    completed: Ticket,
    /// What is issued behind ticket `.0` runs after stream `.1` has come to ticket `.2`.
    orders: Vec<(Ticket, Stream, Ticket)>,
}

impl Manual {
    /// Follows at most `streams` streams.
    pub fn new(streams: usize) -> Self {
        Manual {
            streams: (0..streams).map(|_| Slot::default()).collect(),
        }
    }

    /// Makes a stream and follows it.
    ///
    /// # Errors
    /// [`Error::Streams`].
    pub fn join(&mut self) -> Result<Stream, Error> {
        let most = self.streams.len();
        let (slot, free) = self
            .streams
            .iter_mut()
            .enumerate()
            .find(|(_, slot)| !slot.followed)
            .ok_or(Error::Streams(most))?;
        let generation = free.generation;
        *free = Slot {
            generation,
            followed: true,
            ..Slot::default()
        };
        Ok(Stream {
            slot: slot as u32,
            generation,
        })
    }

    /// Says that the stream has come to the ticket, if what it was ordered behind lets it.
    ///
    /// # Errors
    /// [`Error::NoStream`]; [`Error::Unmarked`] beyond the stream's last ticket; [`Error::Held`]
    /// if it has to run behind another stream's ticket that has not completed.
    pub fn complete(&mut self, stream: Stream, ticket: Ticket) -> Result<(), Error> {
        let slot = self.slot(stream)?;
        marked(slot, stream, ticket)?;
        // The other streams are looked at between the orders, so each is copied.
        let mut number = 0;
        while let Some(&(behind, other, needed)) = self.slot(stream)?.orders.get(number) {
            if behind >= ticket {
                break;
            }
            // A stream that was left had completed everything.
            if let Ok(other_slot) = self.slot(other)
                && other_slot.completed < needed
            {
                return Err(Error::Held {
                    stream,
                    other,
                    needed,
                });
            }
            number += 1;
        }
        let slot = self.slot(stream)?;
        slot.completed = slot.completed.max(ticket);
        let completed = slot.completed;
        slot.orders.retain(|&(behind, ..)| behind >= completed);
        Ok(())
    }

    /// Begins or ends the capture of a stream into a graph.
    ///
    /// # Errors
    /// [`Error::NoStream`].
    pub fn capture(&mut self, stream: Stream, begins: bool) -> Result<(), Error> {
        self.slot(stream)?.capturing = begins;
        Ok(())
    }

    fn slot(&mut self, stream: Stream) -> Result<&mut Slot, Error> {
        self.streams
            .get_mut(stream.slot())
            .filter(|slot| slot.followed && slot.generation == stream.generation)
            .ok_or(Error::NoStream(stream))
    }
}

fn marked(slot: &Slot, stream: Stream, ticket: Ticket) -> Result<(), Error> {
    if ticket > slot.last {
        return Err(Error::Unmarked {
            stream,
            ticket,
            last: slot.last,
        });
    }
    Ok(())
}

impl Timeline for Manual {
    fn streams(&self) -> usize {
        self.streams.len()
    }

    fn mark(&mut self, stream: Stream, ticket: Ticket) -> Result<(), Error> {
        let slot = self.slot(stream)?;
        let last = slot.last;
        if ticket <= last {
            return Err(Error::Order {
                stream,
                ticket,
                last,
            });
        }
        if slot.capturing {
            return Err(Error::Capturing(stream));
        }
        slot.last = ticket;
        Ok(())
    }

    fn completed(&mut self, stream: Stream) -> Result<Ticket, Error> {
        Ok(self.slot(stream)?.completed)
    }

    /// Lets time pass: whatever must have run before the ticket completes, on other streams too.
    fn wait(&mut self, stream: Stream, ticket: Ticket) -> Result<(), Error> {
        marked(self.slot(stream)?, stream, ticket)?;
        // Orders name tickets that were marked before them, so they cannot go round in circles.
        loop {
            match self.complete(stream, ticket) {
                Err(Error::Held { other, needed, .. }) => self.wait(other, needed)?,
                done => return done,
            }
        }
    }

    fn order(&mut self, waiter: Stream, stream: Stream, ticket: Ticket) -> Result<(), Error> {
        let slot = self.slot(stream)?;
        marked(slot, stream, ticket)?;
        let completed = slot.completed;
        let waiting = self.slot(waiter)?;
        if waiting.capturing {
            return Err(Error::Capturing(waiter));
        }
        if waiter != stream && ticket > completed {
            let behind = waiting.last;
            // Of several behind one ticket the greatest says it all.
            let last = waiting.orders.iter_mut().rev();
            let mut last = last.take_while(|order| order.0 == behind);
            match last.find(|order| order.1 == stream) {
                Some(order) => order.2 = order.2.max(ticket),
                None => waiting.orders.push((behind, stream, ticket)),
            }
        }
        Ok(())
    }

    fn capturing(&mut self, stream: Stream) -> Result<bool, Error> {
        Ok(self.slot(stream)?.capturing)
    }

    fn leave(&mut self, stream: Stream) -> Result<(), Error> {
        let last = self.slot(stream)?.last;
        self.wait(stream, last)?;
        let slot = self.slot(stream)?;
        slot.followed = false;
        slot.generation = slot.generation.wrapping_add(1);
        Ok(())
    }
}
