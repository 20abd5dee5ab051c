//! Streams by the names that the device has for them.
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
