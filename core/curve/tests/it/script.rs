//! Scripts: golden results of another implementation, what is read back, and errors.

use metes_curve::script::{Found, Interpreter, Outcome, Script, ScriptError, written};
use metes_curve::{Algebra, Curve, Element, Rational, Value};

/// What every statement gives.
fn outcomes(text: &str) -> Result<Vec<Outcome>, ScriptError> {
    let mut interpreter = Interpreter::new(Algebra::default());
    let script = Script::parse(text)?;
    let statements = script.statements().iter();
    statements
        .map(|statement| interpreter.run(statement))
        .collect()
}

/// The golden scripts of nancy-playground 1.0.5 (MIT licence, `run-testcases` of its tests), with
/// the results it expects, each statement's in turn, written as curves in JSON.
#[test]
fn golden_scripts_give_their_results() {
    let scripts = [
        (
            "assertions",
            include_str!("../data/scripts/assertions.mppg"),
            include_str!("../data/scripts/assertions.json"),
        ),
        (
            "numbers",
            include_str!("../data/scripts/numbers.mppg"),
            include_str!("../data/scripts/numbers.json"),
        ),
        (
            "comments",
            include_str!("../data/scripts/comments.mppg"),
            include_str!("../data/scripts/comments.json"),
        ),
        (
            "listing-b.1",
            include_str!("../data/scripts/listing-b.1.mppg"),
            include_str!("../data/scripts/listing-b.1.json"),
        ),
        (
            "listing-b.2",
            include_str!("../data/scripts/listing-b.2.mppg"),
            include_str!("../data/scripts/listing-b.2.json"),
        ),
        (
            "hal-04513292v1",
            include_str!("../data/scripts/hal-04513292v1.mppg"),
            include_str!("../data/scripts/hal-04513292v1.json"),
        ),
    ];
    let mut compared = 0;
    for (name, script, expected) in scripts {
        let came = outcomes(script).unwrap_or_else(|error| panic!("{name}: {error}"));
        let expected: Vec<serde_json::Value> = serde_json::from_str(expected).expect("JSON");
        assert_eq!(came.len(), expected.len(), "{name}");
        for (index, (came, expected)) in came.into_iter().zip(&expected).enumerate() {
            let (Outcome::Assigned { found, .. } | Outcome::Value(found)) = came else {
                let Outcome::Assertion(holds) = came else {
                    panic!("{name}: statement {index}");
                };
                assert_eq!(Some(holds), expected.as_bool(), "{name}: statement {index}");
                compared += 1;
                continue;
            };
            match found {
                Found::Number(number) => {
                    let expected = expected.as_str().expect("a number");
                    assert_eq!(number.to_string(), expected, "{name}: statement {index}");
                }
                Found::Curve(curve) => {
                    let expected = Curve::from_json(&expected.to_string()).expect("a curve");
                    assert_eq!(
                        curve,
                        expected,
                        "{name}: statement {index}\n{}",
                        written(&curve)
                    );
                }
            }
            compared += 1;
        }
    }
    assert_eq!(compared, 229);
}

fn curve(expression: &str) -> Curve {
    match Interpreter::default().evaluate(expression) {
        Ok(Found::Curve(curve)) => curve,
        other => panic!("{expression}: {other:?}"),
    }
}

fn number(script: &str) -> String {
    match outcomes(script).expect(script).pop() {
        Some(Outcome::Value(Found::Number(number))) => number.to_string(),
        other => panic!("{script}: {other:?}"),
    }
}

/// Every operand and every result of the conformance cases.
#[test]
fn what_is_written_is_read_as_the_same_curve() {
    let cases: serde_json::Value =
        serde_json::from_str(include_str!("../data/cases.json")).expect("JSON");
    let mut compared = 0;
    let mut compare = |json: &serde_json::Value| {
        if json.get("elements").is_some() {
            let as_json = Curve::from_json(&json.to_string()).expect("a curve");
            let text = written(&as_json);
            assert_eq!(curve(&text), as_json, "{text}");
            compared += 1;
        }
    };
    for case in cases["cases"].as_array().expect("cases") {
        compare(&case["expected"]);
        for operand in case["operands"].as_object().expect("operands").values() {
            compare(operand);
        }
    }
    assert!(compared > 2_000, "{compared}");
}

