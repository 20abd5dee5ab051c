//! The packet experiment on a part of its space comes to its end and holds, but for one rival.

use metes_cases::easyport::{self, Effort};
use metes_cases::predicted;

#[test]
fn a_part_of_the_space_is_compared() {
    let report = easyport::reproduce(Effort::Quick, &|_| {}).expect("space and trace fit");
    for row in &report.rows {
        println!(
            "{} | {:?} | {:?} | {}",
            row.what, row.paper, row.ours, row.note
        );
    }
    // The few heaps tried, all without size classes, do not reach Lea's sorted bins.
    assert_eq!(
        report.contradicted,
        ["no heap takes less energy than Lea (Linux)"]
    );
    let figure = |what: &str| {
        let row = report.rows.iter().find(|row| row.what == what);
        row.and_then(|row| row.ours)
            .unwrap_or_else(|| panic!("{what}"))
    };
    assert_eq!(figure("sizes"), 59.0);
    assert_eq!(figure("most packets live"), 647.0);
    assert!(figure("heaps") > 100_000.0);
    assert!(figure("footprint, all heaps") > 2.0);
    // The heap's own accesses vary more than those with the program's.
    assert!(figure("accesses of the heap alone, all heaps") > figure("accesses, all heaps"));
    assert!(figure("Pareto-optimal heaps") >= 2.0);
    assert!(figure("footprint, within the front") <= figure("footprint, all heaps"));
    assert!(figure("energy, against Kingsley (Windows CE)") < 0.0);
    assert!(report.assumptions.iter().any(|text| text.contains("QUICK")));
    assert!(
        report
            .assumptions
            .iter()
            .any(|text| text.contains("1 620 000"))
    );
}

#[test]
fn sampled_heaps_run_as_predicted() {
    let report = predicted::reproduce(2, &|_| {}).expect("there is a compiler");
    assert!(report.holds(), "{:?}", report.contradicted);
    let placements = report
        .rows
        .iter()
        .find(|row| row.what.contains("placements"));
    assert_eq!(placements.and_then(|row| row.ours), Some(2.0));
}
