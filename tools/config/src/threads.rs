//! The spec of a heap for each thread: `per-thread`, `per-thread:threads=16`.
//!
//! It is no [`Config`](crate::Config): where it puts a block depends on how threads are scheduled, so no replay predicts it.
//!
//! Invariant: what is returned has as many heaps as a process may have.

use crate::error::{Error, Source};
use crate::spec::split;

/// What it is called.
pub(crate) const NAME: &str = "per-thread";

/// A heap for each thread of a process, in front of `tlsf`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadHeap {
    /// Threads that have a heap of their own; all others share one.
    pub threads: usize,
}

/// Most threads with a heap of their own.
pub(crate) const MOST_THREADS: u32 = 1024;

impl Default for ThreadHeap {
    fn default() -> Self {
        ThreadHeap { threads: 256 }
    }
}

impl std::fmt::Display for ThreadHeap {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self == ThreadHeap::default() {
            true => f.write_str(NAME),
            false => write!(f, "{NAME}:threads={}", self.threads),
        }
    }
}

pub(crate) fn parse(text: &str, source: &str) -> Option<Result<ThreadHeap, Error>> {
    let name = text.split_once(':').map_or(text, |(name, _)| name);
    (name == NAME).then(|| read(Source { name: source, text }))
}

fn read(source: Source<'_>) -> Result<ThreadHeap, Error> {
    let (_, mut fields) = split(source)?;
    let mut heap = ThreadHeap::default();
    if let Some((threads, _)) = fields.number("threads", 1, MOST_THREADS)? {
        heap.threads = threads as usize;
    }
    fields.finish()?;
    Ok(heap)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spec_says_how_many_threads() {
        let read =
            |text: &str| parse(text, "heap").map(|found| found.map_err(|error| error.one_line()));
        assert_eq!(read("tlsf"), None);
        assert_eq!(read("per-thread"), Some(Ok(ThreadHeap::default())));
        let some = ThreadHeap { threads: 16 };
        assert_eq!(read("per-thread:threads=16"), Some(Ok(some)));
        assert_eq!(read(&some.to_string()), Some(Ok(some)));
        for bad in [
            "per-thread:threads=0",
            "per-thread:threads=1025",
            "per-thread:store=ledger",
        ] {
            assert!(read(bad).is_some_and(|found| found.is_err()), "{bad}");
        }
        let refused = crate::spec(NAME).expect_err("it is no heap that is predicted");
        assert!(refused.message.contains("metes run"), "{}", refused.message);
    }
}
