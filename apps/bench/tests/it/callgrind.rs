//! The stepper against an independent instrument: callgrind (package
//! `valgrind`) must count the same instructions for the same calls, and as many
//! reads and writes of memory, from which the cache lines are.
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

/// What is counted: instructions, and places in memory used by them.
#[derive(Clone, Copy)]
struct Counted {
    instructions: u64,
    accesses: u64,
}

/// What ran inside the measured functions, by callgrind.
fn callgrind(heap: &str, workload: &str, setup_only: bool) -> Counted {
    let file = std::env::temp_dir().join(format!(
        "metes-callgrind-{}-{heap}-{workload}-{setup_only}",
        std::process::id()
    ));
    let mut command = Command::new("valgrind");
    command
        .arg("--tool=callgrind")
        .arg(format!("--callgrind-out-file={}", file.display()))
        .args(["--toggle-collect=*measured_*", "--cache-sim=yes"])
        .args([PROGRAM, "play", heap, workload, "--operations", OPERATIONS]);
    if setup_only {
        command.arg("--setup-only");
    }
    run(&mut command);
    let total = total(&file);
    std::fs::remove_file(&file).unwrap();
    total
}

/// The `totals:` line of a callgrind file: instructions, reads, writes, then misses.
fn total(file: &Path) -> Counted {
    let text = std::fs::read_to_string(file).unwrap();
    assert!(
        text.lines()
            .any(|line| line.starts_with("events: Ir Dr Dw "))
    );
    let line = text.lines().find_map(|line| line.strip_prefix("totals: "));
    let line = line.expect("callgrind writes its totals");
    let counts: Vec<u64> = line.split(' ').map(|word| word.parse().unwrap()).collect();
    Counted {
        instructions: counts[0],
        accesses: counts[1] + counts[2],
    }
}

/// Instructions and accesses that the stepper counts, and the calls.
fn stepper(heap: &str, workload: &str) -> (Counted, u64) {
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
    let sum = |path: &str| {
        let of = |verb: &str| row.pointer(&format!("/{verb}{path}")).unwrap().as_u64();
        of("allocate").unwrap() + of("free").unwrap()
    };
    let counted = Counted {
        instructions: sum("/total"),
        accesses: sum("/accesses/total"),
    };
    (counted, sum("/calls"))
}

#[test]
fn callgrind_counts_the_same_instructions_and_accesses() {
    for (heap, share) in [("rlsf", 0), ("metes-tlsf", 50)] {
        let (stepped, calls) = stepper(heap, "emb");
        let (whole, setup) = (callgrind(heap, "emb", false), callgrind(heap, "emb", true));
        assert_eq!(calls, 200);
        let agree = |stepped: u64, counted: u64, what: &str| {
            let allowed = stepped.checked_div(share).unwrap_or(0);
            assert!(
                stepped.abs_diff(counted) <= allowed,
                "{heap}: {stepped} {what} stepped, {counted} by callgrind"
            );
        };
        let instructions = whole.instructions - setup.instructions;
        agree(
            stepped.instructions,
            instructions + calls,
            "instructions and calls",
        );
        let accesses = whole.accesses - setup.accesses;
        agree(stepped.accesses, accesses, "reads and writes");
    }
}
