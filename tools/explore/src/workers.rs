//! The threads that explore.
//!
//! *Invariant:* what is found does not depend on how many there are; that the system gives fewer
//! than were asked for ends nothing.

use rayon::{ThreadPool, ThreadPoolBuilder};

/// Threads for a core, at most: more only wait for each other, and each takes memory.
const A_CORE: usize = 8;
/// So many may be had whatever the cores.
const ALWAYS: usize = 64;

/// So many threads, 0 for one a core; no more than are of use, and no more than can be had. `None`
/// only where the caller is one of such threads already: then those do the work.
pub(crate) fn pool(workers: usize) -> Option<ThreadPool> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut count = match workers {
        0 => cores,
        asked => asked.min(ALWAYS.max(A_CORE * cores)),
    };
    while count > 0 {
        if let Ok(pool) = ThreadPoolBuilder::new().num_threads(count).build() {
            return Some(pool);
        }
        count /= 2;
    }
    // No thread is to be had: the caller's own does the work.
    let alone = ThreadPoolBuilder::new().num_threads(1);
    alone.use_current_thread().build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_threads_are_made_than_are_of_use() {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        assert_eq!(pool(0).unwrap().current_num_threads(), cores);
        assert_eq!(pool(3).unwrap().current_num_threads(), 3);
        let most = ALWAYS.max(A_CORE * cores);
        assert_eq!(pool(20_000).unwrap().current_num_threads(), most);
        assert_eq!(pool(usize::MAX).unwrap().current_num_threads(), most);
    }
}
