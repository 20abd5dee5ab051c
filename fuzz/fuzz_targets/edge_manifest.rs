//! Any bytes as `function.toml`: refused in one line that names a line of it, or a function that the admission decides.
#![no_main]

use libfuzzer_sys::fuzz_target;
use metes_admission::manifest::Manifest;
use metes_admission::{Decision, Host, Set, admit};

/// An hour in nanoseconds.
const HOUR: u64 = 3_600_000_000_000;

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let manifest = match Manifest::parse(&text) {
        Ok(manifest) => manifest,
        Err(error) => {
            let lines = 1 + text.bytes().filter(|byte| *byte == b'\n').count();
            assert!(error.line.is_none_or(|line| (1..=lines).contains(&line)), "{error}");
            assert!(!error.problem.is_empty());
            return;
        }
    };
    assert!((1..=HOUR).contains(&manifest.period) && (1..=HOUR).contains(&manifest.budget));
    assert!(manifest.budget <= manifest.deadline && manifest.deadline <= HOUR);
    assert!(manifest.input.max(manifest.output) <= 64 << 20 && manifest.memory <= 4 << 30);
    let mut function = manifest.function(65536);
    function.core = None;
    let set = Set { host: Host::new(1, 65536), functions: vec![function] };
    // One function alone fits where its demand does.
    let fits = manifest.budget <= manifest.period;
    assert_eq!(matches!(admit(&set), Decision::Admitted(_)), fits);
});
