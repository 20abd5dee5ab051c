//! Streams by the names that the device has for them.
//!
//! Beside those of the device there is one stream more, that of graphs: it has the blocks that
//! work uses which was captured, and which are kept from all other streams by their pool, until
//! the device was waited for.
//!
//! Invariant: a name is followed under one [`Stream`] until it is left.

use metes_device::backend::cuda::{self, CUstream};
use metes_device::backend::timeline::{Error, Manual, Stream, Ticket, Timeline};

/// A timeline that knows streams by the device's own names.
pub(crate) trait Follow: Timeline + Send {
    /// Follows a stream; one that is followed already keeps its name.
    fn follow(&mut self, raw: u64) -> Result<Stream, Error>;
}

/// `CU_STREAM_LEGACY`, another name of the default stream.
const LEGACY: u64 = 1;
/// `CU_STREAM_PER_THREAD`: the default stream of whoever calls.
pub(crate) const PER_THREAD: u64 = 2;

impl Follow for cuda::Streams {
    fn follow(&mut self, raw: u64) -> Result<Stream, Error> {
        let raw = if raw == LEGACY { 0 } else { raw };
        // SAFETY: whoever calls the C functions promises a stream of the device that is not
        // destroyed before it was left.
        unsafe { self.join(raw as CUstream) }
    }
}

/// What the stream of graphs is called.
pub(crate) const GRAPHS: u64 = u64::MAX - 1;

/// A timeline, and the stream of graphs behind its own. What is freed for that one has been
/// waited for.
#[derive(Debug)]
pub(crate) struct WithGraphs<T> {
    own: T,
    last: Ticket,
}

impl<T: Follow> WithGraphs<T> {
    pub(crate) fn new(own: T) -> Self {
        WithGraphs { own, last: 0 }
    }

    fn graphs(&self) -> Stream {
        Stream::new(self.own.streams() as u32, 0)
    }
}

impl<T: Follow> Follow for WithGraphs<T> {
    fn follow(&mut self, raw: u64) -> Result<Stream, Error> {
        match raw {
            GRAPHS => Ok(self.graphs()),
            raw => self.own.follow(raw),
        }
    }
}

impl<T: Follow> Timeline for WithGraphs<T> {
    fn streams(&self) -> usize {
        self.own.streams() + 1
    }

    fn mark(&mut self, stream: Stream, ticket: Ticket) -> Result<(), Error> {
        if stream != self.graphs() {
            return self.own.mark(stream, ticket);
        }
        if ticket <= self.last {
            return Err(Error::Order {
                stream,
                ticket,
                last: self.last,
            });
        }
        self.last = ticket;
        Ok(())
    }

    fn completed(&mut self, stream: Stream) -> Result<Ticket, Error> {
        if stream != self.graphs() {
            return self.own.completed(stream);
        }
        Ok(self.last)
    }

    fn wait(&mut self, stream: Stream, ticket: Ticket) -> Result<(), Error> {
        if stream != self.graphs() {
            return self.own.wait(stream, ticket);
        }
        Ok(())
    }

    /// A graph runs behind whatever was waited for before it was captured, not behind a stream.
    fn order(&mut self, waiter: Stream, stream: Stream, ticket: Ticket) -> Result<(), Error> {
        if stream == self.graphs() {
            return Ok(());
        }
        if waiter == self.graphs() {
            return self.own.wait(stream, ticket);
        }
        self.own.order(waiter, stream, ticket)
    }

    fn capturing(&mut self, stream: Stream) -> Result<bool, Error> {
        if stream == self.graphs() {
            return Ok(false);
        }
        self.own.capturing(stream)
    }

    fn leave(&mut self, stream: Stream) -> Result<(), Error> {
        if stream == self.graphs() {
            return Err(Error::NoStream(stream));
        }
        self.own.leave(stream)
    }
}

/// Streams of the host: what is issued has been done when the call returns.
#[derive(Debug)]
pub(crate) struct Done {
    streams: Manual,
    names: Vec<Option<(u64, Stream)>>,
}

impl Done {
    pub(crate) fn new(streams: usize) -> Self {
        Done {
            streams: Manual::new(streams),
            names: vec![None; streams],
        }
    }
}

impl Follow for Done {
    fn follow(&mut self, raw: u64) -> Result<Stream, Error> {
        if let Some((_, stream)) = self.names.iter().flatten().find(|(name, _)| *name == raw) {
            return Ok(*stream);
        }
        let stream = self.streams.join()?;
        self.names[stream.slot()] = Some((raw, stream));
        Ok(stream)
    }
}

impl Timeline for Done {
    fn streams(&self) -> usize {
        self.streams.streams()
    }

    fn mark(&mut self, stream: Stream, ticket: Ticket) -> Result<(), Error> {
        self.streams.mark(stream, ticket)?;
        self.streams.complete(stream, ticket)
    }

    fn completed(&mut self, stream: Stream) -> Result<Ticket, Error> {
        self.streams.completed(stream)
    }

    fn wait(&mut self, stream: Stream, ticket: Ticket) -> Result<(), Error> {
        self.streams.wait(stream, ticket)
    }

    fn order(&mut self, waiter: Stream, stream: Stream, ticket: Ticket) -> Result<(), Error> {
        self.streams.order(waiter, stream, ticket)
    }

    fn capturing(&mut self, stream: Stream) -> Result<bool, Error> {
        self.streams.capturing(stream)
    }

    fn leave(&mut self, stream: Stream) -> Result<(), Error> {
        self.streams.leave(stream)?;
        self.names[stream.slot()] = None;
        Ok(())
    }
}
