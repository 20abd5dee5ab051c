//! The mission's declaration holds; each wrong one fails for its own reason.

use metes_duster_system::MISSION;
use proptest::prelude::*;

use super::*;

fn certificate(text: &str) -> Certificate {
    certify(
        &System::read(text).unwrap_or_else(|error| panic!("{error}")),
        None,
    )
}

#[test]
fn the_mission_holds() {
    let certificate = certificate(MISSION);
    assert!(certificate.holds(), "{:#?}", certificate.reasons());
    let system = System::of_mission();
    assert_eq!(certificate.tasks.len(), system.tasks.len());
    assert!(certificate.tasks.iter().all(|task| task.response.is_some()));
    let document = certificate.document(&system);
    assert_eq!(document["holds"], true);
    let first = &document["tasks"][0];
    assert!(first["response"].as_f64().unwrap() <= first["deadline"].as_f64().unwrap());
}

/// The mission with the text `from` behind `[[kind]] name = "…"` replaced.
fn changed(kind: &str, name: &str, from: &str, to: &str) -> String {
    let head = match name {
        "" => format!("[{kind}]\n"),
        _ => format!("[[{kind}]]\nname = \"{name}\""),
    };
    let at = MISSION.find(&head).unwrap_or_else(|| panic!("{head}"));
    let (before, behind) = MISSION.split_at(at);
    assert!(behind.contains(from), "{from}");
    format!("{before}{}", behind.replacen(from, to, 1))
}

#[test]
fn wrong_declarations_fail_for_their_reason() {
    // What is changed, and how the reason begins and what it says.
    let cases = [
        // The paper's rate: 115 200 baud.
        (
            "line",
            "telemetry",
            "baud = 781_250",
            "baud = 115_200",
            "line telemetry: utilisation",
            "baud at least",
        ),
        (
            "line",
            "telemetry",
            "baud = 781_250",
            "baud = 115_200",
            "buffer line: backlog has no bound",
            "more than line takes",
        ),
        // What dividers do not reach: 1 Mb/s, 921 600.
        (
            "line",
            "telemetry",
            "baud = 781_250",
            "baud = 1_000_000",
            "line telemetry: error of its clock",
            "divisor 13",
        ),
        (
            "line",
            "telemetry",
            "baud = 781_250",
            "baud = 921_600",
            "line telemetry: error of its clock",
            "divisor 14",
        ),
        (
            "line",
            "telemetry",
            "baud = 781_250",
            "baud = 1_562_500",
            "line telemetry: declared time between interrupts",
            "16 bytes",
        ),
        (
            "line",
            "log",
            "load = 2_000",
            "load = 20_000",
            "line log: utilisation",
            "200000 baud at least",
        ),
        // The isolated link.
        (
            "bus",
            "dust",
            "clock = 625_000",
            "clock = 300_000",
            "bus dust: clock",
            "312500",
        ),
        (
            "bus",
            "dust",
            "clock = 625_000",
            "clock = 10_000",
            "bus dust: clock has no bound",
            "dividers reach",
        ),
        (
            "bus",
            "dust",
            "clock_max = 750_000",
            "clock_max = 500_000",
            "bus dust: clock",
            "446428",
        ),
        (
            "bus",
            "dust",
            "frames = 12",
            "frames = 9",
            "front end dust: backlog has no bound",
            "sets of 9",
        ),
        (
            "bus",
            "dust",
            "clock = 625_000\nclock_min = 300_000",
            "clock = 260_000\nclock_min = 200_000",
            "bus dust: utilisation",
            "a set of 12",
        ),
        (
            "bus",
            "dust",
            "fifo = 64",
            "fifo = 12",
            "front end dust: backlog",
            "10000 a second",
        ),
        (
            "bus",
            "dust",
            "rate = 10_000",
            "rate = 12_500",
            "bus dust: samples a second",
            "sets carry",
        ),
        // Time.
        (
            "task",
            "acquire",
            "budget = 150",
            "budget = 900",
            "task acquire: response",
            "less urgent",
        ),
        (
            "task",
            "detect",
            "budget = 200",
            "budget = 4_900",
            "task acquire: response",
            "less urgent",
        ),
        (
            "task",
            "detect",
            "budget = 200",
            "budget = 4_900",
            "core 1: utilisation",
            "budgets",
        ),
        (
            "task",
            "detect",
            "budget = 200",
            "budget = 4_900",
            "task orders: response has no bound",
            "more to do",
        ),
        (
            "task",
            "detect",
            "period = 5_000\noffset = 0\ndeadline = 5_000",
            "period = 8_000\noffset = 0\ndeadline = 8_000",
            "dust: detection",
            "each with its period",
        ),
        (
            "task",
            "store",
            "deadline = 4_000",
            "deadline = 1_500",
            "task store: response",
            "later deadline",
        ),
        (
            "interrupt",
            "line-send",
            "budget = 12",
            "budget = 150",
            "core 0: utilisation",
            "interrupts",
        ),
        (
            "platform",
            "",
            "watchdog = 3_000_000",
            "watchdog = 90_000",
            "watchdog: longest time",
            "fdir",
        ),
        (
            "platform",
            "",
            "dispatch = 5",
            "dispatch = 700",
            "task detect: response has no bound",
            "more to do",
        ),
        // Memory.
        (
            "partition",
            "tm",
            "live = 40",
            "live = 60",
            "partition tm: memory",
            "60 blocks",
        ),
        (
            "partition",
            "dust",
            "size = 131_072",
            "size = 65_536",
            "partition dust: memory",
            "64 blocks",
        ),
        (
            "partition",
            "tm",
            "tlsf:second_level=8",
            "exact-fit",
            "partition tm: memory has no bound",
            "no finite bound",
        ),
        (
            "partition",
            "tm",
            "tlsf:second_level=8",
            "tslf",
            "partition tm: memory has no bound",
            "tlsf",
        ),
        (
            "partition",
            "tc",
            "live = 8",
            "live = 8\nburst = 2\nrate = 50\nlifetime = 200_000",
            "partition tc, telecommands being executed: blocks",
            "lifetime",
        ),
        (
            "platform",
            "",
            "memory = 67_108_864",
            "memory = 262_144",
            "RAM: partitions",
            "linker",
        ),
        // Buffers.
        (
            "buffer",
            "science",
            "capacity = 64",
            "capacity = 16",
            "buffer science: backlog",
            "give it room",
        ),
        (
            "buffer",
            "science",
            "served = 2",
            "",
            "buffer science: backlog has no bound",
            "served",
        ),
        (
            "buffer",
            "science",
            "rate = 42",
            "rate = 420",
            "buffer science: backlog has no bound",
            "more than telemetry takes",
        ),
        (
            "buffer",
            "line",
            "capacity = 8_192",
            "capacity = 2_048",
            "buffer line: backlog",
            "give it room",
        ),
        (
            "science",
            "",
            "samples_a_packet = 384",
            "samples_a_packet = 4",
            "flash store: utilisation",
            "erasing",
        ),
    ];
    for (kind, name, from, to, begins, says) in cases {
        let certificate = certificate(&changed(kind, name, from, to));
        assert!(!certificate.holds(), "{to}");
        let reasons = certificate.reasons();
        let found = reasons
            .iter()
            .find(|reason| reason.starts_with(begins) && reason.contains(says));
        assert!(
            found.is_some(),
            "{to}: {begins} … {says} is not among {reasons:#?}"
        );
        assert!(
            reasons.iter().all(|reason| !reason.contains('\n')),
            "{reasons:#?}"
        );
        assert_eq!(certificate.document(&System::of_mission())["holds"], false);
    }
}

