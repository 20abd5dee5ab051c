//! Planted differences are found and named, and equal sides differ in nothing.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::{Facts, SizeFacts, Thresholds, Verdict, compare};

fn sizes(given: &[(u64, u64, u64)]) -> BTreeMap<u64, SizeFacts> {
    let facts = |&(size, requests, left): &(u64, u64, u64)| {
        let own = SizeFacts {
            requests,
            peak_blocks: requests,
            left: Some(left),
        };
        (size, own)
    };
    given.iter().map(facts).collect()
}

fn facts(given: &[(u64, u64, u64)]) -> Facts {
    Facts {
        peak_live: Some(
            given
                .iter()
                .map(|&(size, requests, _)| size * requests)
                .sum(),
        ),
        left: Some(given.iter().map(|&(size, _, left)| size * left).sum()),
        sizes: sizes(given),
        ..Facts::default()
    }
}

fn worse(before: &Facts, after: &Facts) -> Vec<String> {
    let found = compare(("a", before), ("b", after), &Thresholds::default());
    let worse = found
        .findings
        .iter()
        .filter(|one| one.verdict == Verdict::Worse);
    worse.map(|one| one.sentence.clone()).collect()
}

#[test]
fn a_size_that_grows_over_a_boundary_is_named_and_one_within_its_class_is_not() {
    let before = facts(&[(24, 500, 0), (4096, 100, 0)]);
    let found = worse(&before, &facts(&[(24, 500, 0), (4104, 100, 0)]));
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("4096") && found[0].contains("4104"),
        "{found:?}"
    );
    let before = facts(&[(24, 500, 0), (4097, 100, 0)]);
    assert!(worse(&before, &facts(&[(24, 500, 0), (4104, 100, 0)])).is_empty());
}

#[test]
fn a_leak_is_named_by_its_size() {
    let before = facts(&[(24, 500, 2), (100, 400, 0)]);
    let found = worse(&before, &facts(&[(24, 500, 2), (100, 400, 40)]));
    assert!(
        found
            .iter()
            .any(|one| one.contains("blocks of 100 bytes never freed: 0 before, 40 after")),
        "{found:?}"
    );
}

#[test]
fn results_of_many_runs_are_compared_by_the_largest_and_run_by_run() {
    let document = |large: u64, name: &str| {
        let runs = format!(
            r#"[{{"name":"{name}","peak_live":9,"footprint":{large}}},{{"name":"b","peak_live":9,"footprint":4096}}]"#
        );
        let text = format!(
            r#"{{"kind":"runs","heap":"tlsf","largest":{{"run":"{name}","footprint":{large}}},"runs":{runs}}}"#
        );
        Facts::of_document(&text).unwrap()
    };
    let found = worse(&document(65_536, "a"), &document(90_112, "a"));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(
        found.iter().any(|one| one.contains("footprint of run a")),
        "{found:?}"
    );
    // Runs that only one of them has are no difference.
    assert!(worse(&document(65_536, "a"), &document(65_536, "c")).is_empty());
}

proptest! {
    #[test]
    fn a_side_beside_itself_differs_in_nothing(
        given in prop::collection::vec((1_u64..5000, 1_u64..100, 0_u64..50), 0..20),
    ) {
        let own = facts(&given);
        let found = compare(("a", &own), ("a", &own), &Thresholds::with(&["0".parse().unwrap()]));
        prop_assert_eq!(found.differences().count(), 0);
        prop_assert_eq!(found.worse, 0);
    }

    #[test]
    fn more_of_everything_is_never_better(
        given in prop::collection::vec((1_u64..5000, 1_u64..100, 0_u64..50), 1..20),
    ) {
        let mut given = given;
        given.sort_unstable();
        given.dedup_by_key(|one| one.0);
        let more: Vec<_> = given.iter().map(|&(size, requests, left)| (size, requests * 2, left * 2)).collect();
        let found = compare(("a", &facts(&given)), ("b", &facts(&more)), &Thresholds::default());
        prop_assert!(found.findings.iter().all(|one| one.verdict != Verdict::Better));
    }
}
