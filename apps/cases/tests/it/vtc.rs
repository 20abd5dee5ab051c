//! The texture experiment comes to its end and holds.

use metes_cases::vtc;

#[test]
fn forty_heaps_are_compared() {
    let report = vtc::reproduce().expect("trace, heaps and hierarchy go together");
    println!("{report:#?}");
    assert!(report.holds(), "{:?}", report.contradicted);
    let figure = |what: &str| {
        let row = report.rows.iter().find(|row| row.what.starts_with(what));
        row.and_then(|row| row.ours)
            .unwrap_or_else(|| panic!("{what}"))
    };
    assert_eq!(figure("heaps tried"), 40.0);
    assert!(figure("energy, best of them") < -10.0);
    // What the paper calls minimal: two lines fit the smallest scratchpad.
    assert!(figure("energy, effect of the scratchpad") < 100.0);
    assert!(figure("energy, all lines") < figure("energy, best of them"));
    assert!(report.assumptions.len() >= 5);
}
