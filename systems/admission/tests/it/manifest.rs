//! `function.toml`, mutated: refused with a line of it, or a function that the admission decides.

use metes_admission::manifest::Manifest;
use metes_admission::{Decision, Host, Set, admit};
use proptest::prelude::*;

/// Lines that are right, and others that are nearly.
const LINES: [&str; 24] = [
    "name = \"edges\"",
    "module = \"edges.wasm\"",
    "period = \"10 ms\"",
    "budget = \"3 ms\"",
    "deadline = \"8 ms\"",
    "entry = \"_start\"",
    "kind = \"sporadic\"",
    "kind = \"periodic\"",
    "memory = \"1 MiB\"",
    "input = \"64 KiB\"",
    "output = \"0\"",
    "criticality = \"low\"",
    "overrun = \"degrade\"",
    "state = \"kept\"",
    "core = 0",
    "core = -1",
    "period = \"0.5 us\"",
    "budget = \"18446744073709551615 s\"",
    "budget = 3",
    "memory = \"5 GiB\"",
    "[section]",
    "name = \"a/b\"",
    "deadline = \"\"",
    "# nothing",
];

const HOUR: u64 = 3_600_000_000_000;

/// What holds of every text; whether it was taken.
fn holds(text: &str) -> Result<bool, TestCaseError> {
    let manifest = match Manifest::parse(text) {
        Ok(manifest) => manifest,
        Err(error) => {
            let lines = 1 + text.bytes().filter(|byte| *byte == b'\n').count();
            prop_assert!(
                error.line.is_none_or(|line| (1..=lines).contains(&line)),
                "{}",
                error
            );
            prop_assert!(!error.problem.is_empty());
            return Ok(false);
        }
    };
    prop_assert!((1..=HOUR).contains(&manifest.period) && (1..=HOUR).contains(&manifest.budget));
    prop_assert!(manifest.budget <= manifest.deadline && manifest.deadline <= HOUR);
    let mut function = manifest.function(65536);
    function.core = None;
    let set = Set {
        host: Host::new(1, 65536),
        functions: vec![function],
    };
    let admitted = matches!(admit(&set), Decision::Admitted(_));
    prop_assert_eq!(admitted, manifest.budget <= manifest.period);
    Ok(true)
}

fn joined(lines: &[usize]) -> String {
    let lines: Vec<&str> = lines.iter().map(|line| LINES[*line]).collect();
    lines.join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn lines_in_any_order_are_refused_or_decided(lines in prop::collection::vec(0..LINES.len(), 0..8)) {
        holds(&joined(&lines))?;
        // The four that there must be, and others behind them that are right and not there yet.
        let more: Vec<usize> = lines.into_iter().filter(|line| (4..15).contains(line)).collect();
        holds(&joined(&[vec![0, 1, 2, 3], more].concat()))?;
    }

    #[test]
    fn bytes_that_are_changed_are_refused_or_decided(
        lines in prop::sample::subsequence((4..15).collect::<Vec<usize>>(), 0..=11),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 1..4),
    ) {
        let mut text = joined(&[vec![0, 1, 2, 3], lines].concat()).into_bytes();
        for (at, byte, how) in changes {
            let at = at.index(text.len());
            match how {
                0 => text[at] = byte,
                1 => text.insert(at, byte),
                _ => drop(text.remove(at)),
            }
        }
        holds(&String::from_utf8_lossy(&text))?;
    }
}

#[test]
fn the_lines_are_taken_and_refused() {
    assert!(holds(&joined(&[0, 1, 2, 3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14])).expect("it holds"));
    assert!(!holds(&joined(&[0, 1, 2])).expect("it holds"));
    for wrong in 15..23 {
        assert!(!holds(&joined(&[0, 1, 2, 3, wrong])).expect("it holds"));
    }
}