#[test]
fn segments_are_what_the_syntax_says() {
    let periodic = curve(
        "upp([(0, +Infinity) 0 (6, +Infinity)], \
         period(](6, 0) 0 (10.5, 0)[ [(10.5, +Infinity) 0 (18, +Infinity)]), 0, 12)",
    );
    let infinite = |time: &str| {
        let time: Rational = time.parse().expect("a number");
        periodic.value(&time) == Some(Value::PositiveInfinity)
    };
    // Open at 6 and closed at 18: so it is at 30, and not behind.
    for (time, expected) in [
        ("0", true),
        ("6", true),
        ("13/2", false),
        ("21/2", true),
        ("18", true),
        ("37/2", false),
        ("45/2", true),
        ("30", true),
        ("61/2", false),
    ] {
        assert_eq!(infinite(time), expected, "at {time}");
    }
    let affine = curve("uaf([(0,-3)1(1,-2)[ [(1,-2)2(7,10)[ [(7,10)0(+inf,10)[)");
    let points = [(0, -3), (1, -2), (7, 10)].map(|(t, v)| (Rational::from(t), Rational::from(v)));
    assert_eq!(
        affine,
        Curve::through(&points, &Rational::from(0)).expect("points")
    );
    // Without slopes, and with a point of its own.
    assert_eq!(
        curve("uaf([(0, 0)] ](0, 5)(2, 7)] ](2, 7) 1 (+inf, +inf)[)"),
        curve("bucket(1, 5)")
    );
    // The increment is the rise over the period if it is not written.
    assert_eq!(
        curve("upp(period([(0, 0) 0 (2, 0)[ [(2, 0) 1 (5, 3)[))"),
        curve("tdma(3, 5, 1)")
    );
}

#[test]
fn operators_bind_as_in_the_playgrounds() {
    // Between curves minimum and maximum bind most, between numbers least.
    assert_eq!(
        curve("affine(1, 0) + affine(0, 4) /\\ affine(2, 0)"),
        curve("affine(1, 0) + (affine(0, 4) /\\ affine(2, 0))")
    );
    assert_eq!(number("2 + 3 /\\ 4"), "4");
    assert_eq!(number("2 * 3 - 4 - 1 \\/ 0"), "1");
    assert_eq!(number("7 div 2 / 7"), "1/2");
    assert_eq!(number("-3 / 2"), "-3/2");
    assert_eq!(number("3200/0.00025"), "12800000");
    assert_eq!(
        curve("2 * affine(1, 1) / 4 - 1"),
        curve("affine(1/2, -1/2)")
    );
}

#[test]
fn a_product_of_curves_is_their_convolution_in_any_order() {
    let factors = [
        "stair(0, 4, 3)",
        "ratency(2, 3)",
        "bucket(1, 4)",
        "stair(1, 6, 5)",
        "ratency(1/2, 1)",
    ];
    for count in 2..=factors.len() {
        let chained = curve(&factors[..count].join(" * "));
        let curves = factors[..count].iter().map(|factor| curve(factor));
        let pairwise = curves.reduce(|left, right| left.convolution(&right).unwrap());
        assert_eq!(Some(chained), pairwise);
    }
    // A number scales what stands before it, not the whole.
    assert_eq!(
        curve("stair(0, 4, 3) * ratency(2, 3) * 2 * bucket(1, 4)"),
        curve("((stair(0, 4, 3) * ratency(2, 3)) * 2) * bucket(1, 4)")
    );
    // What cannot be done is named where it stands.
    let error = outcomes("stair(0, 4, 3) * ratency(2, 3) * bucket(1, 4) * infinity").unwrap_err();
    assert_eq!((error.line, error.column), (1, 47), "{error}");
}

#[test]
fn values_and_limits_are_numbers() {
    let script = "f := stair(0, 4, 3)\n";
    for (asked, value) in [
        ("f(4)", "3"),
        ("f(4+)", "6"),
        ("f(4~-)", "3"),
        ("f(2 + 2~+)", "6"),
        ("f(0)", "0"),
        ("f(-1+1)", "0"),
    ] {
        assert_eq!(number(&format!("{script}{asked}")), value, "{asked}");
    }
    let script = "f := bucket(1, 4) // a bucket\n% more\ng := ratency(2, 3)\n> and more\n";
    for (asked, value) in [
        ("hDev(f, g)", "5"),
        ("vdev(f, g)", "7"),
        ("hdev(g, f)", "+inf"),
        ("zdev(g, g - 1)", "13/2"),
    ] {
        let came = number(&format!("{script}{asked} # here"));
        assert_eq!(came, value, "{asked}");
    }
}

#[test]
fn the_names_of_functions_that_only_metes_has_are_free() {
    let script = "floor := right-ext(stair(1, 1, 1))\nfloor(5/2)";
    assert_eq!(number(script), "2");
    assert_eq!(curve("floor(affine(1, 0))"), curve("stair_at(1, 1, 1)"));
    assert!(matches!(
        outcomes("f := zero\nprintExpression(f)").expect("good")[1],
        Outcome::Source(ref source) if source == "zero"
    ));
}

#[test]
fn plots_are_asked_for() {
    let script = "f := zero\nJ := 3\nplot(f, main=\"J=\" + J + \"!\", xlim=[-0.5, 5], grid=\"no\")";
    let Some(Outcome::Plot(plot)) = outcomes(script).expect("good").pop() else {
        panic!("a plot");
    };
    assert_eq!(plot.curves, [("f".to_owned(), Curve::zero())]);
    assert_eq!(plot.texts["main"], "J=3!");
    let half = "-1/2".parse().expect("a number");
    assert_eq!(plot.times, Some((half, Rational::from(5))));
}

