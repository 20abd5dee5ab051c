//! What the text of a set may say.

use metes_admission::{Criticality, Decision, Set, admit};

const HOST: &str = "[host]\ncores = 2\nmemory = 1048576\n";
const FUNCTION: &str =
    "[[function]]\nname = \"a\"\nperiod = 10\ndeadline = 8\nbudget = 3\nmemory = 4096\n";

fn error(text: &str) -> String {
    Set::parse(text).expect_err(text).to_string()
}

#[test]
fn all_that_may_be_declared_is_read() {
    let text = format!(
        "{HOST}overheads = {{ release = 1, scrub = 2, blocking = 3 }}\n\
         compile_server = {{ budget = 10, period = 100, memory = 7, core = 1 }}\n\
         interference = [{{ budget = 1, period = 50 }}]\n\
         {FUNCTION}overhead = 4\ncore = 1\nburst = 2\ncriticality = \"low\"\n\
         network = {{ bytes = 100, latency = 5, rate = 50 }}\n"
    );
    let set = Set::parse(&text).expect("it is whole");
    assert_eq!(set.host.overheads.blocking, 3);
    assert_eq!(
        set.host.compile_server.map(|server| server.core),
        Some(Some(1))
    );
    assert_eq!(set.host.interference[0].period, 50);
    let function = &set.functions[0];
    assert_eq!(function.overhead, 4);
    assert_eq!((function.core, function.burst), (Some(1), 2));
    assert_eq!(function.criticality, Criticality::Low);
    assert_eq!(function.network.map(|network| network.rate), Some(50));
    assert_eq!(Set::parse(HOST).map(|set| set.functions.len()), Ok(0));
}

/// Bytes that are nearly a set are refused or decided, whatever they are.
#[test]
fn a_set_with_a_byte_changed_is_read_or_refused() {
    let seeds = [
        format!("{HOST}{FUNCTION}core = 1\nburst = 2\n"),
        format!("{HOST}scheduling = \"non-preemptive\"\n{FUNCTION}"),
        format!("{HOST}interference = [{{ budget = 1, period = 10 }}]\n{FUNCTION}overhead = 1\n"),
        format!(
            "{HOST}compile_server = {{ budget = 10, period = 100 }}\n{FUNCTION}budget_high = 9\n"
        ),
    ];
    let mut read = 0;
    for seed in seeds {
        let seed = seed.into_bytes();
        for place in 0..seed.len() {
            for byte in [b'9', b'"', 0xff] {
                let mut changed = seed.clone();
                changed[place] = byte;
                let Ok(set) = Set::parse(&String::from_utf8_lossy(&changed)) else {
                    continue;
                };
                read += 1;
                if let Decision::Admitted(certificate) = admit(&set) {
                    assert_eq!(certificate.check(&set), Ok(()), "{set:?}");
                }
            }
        }
    }
    assert!(read > 50, "{read}");
}

#[test]
fn an_error_names_its_line_and_a_remedy() {
    let changed = |from: &str, to: &str| error(&format!("{HOST}{FUNCTION}").replace(from, to));
    for (from, to, line, said) in [
        ("budget", "bugdet", 8, "unknown field"),
        ("period = 10", "period = 0", 4, "must be 1 or more"),
        ("period = 10", "period = -1", 6, "invalid value"),
        ("period = 10", "period = 1.5", 6, "invalid type"),
        ("period = 10", "", 4, "missing field `period`"),
        ("period = 10", "period = 10\ncore = 2", 4, "from 0 to 1"),
        ("cores = 2", "cores = 0", 1, "from 1 to 1024"),
        ("cores = 2", "cores = 2\nspeed = 3", 3, "unknown field"),
        ("name = \"a\"", "name = \"\"", 4, "give 1 to 128"),
        (
            "cores = 2",
            "cores = 2\ninterference = [{ budget = 0, period = 9 }]",
            1,
            "must be 1 or more",
        ),
        (
            "budget = 3",
            "budget = 3\nbudget_high = 2",
            4,
            "must be 3 or more",
        ),
        (
            "budget = 3",
            "budget = 3\nbudget_high = 4\nburst = 2",
            4,
            "nor may it have a burst",
        ),
        (
            "budget = 3",
            "budget = 3\nbudget_high = 4\ncriticality = \"low\"",
            4,
            "leave one of them out",
        ),
    ] {
        let told = changed(from, to);
        assert!(told.starts_with(&format!("line {line}: ")), "{to}: {told}");
        assert!(told.contains(said), "{to}: {told}");
    }
    let twice = error(&format!("{HOST}{FUNCTION}{FUNCTION}"));
    assert!(
        twice.starts_with("line 10: ") && twice.contains("name each once"),
        "{twice}"
    );
    assert!(error("").contains("missing field `host`"));
}
