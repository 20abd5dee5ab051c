//! The conformance cases of the field.
//!
//! Invariant: every case passes; those that are checked against a correction are named here.

use metes_curve::{Algebra, conformance};

#[test]
fn cases_of_the_field() {
    let text = std::fs::read_to_string("tests/data/cases.json").expect("the cases");
    let report = conformance::check(&text, &Algebra::default()).expect("a document of cases");
    println!("{} passed, {} failed", report.passed, report.failed);
    for (operation, (passed, failed)) in &report.operations {
        println!("{operation}: {passed} passed, {failed} failed");
    }
    let failures: Vec<_> = report.failures.iter().map(|failure| &failure.id).collect();
    assert_eq!(failures, Vec::<&String>::new());
    assert_eq!(report.passed, 984);
    // It is finite at no time at which it would be 3 or less, and the last of none is −∞.
    let corrected = report.corrected.iter().map(|case| case.id.as_str());
    assert_eq!(corrected.collect::<Vec<_>>(), ["upper_pseudo_inverse-0929"]);
}
