//! Texts that are no systems: each says its line and what to write.

use metes_power::System;

fn refused(text: &str) -> String {
    let error = System::parse(text).expect_err(text);
    error.to_string()
}

#[test]
fn what_is_wrong_is_said_with_its_line() {
    let task = "scheduler = \"fixed-priority\"\n[[task]]\nname = \"a\"\npriority = 1\nperiod = 4\ntime = 1\n";
    assert!(System::parse(task).is_ok());
    for (from, to, says) in [
        (
            "time = 1",
            "time = -1",
            "line 2: time of `a` is -1, and must be above 0",
        ),
        (
            "time = 1",
            "time = 0",
            "line 2: time of `a` is 0, and must be above 0",
        ),
        (
            "time = 1",
            "",
            "line 2: `a` takes no time: give time, or cpu, memory and constant",
        ),
        (
            "time = 1",
            "time = 1\ncpu = 2",
            "line 2: `a` has time and cpu, memory or constant: leave one of them out",
        ),
        (
            "time = 1",
            "memory = 2",
            "line 2: `a` takes cycles of the memory, but [processor] has no memory: list its frequencies",
        ),
        (
            "time = 1",
            "cpu = 0",
            "line 2: `a` takes no time: cpu, memory and constant are all 0",
        ),
        (
            "time = 1",
            "time = 1\nblocking = -1",
            "line 2: blocking of `a` is -1, and must be 0 or more",
        ),
        (
            "time = 1",
            "time = 1\nblocking = { cpu = -1 }",
            "line 2: cpu of the blocking of `a` is -1, and must be 0 or more",
        ),
        (
            "time = 1",
            "time = 1\nblocking = { memory = 1 }",
            "line 2: `a` takes cycles of the memory, but [processor] has no memory: list its frequencies",
        ),
        (
            "time = 1",
            "time = 1\nblocking = { time = 1 }",
            "line 7: blocking is a time, or { cpu, memory, constant } of what holds the core",
        ),
        (
            "period = 4",
            "period = 0",
            "line 2: period of `a` is 0, and must be above 0",
        ),
        (
            "period = 4",
            "period = \"1/0\"",
            "line 5: `1/0` divides by zero",
        ),
        (
            "period = 4",
            "period = nan",
            "line 5: `NaN` is no number: write 4, 0.25 or \"8/3\"",
        ),
        (
            "priority = 1",
            "",
            "line 2: `a` has no priority: give one, 1 is the highest",
        ),
        (
            "priority = 1",
            "priority = 0",
            "line 2: priority of `a` is 0, and must be 1, the highest, or more",
        ),
        (
            "name = \"a\"",
            "name = \"\"",
            "line 2: a name has 0 characters: give 1 to 128, without control characters",
        ),
    ] {
        assert_eq!(refused(&task.replace(from, to)), says);
    }
    let more = |text: &str| refused(&format!("{task}{text}"));
    assert_eq!(
        more("[[task]]\nname = \"a\"\npriority = 1\nperiod = 4\ntime = 1\n"),
        "line 7: there are two of the name `a`: name each once"
    );
    assert_eq!(
        more("[processor]\ncpu = [2, 1]\n"),
        "line 7: cpu has 2 before 1: sort its frequencies, the lowest first, each once"
    );
    assert_eq!(
        more("[processor]\ncpu = []\n"),
        "line 7: cpu has no frequency: list some, or leave it out for any speed"
    );
    assert_eq!(
        more("[processor]\ncpu = [0]\n"),
        "line 7: cpu has the frequency 0, and must be above 0"
    );
    assert!(more("frobnicate = 1\n").contains("unknown field `frobnicate`"));
    assert!(refused("[[task]]\nname = \"a\"\nperiod = 1\ntime = 1\n").contains("scheduler"));
    assert_eq!(
        refused("scheduler = \"edf\"\n"),
        "there is no [[task]] and no [[job]]: give one"
    );
    assert_eq!(
        refused(
            "scheduler = \"edf\"\n[[job]]\nname = \"a\"\nrelease = 3\ndeadline = 3\nwork = 1\n"
        ),
        "line 2: deadline of `a` is 3, and must be after its release, 3"
    );
}

/// Any bytes are a system or none; a small one is checked and planned without a panic.
#[test]
fn every_prefix_and_every_change_of_a_text_has_an_answer() {
    let text = include_str!("../../examples/golden.toml");
    let mut random = metes_random::Random::new(3);
    for round in 0..400 {
        let mut bytes = text.as_bytes().to_vec();
        let at = random.below(bytes.len() as u64) as usize;
        if round % 2 == 0 {
            bytes.truncate(at);
        } else {
            bytes[at] = b"0-9/\"\n[=e."[random.below(10) as usize];
        }
        if let Ok(system) = System::parse(&String::from_utf8_lossy(&bytes)) {
            let _ = metes_power::check(&system, None);
            let _ = metes_power::plan::plan(&system, metes_power::plan::Effort::default());
        }
    }
}
