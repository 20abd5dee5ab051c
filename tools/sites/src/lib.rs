//! Who allocates: the call stacks of a trace by names, and what was asked of the heap from each.
//!
//! - [`name`] finds the names of a trace's calls in programs, libraries and their debug files;
//! - [`interpreted`](interpreted()) leaves of stacks the calls of code that was made at run time;
//! - [`Sites`] counts requests, bytes, live bytes at the peak, lifetimes and leaks by stack;
//! - [`waste`](waste()) adds what blocks take beyond what was requested, on a heap;
//! - [`folded`](folded()), [`pprof`](pprof()) and [`page`](page()) are for other tools and for a browser.
//!
//! *Invariant:* figures of all sites together, those without a known stack among them, are those of the trace.

mod figures;
mod folded;
mod interpreted;
mod names;
mod page;
mod pprof;
mod tree;
mod waste;

pub use figures::{Figures, Lifetime, Sites};
pub use folded::folded;
pub use interpreted::interpreted;
pub use names::{Named, Unnamed, name, nameless, remove_python};
pub use page::{VERSION, page};
pub use pprof::pprof;
pub use tree::{Call, Inclusive, calls, functions};
pub use waste::{WasteError, waste};

/// What sites are ordered by, and what a flame graph shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum By {
    /// Allocations and resizes.
    Allocations,
    /// Bytes requested.
    Bytes,
    /// Bytes live at the peak.
    Peak,
    /// Bytes never freed.
    Leaked,
    /// Blocks freed before anything else was asked for.
    Temporary,
}

impl By {
    /// All of them.
    pub const ALL: [By; 5] = [
        By::Allocations,
        By::Bytes,
        By::Peak,
        By::Leaked,
        By::Temporary,
    ];

    /// The figure of a site.
    #[must_use]
    pub fn of(self, figures: &Figures) -> u64 {
        match self {
            By::Allocations => figures.allocations + figures.resizes,
            By::Bytes => figures.bytes,
            By::Peak => figures.peak_bytes,
            By::Leaked => figures.leaked_bytes,
            By::Temporary => figures.temporary,
        }
    }
}
