//! Timelines: how far the streams of a device have come.
//!
//! Work that is issued to a *stream* (a stream of CUDA, a command queue of OpenCL) runs after
//! the call that issued it, in order. Whoever frees memory that issued work still uses gives
//! the stream a *ticket*, a number that only grows, and reuses the memory once the stream has
//! come that far. One ticket serves any number of frees: a timeline records no event for each.
//!
//! Invariant: a ticket counts as completed only when everything issued to its stream before it
//! was marked has run. What a timeline does not know for sure it reports as not completed.

mod manual;
#[cfg(any(feature = "cuda", feature = "opencl"))]
pub(crate) mod tracked;

use core::fmt::{self, Debug, Display};

pub use manual::Manual;

/// A point in the work of a stream. Of one stream, later points have greater tickets.
pub type Ticket = u64;

/// A stream that a timeline follows.
///
/// Names the stream until the timeline [leaves](Timeline::leave) it, and nothing after that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Stream {
    slot: u32,
    generation: u32,
}

impl Stream {
    /// The stream that a timeline of one's own follows in a slot, for the so-manieth time.
    pub const fn new(slot: u32, generation: u32) -> Self {
        Stream { slot, generation }
    }

    /// Its place among the streams that the timeline follows now: less than
    /// [`Timeline::streams`], and used again after it was left.
    pub const fn slot(self) -> usize {
        self.slot as usize
    }
}

impl Display for Stream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.slot, self.generation)
    }
}

/// Why a timeline refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The timeline does not follow that stream, or the device knows it no more.
    #[error("stream {0} was destroyed or left, or never joined: join it before using it")]
    NoStream(Stream),
    /// As many streams are followed as the timeline was made for.
    #[error("{0} streams are followed already: leave one, or make the timeline for more")]
    Streams(usize),
    /// A ticket does not grow.
    #[error(
        "ticket {ticket} does not follow {last}, the last of stream {stream}: tickets must grow"
    )]
    Order {
        /// Whose ticket.
        stream: Stream,
        /// The ticket.
        ticket: Ticket,
        /// The stream's last ticket.
        last: Ticket,
    },
    /// A ticket was not marked: waiting for it would never end.
    #[error("ticket {ticket} of stream {stream} is not marked, {last} was the last: mark it first")]
    Unmarked {
        /// Whose ticket.
        stream: Stream,
        /// The ticket.
        ticket: Ticket,
        /// The stream's last ticket.
        last: Ticket,
    },
    /// A stream must not come to a ticket yet ([`Manual`] alone says so).
    #[error("stream {stream} runs behind ticket {needed} of stream {other}: complete that first")]
    Held {
        /// Who is held up.
        stream: Stream,
        /// By whom.
        other: Stream,
        /// The other's ticket.
        needed: Ticket,
    },
    /// The stream is recorded into a graph, so that its work has no time.
    #[error(
        "stream {0} is being captured into a graph, its work does not run yet: end the capture first"
    )]
    Capturing(Stream),
    /// The device or its driver reported an error.
    #[error(transparent)]
    Backend(#[from] super::Error),
}

/// How far the streams of a device have come.
///
/// A timeline takes all memory it needs when it is made. At any time it knows a bounded number
/// of points of each stream; if more are marked than that, it forgets the last but one, and
/// tickets up to it complete with the last.
pub trait Timeline: Debug {
    /// How many streams it can follow at a time.
    fn streams(&self) -> usize;

    /// Gives everything issued to the stream so far a ticket.
    ///
    /// # Errors
    /// [`Error::NoStream`], [`Error::Order`] unless the ticket is greater than the stream's last
    /// (and than 0), [`Error::Capturing`], [`Error::Backend`].
    fn mark(&mut self, stream: Stream, ticket: Ticket) -> Result<(), Error>;

    /// The greatest ticket that the stream was marked with and has come to; 0 if none. Waits
    /// for nobody.
    ///
    /// # Errors
    /// [`Error::NoStream`], [`Error::Backend`].
    fn completed(&mut self, stream: Stream) -> Result<Ticket, Error>;

    /// Waits on the host until the stream has come to the ticket; if it was not marked with
    /// that one, to the next that it was marked with.
    ///
    /// # Errors
    /// [`Error::NoStream`], [`Error::Unmarked`] if the ticket is beyond the stream's last,
    /// [`Error::Backend`].
    fn wait(&mut self, stream: Stream, ticket: Ticket) -> Result<(), Error>;

    /// Lets what is issued to `waiter` from now on run after `stream` has come to the ticket,
    /// or as [`wait`](Timeline::wait) to the next; the host goes on.
    ///
    /// # Errors
    /// [`Error::NoStream`], [`Error::Unmarked`], [`Error::Capturing`], [`Error::Backend`].
    fn order(&mut self, waiter: Stream, stream: Stream, ticket: Ticket) -> Result<(), Error>;

    /// Whether the stream is being captured into a graph.
    ///
    /// # Errors
    /// [`Error::NoStream`], [`Error::Backend`].
    fn capturing(&mut self, stream: Stream) -> Result<bool, Error>;

    /// Waits for what was marked on the stream, and follows it no longer: to be called before
    /// the stream is destroyed. All tickets of the stream have completed then.
    ///
    /// # Errors
    /// [`Error::NoStream`], [`Error::Backend`].
    fn leave(&mut self, stream: Stream) -> Result<(), Error>;
}
