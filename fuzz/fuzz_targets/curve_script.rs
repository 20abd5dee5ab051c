//! Any text as a script of curves: an error with its place, or results that survive being written
//! and read; never a panic, and never more work than the limit lets through.
#![no_main]

use libfuzzer_sys::fuzz_target;
use metes_curve::script::{Found, Interpreter, Outcome, Script};
use metes_curve::{Algebra, Curve};

fuzz_target!(|text: &str| {
    let script = match Script::parse(text) {
        Ok(script) => script,
        Err(error) => {
            assert!(error.line >= 1 && error.column >= 1, "{error}");
            return;
        }
    };
    let algebra = Algebra {
        limit: 300,
        ..Algebra::default()
    };
    let mut interpreter = Interpreter::new(algebra);
    for statement in script.statements().iter().take(8) {
        let outcome = match interpreter.run(statement) {
            Ok(outcome) => outcome,
            Err(error) => {
                assert!(error.line <= text.lines().count() + 1, "{error}");
                return;
            }
        };
        if let Outcome::Assigned { found: Found::Curve(curve), .. }
        | Outcome::Value(Found::Curve(curve)) = outcome
        {
            let json = Curve::from_json(&curve.to_json()).expect("what we write, we read");
            assert_eq!(json, curve);
            // Numbers longer than a script may write out are computed by scripts.
            if curve.to_json().len() < 2_000 {
                let written = metes_curve::script::written(&curve);
                let read = Interpreter::default().evaluate(&written);
                assert_eq!(read.as_ref(), Ok(&Found::Curve(curve)), "{written}");
            }
        }
    }
});
