//! Ten thousand random sets; `examples/campaign` tries as many as one likes.

use metes_admission::campaign::{Deadlines, Tally, campaign};

#[test]
fn what_is_admitted_meets_all_deadlines_and_what_is_refused_misses_one() {
    let mut all = Tally::default();
    for load in [60, 75, 85, 95, 102] {
        for deadlines in [Deadlines::Constrained, Deadlines::Arbitrary] {
            all.add(&campaign(1000, 7, load, deadlines));
        }
    }
    assert!(all.holds(), "{all:?}");
    assert_eq!(all.sets, 10_000);
    // The sets are of all kinds.
    assert!(all.too_long < 100 && all.certified > 100, "{all:?}");
    assert!(all.admitted > 1000 && all.met < 9000, "{all:?}");
    assert!(
        all.density < all.admitted && all.admitted < all.utilisation,
        "{all:?}"
    );
    assert!(all.sched_deadline_missed > 100, "{all:?}");
}