#[test]
fn errors_name_line_and_column() {
    for (script, place, what) in [
        (
            "f := zero\ng := (f + 1) * (f - 1)\nh := ((f + 1) (f - 1))",
            (3, 15),
            "expected an operator or `)`",
        ),
        ("f := zero +", (1, 12), "found the end of the line"),
        ("f := stair(0, 4)", (1, 6), "takes 3 arguments, and 2"),
        ("f := g + 1", (1, 6), "no `g`"),
        ("delay := 3", (1, 1), "word of the language"),
        ("f := stair(0, 0, 1)", (1, 6), "length of a staircase is 0"),
        ("f := zero\nf(0 - 1)", (2, 1), "no value at -1"),
        ("n := 1 / 0", (1, 8), "division by zero"),
        ("n := inf - inf", (1, 10), "+inf - +inf is undefined"),
        ("f := epsilon\nf - f", (2, 3), "∞"),
        ("f := zero $ 1", (1, 11), "`$` is no sign"),
        ("ü", (1, 1), "`ü` is no sign"),
        ("f := uaf([(0, 0) 1 (2, 3)[)", (1, 10), "slope 1, and 3/2"),
        (
            "f := upp(period([(1, 0) 1 (2, 1)[))",
            (1, 17),
            "begins at 1",
        ),
        (
            "f := upp(period([(0, 0) 1 (2, 2)[), 2, 3)",
            (1, 40),
            "period is 3 here",
        ),
        (
            "f := upp(period(](0, 0) 1 (2, 2)[))",
            (1, 17),
            "no value at 0",
        ),
        (
            "f := upp(period([(0, 0) 1 (2, 2)]), 1)",
            (1, 17),
            "leave one open",
        ),
        ("f := uaf([(0, 0) 1 (2, 2)[)", (1, 10), "ends at +inf"),
        (
            "f := upp(period([(0, 0) 1 (0, 2)[))",
            (1, 28),
            "time goes on",
        ),
        ("f := zero\nn := hDev(f)", (2, 6), "takes 2 arguments"),
        ("f := zero * 3 *^ 4", (1, 15), "takes two curves"),
        ("f := zero\nplot(f, colour=3)", (2, 9), "xlim"),
        ("f := zero\nassert(f & f)", (2, 10), "`&` is no sign"),
        ("assert(1 2)", (1, 10), "one of ="),
    ] {
        let error = outcomes(script).expect_err(script);
        assert_eq!((error.line, error.column), place, "{script}: {error}");
        assert!(error.to_string().contains(what), "{script}: {error}");
    }
}

#[test]
fn what_could_exhaust_the_machine_is_refused() {
    let nested = format!("f := {}1{}", "(".repeat(5_000), ")".repeat(5_000));
    let signs = format!("f := {}1", "-".repeat(5_000));
    let long = format!("f := 1{}", " + 1".repeat(50_000));
    let digits = format!("f := {}", "9".repeat(50_000));
    let squares = format!("n := 10{}", "\nn := n * n".repeat(40));
    let periods = "f := stair(0, 10000019, 10000019)\ng := stair(0, 10000079, 10000079)\nf /\\ g";
    let slopes = format!("f := affine(3, 0){}", "\nf := f comp f".repeat(60));
    let heights = (0..99).map(|line| format!("\nf := vShift(f, 1/{}{line})", "7".repeat(900)));
    let heights = format!("f := zero{}", heights.collect::<String>());
    for script in [
        &nested, &signs, &long, &digits, &squares, &slopes, &heights, periods,
    ] {
        assert!(outcomes(script).is_err(), "{}", &script[..40]);
    }
    for script in [&slopes, &heights] {
        let error = outcomes(script).expect_err("refused");
        assert!(error.to_string().contains("bits"), "{error}");
    }
    let error = outcomes(periods).expect_err("refused");
    assert!(
        error
            .to_string()
            .contains("more than the limit of 10000000"),
        "{error}"
    );
}

/// Each line is looked at once: of so many, the square would be minutes.
#[test]
fn long_scripts_are_read_line_by_line() {
    let script = "a := 1\n".repeat(200_000);
    let script = Script::parse(&script).expect("well formed");
    assert_eq!(script.statements().len(), 200_000);
}

/// A curve that is 1 at 1 alone, where a segment follows its own end.
#[test]
fn single_values_are_written() {
    let element = |time: i64, at: i64| {
        let time = Rational::from(time);
        [
            Element::Point {
                time: time.clone(),
                value: Value::Finite(Rational::from(at)),
            },
            Element::Segment {
                end: &time + &Rational::from(1),
                start: time,
                value: Value::Finite(Rational::from(0)),
                slope: Rational::from(0),
            },
        ]
    };
    let (two, one) = (Rational::from(2), Rational::from(1));
    let elements = [element(0, 0), element(1, 1), element(2, 0)].concat();
    let spike = Curve::new(&elements, &two, &one, &Rational::from(0)).expect("well formed");
    assert_eq!(curve(&written(&spike)), spike);
}
