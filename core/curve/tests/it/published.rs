//! The convolutions of the published pairs, at times from all over the result.
//!
//! Invariant: a result that brute force does not find fails.

use metes_curve::{Algebra, Curve, Rational, published};

const PAIRS: &str = "tests/data/published_pairs.json";

#[test]
fn published_pairs_are_convolved_right() {
    let text = std::fs::read_to_string(PAIRS).expect("the pairs");
    let sets = published::bench(&text, &Algebra::default()).expect("a document");
    assert_eq!(sets.len(), 4);
    for set in sets {
        assert_eq!((set.pairs, set.wrong), (100, 0), "{}", set.name);
    }
}

#[test]
fn a_wrong_result_is_noticed() {
    let stairs = |period: i64, step: i64| {
        let text = format!(
            r#"{{"T":"0","d":"{period}","c":"{step}","elements":[
                {{"k":"p","t":"0","v":"0"}},
                {{"k":"s","t0":"0","t1":"{period}","v0":"{step}","slope":"0"}}]}}"#
        );
        Curve::from_json(&text).expect("a curve")
    };
    let (f, g) = (stairs(5, 3), stairs(7, 4));
    let result = f.convolution(&g).expect("a result");
    assert!(published::is_right(&f, &g, &result));
    assert!(!published::is_right(
        &f,
        &g,
        &f.minimum(&result)
            .expect("a minimum")
            .sum(&result)
            .expect("a sum")
    ));
    assert_ne!(
        result.value(&Rational::from(40)),
        f.sum(&g).expect("a sum").value(&Rational::from(40))
    );
}
