//! Why the laboratory cannot work. Invariant: each error says what is wrong and
//! what to do.

use std::path::PathBuf;

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub enum WorstError {
    /// A quantity is zero.
    #[error("{name} is zero; give at least 1")]
    Zero {
        /// Which.
        name: &'static str,
    },
    /// The smallest request is above the largest.
    #[error(
        "the smallest request, {smallest} bytes, is larger than the largest, {largest}: give a \
         smaller --min-block or a larger --max-block"
    )]
    Sizes {
        /// l.
        smallest: u64,
        /// n.
        largest: u64,
    },
    /// M is below the largest request.
    #[error(
        "{live} live bytes have no room for a request of {largest}: give --live of at least \
         {largest}, or a smaller --max-block"
    )]
    Live {
        /// M.
        live: u64,
        /// n.
        largest: u64,
    },
    /// More live blocks, or larger ones, than the laboratory holds.
    #[error(
        "{live} live bytes in requests of {smallest} are more blocks than the {most} that an \
         attack holds: give a smaller --live or a larger --min-block"
    )]
    Blocks {
        /// M.
        live: u64,
        /// l.
        smallest: u64,
        /// How many there may be.
        most: u64,
    },
    /// Too large.
    #[error(
        "{live} live bytes are more than the {most} that an attack asks for: give a smaller --live"
    )]
    Large {
        /// M.
        live: u64,
        /// What there may be.
        most: u64,
    },
    /// Records outside the memory.
    #[error(
        "{heap} keeps its records outside the memory, and attacks place blocks as boundary tags \
         do, so what they found would be of another heap: leave out `store` to attack it with \
         boundary tags, and ask `metes bounds` for what it needs with records outside"
    )]
    Outside {
        /// Which.
        heap: String,
    },
    /// The heap serves no request at all.
    #[error("{heap} serves nothing: its memory levels are too small for its control structures")]
    Unservable {
        /// Which.
        heap: String,
    },
    /// The demand has no bound that could be computed.
    #[error("{0}")]
    Guarantee(#[from] metes_config::GuaranteeError),
    /// No memory, or no stepping.
    #[error("cannot count instructions: {0}")]
    Count(#[source] std::io::Error),
    /// A file that cannot be written.
    #[error("cannot write {}: {source}; choose a place that you may write to", .path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A trace that cannot be written.
    #[error("{0}")]
    Trace(#[from] metes_trace::TraceError),
    /// Anything else, in a sentence: above all what an emulated board said.
    #[error("{0}")]
    Failed(String),
}
