//! Ctrl-C during a search: the first ends the search, the second the program.
//!
//! Invariant: the handlers only set or test a flag.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

use crate::error::Failure;

/// Exit status of a program that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// A flag that the first SIGINT or SIGTERM from now on sets.
pub(crate) fn flag() -> Result<Arc<AtomicBool>, Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let refused =
        |error| Failure::input(format!("the system gives no handler for Ctrl-C: {error}"));
    for signal in [SIGINT, SIGTERM] {
        // Tested before it is set: only a second signal finds it set.
        flag::register_conditional_shutdown(signal, INTERRUPTED, Arc::clone(&stop))
            .map_err(refused)?;
        flag::register(signal, Arc::clone(&stop)).map_err(refused)?;
    }
    Ok(stop)
}
