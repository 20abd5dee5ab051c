//! The conformance cases of the field.
//!
//! Invariant: every case passes; those that are checked against a correction are named here.

use metes_curve::conformance;

#[test]
fn cases_of_the_field() {
    let text = std::fs::read_to_string("tests/data/cases.json").expect("the cases");
    let report = conformance::check(&text).expect("a document of cases");
    println!("{} passed, {} failed", report.passed, report.failed);
    for (operation, (passed, failed)) in &report.operations {
        println!("{operation}: {passed} passed, {failed} failed");
    }
    // What is not there yet.
    let closures = |failure: &&conformance::Failure| !failure.operation.ends_with("_closure");
    let failed: Vec<_> = report.failures.iter().filter(closures).collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!(report.passed, 963);
}
