//! The stepper against an independent instrument: callgrind (package
//! `valgrind`) must count the same instructions for the same calls.
//!
//! Callgrind counts whole functions from their entry, the stepper also the
//! `call` that enters them: one more an event. The rest must agree exactly where
//! no library function is called. Our heap, unoptimised, copies records through
//! the C library's `memcpy`, which picks its code by the processor, and
//! callgrind's is another processor: one part in fifty is allowed there.

use std::path::Path;
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_metes-bench");
const OPERATIONS: &str = "100";

fn run(command: &mut Command) -> Output {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error} (is valgrind installed?)"));
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Instructions inside the measured functions, by callgrind.
fn callgrind(heap: &str, workload: &str, setup_only: bool) -> u64 {
    let file = std::env::temp_dir().join(format!(
        "metes-callgrind-{}-{heap}-{workload}-{setup_only}",
        std::process::id()
    ));
    let mut command = Command::new("valgrind");
    command
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg("--toggle-collect=*measured_*")
        .args([PROGRAM, "play", heap, workload, "--operations", OPERATIONS]);
    if setup_only {
        command.arg("--setup-only");
    }
    run(&mut command);
    let total = total(&file);
    std::fs::remove_file(&file).unwrap();
    total
}

/// The `totals:` line of a callgrind file.
fn total(file: &Path) -> u64 {
    let text = std::fs::read_to_string(file).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("totals: "));
    line.expect("callgrind writes its totals")
        .trim()
        .parse()
        .unwrap()
}

/// Instructions and calls by the stepper.
fn stepper(heap: &str, workload: &str) -> (u64, u64) {
    let output = run(Command::new(PROGRAM).args([
        "--json",
        "--heap",
        heap,
        "instructions",
        "--workload",
        workload,
        "--operations",
        OPERATIONS,
        "--budget",
        "100000000",
    ]));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let row = &report["instructions"][0];
    let sum =
        |key: &str| row["allocate"][key].as_u64().unwrap() + row["free"][key].as_u64().unwrap();
    (sum("total"), sum("calls"))
}

#[test]
fn callgrind_counts_the_same_instructions() {
    for (heap, share) in [("rlsf", 0), ("metes-tlsf", 50)] {
        let (stepped, calls) = stepper(heap, "emb");
        let counted = callgrind(heap, "emb", false) - callgrind(heap, "emb", true);
        assert_eq!(calls, 200);
        let allowed = stepped.checked_div(share).unwrap_or(0);
        assert!(
            stepped.abs_diff(counted + calls) <= allowed,
            "{heap}: {stepped} stepped, {counted} by callgrind and {calls} calls"
        );
    }
}
