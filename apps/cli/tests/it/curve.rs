//! `metes curve`: each action on good input and on bad.

use std::io::Write;
use std::process::{Command, Stdio};

use crate::support::{Place, has_keys, parsed, refused, status, stderr, stdout};

const TANDEM: &str = "// a flow through two servers
arrival := stair(0, 4, 3)
service := ratency(2, 3) * ratency(3, 1)
hDev(arrival, service)
assert(service <= ratency(2, 3))
";

const STAIRS: &str = r#"{"T": "0", "d": "4", "c": "3", "elements": [
    {"k": "p", "t": "0", "v": "0"},
    {"k": "s", "t0": "0", "t1": "4", "v0": "3", "slope": "0"}]}"#;

#[test]
fn the_limit_is_kept_before_memory_is_taken() {
    let place = Place::new();
    let late = r#"{"T": "999999999999", "d": "12", "c": "1", "elements": [
        {"k": "p", "t": "0", "v": "0"},
        {"k": "s", "t0": "0", "t1": "999999999999", "v0": "0", "slope": "0"},
        {"k": "p", "t": "999999999999", "v": "0"},
        {"k": "s", "t0": "999999999999", "t1": "1000000000011", "v0": "1", "slope": "0"}]}"#;
    place.write("late.json", late);
    let low = "stair(999999999999, 12, 1)";
    let product = format!("{low} * ratency(1, 3)");
    // Little is needed of these, and less is looked at than the limit.
    for arguments in [
        &["curve", "--limit", "100", "eval", &product][..],
        &["curve", "eval", "stair(99999999999,3,1) *^ zero"],
        &["curve", "convolve", low, "ratency(1, 3)"],
        &["curve", "convolve", "late.json", "ratency(1, 3)"],
    ] {
        let output = place.metes(arguments);
        assert_eq!(status(&output), 0, "{}", stderr(&output));
        assert!(stdout(&output).contains("upp("), "{}", stdout(&output));
    }
    for much in [
        "hShift(stair(0, 1, 1), -1000)",
        "periodic(1009, 999999999, 1, 7)",
    ] {
        let output = place.metes(&["curve", "--limit", "100", "eval", much]);
        refused(&output, &["more than the limit of 100", "--limit"]);
    }
    // One number of many digits.
    place.write("long.json", &late.replace("12", &"9".repeat(400_000)));
    let long = place.metes(&["curve", "convolve", "long.json", "ratency(1, 3)"]);
    refused(&long, &["long.json", "a number has 400000 digits"]);
}

