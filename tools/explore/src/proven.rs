//! What is proven of heaps for the demand that a recorded program makes.
//!
//! Invariant: a bound is given only where `metes_heap::bounds` gives one.

use metes_config::Config;
use metes_heap::Description;
use metes_heap::bounds::{self, Bound};
use metes_trace::Profile;

use crate::outcome::Outcome;
use crate::report::DemandFigures;
use crate::target::Target;

/// The bound of a heap with so many bytes of control structures, for every program
/// that keeps to the peak of live bytes and the sizes in a profile. `None` where the
/// demand contradicts what the heap takes. O(size classes squared).
pub fn proven(
    description: &Description,
    control: u64,
    profile: &Profile,
    target: Target,
) -> Option<Bound> {
    let demand = DemandFigures::of(profile).demand();
    if description.partition.is_some() {
        // A partition keeps its records outside: they add nothing to its memory.
        return metes_config::guarantee(&Config::of(*description), &demand).ok();
    }
    let geometry = bounds::Geometry {
        control,
        ..target.bounds()
    };
    bounds::described(description, &geometry, &demand).ok()
}

/// How many of some heaps have a finite bound on their memory.
pub fn bounded<'o>(
    outcomes: impl IntoIterator<Item = &'o Outcome>,
    profile: &Profile,
    target: Target,
) -> usize {
    // The control structures add to a bound, and never make it finite or not.
    let control = target.bounds().control;
    let finite = |outcome: &&Outcome| {
        let bound = proven(&outcome.description, control, profile, target);
        bound.is_some_and(|bound| bound.heap_bytes.is_some())
    };
    outcomes.into_iter().filter(finite).count()
}