#[test]
fn a_contract_within_its_blocks_holds() {
    let text = changed(
        "partition",
        "tc",
        "live = 8",
        "live = 8\nburst = 2\nrate = 50\nlifetime = 100_000",
    );
    let certificate = certificate(&text);
    assert!(certificate.holds(), "{:?}", certificate.reasons());
    let row = certificate
        .rows
        .iter()
        .find(|row| row.quantity == "blocks by rate and lifetime")
        .unwrap();
    // 2 and 50 a second for a tenth of one.
    assert_eq!(row.bound, Some(7));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    /// Figures of any size give rows, not panics, and a certificate that says what it is.
    #[test]
    fn figures_of_any_size_give_reasons(figures in prop::collection::vec(any::<u64>(), 8), small in any::<bool>()) {
        let mut system = System::of_mission();
        let figure = |number: usize| if small { figures[number] % 100_000 + 1 } else { figures[number].max(1) };
        let of_32 = |number: usize| (figure(number) as u32).max(1);
        system.tasks[0].budget = figure(0) >> 12;
        system.tasks[3].period = (figure(1) >> 12).max(1);
        system.interrupts[0].period = (figure(2) >> 12).max(1);
        system.lines[0].baud = of_32(3);
        system.buses[2].clock = of_32(4);
        system.buses[2].rate = of_32(4);
        system.buffers[0].capacity = figure(5) as usize >> 12;
        system.buffers[0].flows[0].rate = figure(6) >> 12;
        system.partitions[0].demands[0].live = figure(7) as usize % 100_000;
        let certificate = certify(&system, None);
        prop_assert_eq!(certificate.holds(), certificate.reasons().is_empty());
    }
}