#[test]
fn scripts_are_run() {
    let place = Place::new();
    place.write("tandem.mppg", TANDEM);
    let output = place.metes(&["curve", "run", "tandem.mppg"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let text = stdout(&output);
    let service = "service := uaf([(0, 0) 0 (4, 0)[ [(4, 0) 2 (+inf, +inf)[)";
    for line in [service, "11/2", "true"] {
        assert!(text.lines().any(|shown| shown == line), "{line}: {text}");
    }
    let (code, document) = place.json(&["curve", "run", "tandem.mppg"]);
    assert_eq!(code, 0);
    assert_eq!(document["failed"], 0);
    assert_eq!(document["statements"][0]["name"], "arrival");
    has_keys(
        &document["statements"][0]["value"],
        &["T", "d", "c", "elements"],
    );
    assert_eq!(document["statements"][2]["value"], "11/2");
    assert_eq!(document["statements"][3]["holds"], true);
}

#[test]
fn a_script_from_standard_input_may_say_what_does_not_hold() {
    let place = Place::new();
    let mut command: Command = place.command(&["curve", "run", "-"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("metes runs");
    let mut stdin = child.stdin.take().expect("piped");
    stdin.write_all(b"assert(zero = epsilon)\n").expect("read");
    drop(stdin);
    let output = child.wait_with_output().expect("metes ends");
    assert_eq!(status(&output), 1);
    assert!(stdout(&output).contains("line 1 does not hold"));
}

#[test]
fn plots_of_scripts_are_shown_or_written() {
    let place = Place::new();
    place.write(
        "plot.mppg",
        "f := stair(0, 4, 3)\nplot(f, main=\"Steps\")\nplot(f, out=\"f.png\")\n",
    );
    let output = place.metes(&["curve", "run", "plot.mppg"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let text = stdout(&output);
    for part in ["Steps", "●", "○", "f.svg"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    assert!(place.read("f.svg").contains("</svg>"));
}

#[test]
fn conformance_cases_are_counted() {
    let place = Place::new();
    let case = |id: &str, expected: &str| {
        format!(
            r#"{{"id": "{id}", "op": "vertical_deviation", "operands": {{"f": {STAIRS}, "g": {STAIRS}}}, "expected": "{expected}"}}"#
        )
    };
    place.write(
        "good.json",
        &format!(r#"{{"cases": [{}]}}"#, case("a", "0")),
    );
    let (code, document) = place.json(&["curve", "check", "good.json"]);
    assert_eq!(code, 0);
    assert_eq!(document["passed"], 1);
    let both = [case("a", "0"), case("b", "1")].join(",");
    place.write("bad.json", &format!(r#"{{"cases": [{both}]}}"#));
    let (code, document) = place.json(&["curve", "check", "bad.json"]);
    assert_eq!(code, 1);
    assert_eq!(
        (&document["passed"], &document["failed"]),
        (&1.into(), &1.into())
    );
    assert_eq!(document["failures"][0]["id"], "b");
    let output = place.metes(&["curve", "check", "bad.json"]);
    assert_eq!(status(&output), 1);
    assert!(stdout(&output).contains("b fails"), "{}", stdout(&output));
}

#[test]
fn chains_are_convolved_by_any_plan() {
    let place = Place::new();
    place.write("stairs.json", STAIRS);
    let curves = ["stairs.json", "ratency(2, 3)", "bucket(1, 4)"];
    let mut results = Vec::new();
    for plan in ["automatic", "left-to-right", "3,1,2", "subsets"] {
        let mut arguments = vec!["curve", "convolve"];
        arguments.extend(curves);
        arguments.extend(["--plan", plan]);
        let (code, mut document) = place.json(&arguments);
        assert_eq!(code, 0);
        let steps = document["plan"].as_array().expect("a plan");
        let parts = steps
            .iter()
            .map(|step| step["of"].as_array().expect("parts"));
        // Each step takes in one more curve than there were, or several.
        assert_eq!(
            parts.map(|parts| parts.len() - 1).sum::<usize>(),
            2,
            "{plan}"
        );
        has_keys(
            &document["plan"][0],
            &["of", "predicted", "elements", "seconds"],
        );
        let object = document.as_object_mut().expect("an object");
        object.remove("plan");
        object.remove("planning_seconds");
        results.push(document);
    }
    assert!(
        results.iter().all(|result| *result == results[0]),
        "{results:#?}"
    );
    // What comes out goes in.
    place.write("result.json", &results[0].to_string());
    let (code, again) = place.json(&[
        "curve",
        "eval",
        "bucket(1, 4) * (stair(0, 4, 3) * ratency(2, 3))",
    ]);
    assert_eq!((code, &again), (0, &results[0]));
    let (code, document) = place.json(&["curve", "convolve", "result.json"]);
    assert_eq!(code, 0);
    assert_eq!(document["elements"], results[0]["elements"]);
}

#[test]
fn a_value_of_a_chain_is_explained() {
    let place = Place::new();
    let convolve = ["curve", "convolve", "stair(0, 4, 3)", "ratency(2, 3)"];
    let explain = |time| [&convolve[..], &["--explain", time]].concat();
    let (code, document) = place.json(&explain("7"));
    assert_eq!(code, 0);
    let shares = document["shares"].as_array().expect("shares");
    let of = |key: &str| -> Vec<i64> {
        let number = |share: &serde_json::Value| share[key].as_str()?.parse().ok();
        shares.iter().filter_map(number).collect()
    };
    assert_eq!(of("time").iter().sum::<i64>(), 7, "{document:#}");
    let output = place.metes(&explain("7"));
    let line = format!("at 7: {}, made of", of("value").iter().sum::<i64>());
    assert!(stdout(&output).contains(&line), "{}", stdout(&output));
    refused(&place.metes(&explain("-1")), &["-1"]);
    refused(&place.metes(&explain("soon")), &["soon", "22/7"]);
}

#[test]
fn pairs_are_timed_and_checked() {
    let place = Place::new();
    place.write(
        "pairs.json",
        &format!(r#"{{"sets": {{"mine": [{{"f": {STAIRS}, "g": {STAIRS}}}]}}}}"#),
    );
    let (code, document) = place.json(&["curve", "bench", "pairs.json"]);
    assert_eq!(code, 0);
    has_keys(&document["sets"]["mine"], &["pairs", "seconds", "wrong"]);
    assert_eq!(document["sets"]["mine"]["pairs"], 1);
    assert_eq!(document["sets"]["mine"]["wrong"], 0);
}

#[test]
fn curves_are_plotted() {
    let place = Place::new();
    let (code, document) = place.json(&["curve", "plot", "delay(3)", "--times", "0..6"]);
    assert_eq!(code, 0);
    assert!(document["text"].as_str().expect("text").contains("∞∞∞"));
    let output = place.metes(&[
        "curve",
        "plot",
        "stair(0, 4, 3)",
        "affine(1, -2)",
        "--values",
        "-2..9",
        "--svg",
        "x.svg",
    ]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let svg = place.read("x.svg");
    assert!(
        svg.contains("class=\"open\"") && svg.contains("affine(1, -2)"),
        "{svg}"
    );
}

#[test]
fn bad_input_is_named() {
    let place = Place::new();
    let curve = |elements: &str, period: &str| {
        format!(r#"{{"T": "0", "d": "{period}", "c": "0", "elements": [{elements}]}}"#)
    };
    let point = r#"{"k": "p", "t": "0", "v": "0"}"#;
    let segment = |from: &str, to: &str| {
        format!(r#"{{"k": "s", "t0": "{from}", "t1": "{to}", "v0": "0", "slope": "0"}}"#)
    };
    for (name, text, fragments) in [
        (
            "gap.json",
            curve(&format!("{point},{}", segment("1", "2")), "2"),
            ["gap.json", "begins at 1 where 0"],
        ),
        (
            "back.json",
            curve(&format!("{point},{}", segment("0", "-1")), "2"),
            ["back.json", "time goes on"],
        ),
        (
            "period.json",
            curve(&format!("{point},{}", segment("0", "1")), "0"),
            ["period.json", "period is above 0"],
        ),
        (
            "short.json",
            curve(&format!("{point},{}", segment("0", "1")), "2"),
            ["short.json", "T + d is 2"],
        ),
        (
            "number.json",
            curve(&format!("{point},{}", segment("0", "x")), "2"),
            ["number.json", "no fraction"],
        ),
        (
            "json.json",
            "{".to_owned(),
            ["json.json", "no curve in JSON"],
        ),
    ] {
        place.write(name, &text);
        refused(
            &place.metes(&["curve", "convolve", name, "zero"]),
            &fragments,
        );
    }
    let none = place.metes(&["curve", "plot", "none.json"]);
    refused(&none, &["cannot read none.json", "check the path"]);
    let output = place.metes(&["curve", "eval", "epsilon - epsilon"]);
    refused(&output, &["column 9", "∞"]);
    refused(
        &place.metes(&["curve", "eval", "f * 2"]),
        &["column 1", "no `f`"],
    );
    refused(
        &place.metes(&["curve", "plot", "3 + 4"]),
        &["the number 7", "constant(7)"],
    );
    refused(
        &place.metes(&["curve", "plot", "zero", "--times", "3..3"]),
        &["3..3", "0..20"],
    );
    refused(
        &place.metes(&["curve", "convolve", "zero", "zero", "--plan", "1,3"]),
        &["curve 3"],
    );
    refused(
        &place.metes(&["curve", "convolve", "zero", "--plan", "best"]),
        &["no plan", "automatic"],
    );
    refused(
        &place.metes(&["curve", "check", "json.json"]),
        &["json.json", "no document of cases"],
    );
    refused(
        &place.metes(&["curve", "bench", "json.json"]),
        &["json.json"],
    );
    refused(
        &place.metes(&["curve", "run", "none.mppg"]),
        &["none.mppg", "check the path"],
    );
    place.write("wrong.mppg", "f := zero\n\nassert(f < )\n");
    refused(
        &place.metes(&["curve", "run", "wrong.mppg"]),
        &["wrong.mppg: line 3, column 12", "found `)`"],
    );
}

#[test]
fn a_result_that_is_too_large_is_predicted_and_refused() {
    let place = Place::new();
    let sum = "stair(0, 1009, 1009) + stair(0, 1013, 1013)";
    let output = place.metes(&["curve", "eval", sum, "--limit", "500"]);
    refused(
        &output,
        &["pieces, more than the limit of 500", "raise the limit"],
    );
    let (code, document) = parsed_with(&place, sum);
    assert_eq!(code, 0);
    assert_eq!(document["d"], (1009 * 1013).to_string());
}

fn parsed_with(place: &Place, expression: &str) -> (i32, serde_json::Value) {
    parsed(&place.metes(&["--json", "curve", "eval", expression, "--limit", "100000"]))
}
