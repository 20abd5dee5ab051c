//! Calls of foreign code that may panic on bytes of unknown origin.
//!
//! *Invariant:* what panics there prints nothing; what panics elsewhere, on any thread, is told as ever.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

static HOOK: Once = Once::new();

/// What a call gives; `None` if it panics.
pub fn caught<T>(call: impl FnOnce() -> T) -> Option<T> {
    HOOK.call_once(|| {
        let told = take_hook();
        set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                told(panic);
            }
        }));
    });
    let before = QUIET.replace(true);
    let result = catch_unwind(AssertUnwindSafe(call));
    QUIET.set(before);
    result.ok()
}
