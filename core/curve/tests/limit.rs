//! The limit holds on every path, before memory is taken: scripts of huge numbers under a small
//! limit, their memory counted.
//!
//! *Invariant:* whatever is computed, a piece of the limit costs a bounded number of bytes.

use metes_curve::plan::Plan;
use metes_curve::plot::{Options, Picture};
use metes_curve::script::{Found, Interpreter};
use metes_curve::{Algebra, Curve, Error, Rational};
use metes_peak::{Counting, peak};
use proptest::prelude::*;

#[global_allocator]
static COUNTED: Counting = Counting;

/// Pieces, or pairs of them, that an operation may look at.
const LIMIT: u64 = 1_000;

/// Bytes that a piece of the limit may cost: some copies of it, on numbers of any length.
const BYTES: usize = 4 << 10;

fn algebra() -> Algebra {
    Algebra {
        limit: LIMIT,
        ..Algebra::default()
    }
}

/// What an expression gives under the limit, having taken no more memory than it may.
#[track_caller]
fn evaluated(expression: &str) -> Result<Found, String> {
    let (found, bytes) = peak(|| Interpreter::new(algebra()).evaluate(expression));
    assert!(
        bytes <= LIMIT as usize * BYTES,
        "`{expression}` took {bytes} bytes"
    );
    found.map_err(|error| error.to_string())
}

#[test]
fn kernels_of_whole_numbers_keep_to_it() {
    for expression in [
        "stair(999999999999, 12, 1) * ratency(1, 3)",
        "stair(999999999, 12, 1) * ratency(1, 3)",
        "stair(99999999999, 3, 1) *^ zero",
        "stair(999999999, 3, 1) * stair(0, 2, 5)",
        "(stair(999999999, 3, 1) /\\ stair(7, 4, 2)) * bucket(9, 2)",
        "hShift(stair(0, 1, 1), -99999999999)",
        "periodic(1000003, 999999999, 1, 7)",
        "star(stair(999999999, 3, 1) + 1)",
        "floor(affine(999999999999, 1))",
        "hDev(stair(0, 1, 1), ratency(1, 99999999999))",
    ] {
        let result = evaluated(expression);
        if let Err(error) = result {
            assert!(
                error.contains("more than the limit"),
                "{expression}: {error}"
            );
        }
    }
}

#[test]
fn chains_and_pictures_keep_to_it() {
    let curve = |text: &str| match Interpreter::default().evaluate(text) {
        Ok(Found::Curve(curve)) => curve,
        other => panic!("{text}: {other:?}"),
    };
    let curves = [
        "stair(999999999999, 12, 1)",
        "ratency(1, 3)",
        "stair(5, 2, 3)",
        "bucket(1, 9)",
    ]
    .map(curve);
    let (_, bytes) = peak(|| algebra().chain(&curves, &Plan::Automatic));
    assert!(bytes <= LIMIT as usize * BYTES, "{bytes}");
    let named = [(String::new(), curve("stair(0, 1, 1)"))];
    let options = Options {
        times: Some((Rational::from(0), Rational::from(1 << 40))),
        ..Options::default()
    };
    let (picture, bytes) = peak(|| Picture::new(&named, &options, LIMIT));
    assert!(matches!(picture, Err(Error::TooLarge { .. })));
    assert!(bytes <= LIMIT as usize * BYTES, "{bytes}");
}

#[test]
fn curves_of_json_keep_to_it() {
    let json = r#"{"T":"999999999999","d":"12","c":"1","elements":[
        {"k":"p","t":"0","v":"0"},
        {"k":"s","t0":"0","t1":"999999999999","v0":"0","slope":"0"},
        {"k":"p","t":"999999999999","v":"0"},
        {"k":"s","t0":"999999999999","t1":"1000000000011","v0":"1","slope":"0"}]}"#;
    let late = Curve::from_json(json).expect("a curve");
    let service = Curve::rate_latency(&Rational::from(1), &Rational::from(3)).expect("a curve");
    for (f, g) in [(&late, &service), (&service, &late)] {
        let (_, bytes) = peak(|| algebra().convolution(f, g));
        assert!(bytes <= LIMIT as usize * BYTES, "{bytes}");
    }
}

/// Numbers of all sizes.
fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (0..40_i64).prop_map(|number| number.to_string()),
        2 => ((0..40_i64), (1..12_i64)).prop_map(|(over, under)| format!("{over}/{under}")),
        2 => (1_000_000..4_000_000_000_000_i64).prop_map(|number| number.to_string()),
        1 => Just("9223372036854775807".to_owned()),
        1 => Just("999999999999999999999999999/1000000007".to_owned()),
    ]
}

fn expression() -> impl Strategy<Value = String> {
    let n = number;
    let leaf = prop_oneof![
        (n(), n(), n()).prop_map(|(a, b, c)| format!("stair({a}, {b}, {c})")),
        (n(), n(), n()).prop_map(|(a, b, c)| format!("stair_at({a}, {b}, {c})")),
        (n(), n()).prop_map(|(a, b)| format!("ratency({a}, {b})")),
        (n(), n()).prop_map(|(a, b)| format!("bucket({a}, {b})")),
        (n(), n()).prop_map(|(a, b)| format!("affine({a}, -{b})")),
        (n(), n()).prop_map(|(a, b)| format!("step({a}, {b})")),
        (n(), n(), n()).prop_map(|(a, b, c)| format!("tdma({a}, {b}, {c})")),
        (n(), n(), n(), n()).prop_map(|(a, b, c, d)| format!("periodic({a}, {b}, {c}, {d})")),
        n().prop_map(|a| format!("delay({a})")),
        (n(), n(), n()).prop_map(|(a, b, c)| {
            format!(
                "upp([(0, {a})] ](0, {a}) 0 ({b}, {a})[, period([({b}, {a}) 0 ({b}1, {a})[), {c})"
            )
        }),
        Just("zero".to_owned()),
        Just("epsilon".to_owned()),
    ];
    leaf.prop_recursive(3, 12, 2, move |inner| {
        let one = || inner.clone();
        let operator =
            proptest::sample::select(vec!["*", "*^", "/", "/^", "/\\", "\\/", "+", "-", "comp"]);
        let function = proptest::sample::select(vec![
            "star",
            "superstar",
            "inv",
            "up_inv",
            "upclosure",
            "lowclosure",
            "nnupclosure",
            "left-ext",
            "right-ext",
            "floor",
            "ceil",
        ]);
        let deviation = proptest::sample::select(vec!["hDev", "vDev", "zdev"]);
        prop_oneof![
            4 => (one(), operator, one()).prop_map(|(f, sign, g)| format!("({f} {sign} {g})")),
            2 => (function, one()).prop_map(|(name, f)| format!("{name}({f})")),
            1 => (one(), number()).prop_map(|(f, by)| format!("hShift({f}, -{by})")),
            1 => (one(), number()).prop_map(|(f, by)| format!("({f} * {by})")),
            1 => (deviation, one(), one())
                .prop_map(|(name, f, g)| format!("constant({name}({f}, {g}))")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn whatever_is_computed_keeps_to_it(expression in expression()) {
        let _ = evaluated(&expression);
    }
}
