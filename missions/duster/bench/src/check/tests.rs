//! The mission's declaration holds; each wrong one fails for its own reason.

use proptest::prelude::*;

use super::*;

#[test]
fn the_mission_holds() {
    let system = System::of_mission();
    let certificate = certify(&system, None);
    assert!(certificate.holds(), "{:#?}", certificate.reasons());
    assert_eq!(certificate.tasks.len(), system.tasks.len());
    assert!(certificate.tasks.iter().all(|task| task.response.is_some()));
    let document = certificate.document(&system);
    assert_eq!(document["holds"], true);
    let first = &document["tasks"][0];
    assert!(first["response"].as_f64().unwrap() <= first["deadline"].as_f64().unwrap());
}

/// Something that the declaration has by this name.
macro_rules! named {
    ($system:ident . $kind:ident, $name:expr) => {
        $system
            .$kind
            .iter_mut()
            .find(|it| it.name == $name)
            .expect($name)
    };
}

/// A change that is wrong, how the reason begins and what it says.
type Wrong = (fn(&mut System), &'static str, &'static str);

const WRONG_WIRES: [Wrong; 13] = [
    // The paper's rate.
    (
        |it| named!(it.lines, "telemetry").baud = 115_200,
        "line telemetry: utilisation",
        "baud at least",
    ),
    (
        |it| named!(it.lines, "telemetry").baud = 115_200,
        "buffer line: backlog has no bound",
        "more than line takes",
    ),
    // What dividers do not reach.
    (
        |it| named!(it.lines, "telemetry").baud = 1_000_000,
        "line telemetry: error of its clock",
        "divisor 13",
    ),
    (
        |it| named!(it.lines, "telemetry").baud = 921_600,
        "line telemetry: error of its clock",
        "divisor 14",
    ),
    (
        |it| named!(it.lines, "telemetry").baud = 1_562_500,
        "line telemetry: declared time between",
        "16 bytes",
    ),
    (
        |it| named!(it.lines, "log").load = metes_duster_system::Load::Bytes(20_000),
        "line log: utilisation",
        "200000 baud at least",
    ),
    // The isolated link.
    (
        |it| named!(it.buses, "dust").clock = 300_000,
        "bus dust: clock",
        "312500",
    ),
    (
        |it| named!(it.buses, "dust").clock = 10_000,
        "bus dust: clock has no bound",
        "dividers reach",
    ),
    (
        |it| named!(it.buses, "dust").clock_max = 500_000,
        "bus dust: clock",
        "446428",
    ),
    (
        |it| named!(it.buses, "dust").frames = 9,
        "front end dust: backlog has no bound",
        "sets of 9",
    ),
    (
        |it| named!(it.buses, "dust").clock = 260_000,
        "bus dust: utilisation",
        "a set of 12",
    ),
    (
        |it| named!(it.buses, "dust").fifo = 12,
        "front end dust: backlog",
        "10000 a second",
    ),
    (
        |it| named!(it.buses, "dust").rate = 12_500,
        "bus dust: samples a second",
        "sets carry",
    ),
];

const WRONG_TIMES: [Wrong; 10] = [
    (
        |it| named!(it.tasks, "acquire").budget = 900,
        "task acquire: response",
        "less urgent",
    ),
    (
        |it| named!(it.tasks, "detect").budget = 4_900,
        "task acquire: response",
        "less urgent",
    ),
    (
        |it| named!(it.tasks, "detect").budget = 4_900,
        "core 1: utilisation",
        "budgets",
    ),
    (
        |it| named!(it.tasks, "detect").budget = 4_900,
        "task orders: response has no bound",
        "more to do",
    ),
    (
        |it| named!(it.tasks, "detect").period = 8_000,
        "dust: detection",
        "each with its period",
    ),
    (
        |it| named!(it.tasks, "store").deadline = 900,
        "task store: response",
        "later deadline",
    ),
    (
        |it| named!(it.interrupts, "line-send").budget = 150,
        "core 0: utilisation",
        "interrupts",
    ),
    (
        |it| named!(it.interrupts, "line-send").period = 500,
        "line telemetry: declared time between",
        "16 bytes",
    ),
    (
        |it| it.platform.watchdog = 90_000,
        "watchdog: longest time",
        "fdir",
    ),
    (
        |it| it.platform.dispatch = 700,
        "task detect: response has no bound",
        "more to do",
    ),
];

const WRONG_MEMORY: [Wrong; 6] = [
    (
        |it| named!(it.partitions, "tm").demands[0].live *= 2,
        "partition tm: memory",
        "blocks",
    ),
    (
        |it| named!(it.partitions, "dust").size /= 2,
        "partition dust: memory",
        "live in at most",
    ),
    (
        |it| named!(it.partitions, "tm").heap = "exact-fit".to_owned(),
        "partition tm: memory has no bound",
        "no finite bound",
    ),
    (
        |it| named!(it.partitions, "tm").heap = "tslf".to_owned(),
        "partition tm: memory has no bound",
        "tlsf",
    ),
    (
        |it| {
            let demand = &mut named!(it.partitions, "tc").demands[0];
            (demand.burst, demand.rate, demand.lifetime) = (Some(2), Some(50), Some(2_000_000));
        },
        "partition tc, telecommands being executed: blocks",
        "lifetime",
    ),
    (
        |it| it.platform.memory = 262_144,
        "RAM: partitions",
        "linker",
    ),
];

const WRONG_BUFFERS: [Wrong; 7] = [
    (
        |it| named!(it.buffers, "science").capacity = 8,
        "buffer science: backlog",
        "give it room",
    ),
    (
        |it| named!(it.buffers, "science").served = None,
        "buffer science: backlog has no bound",
        "served",
    ),
    (
        |it| named!(it.buffers, "science").flows[0].rate = 42_000,
        "buffer science: backlog has no bound",
        "more than telemetry takes",
    ),
    (
        |it| named!(it.buffers, "science").flows.clear(),
        "buffer science: backlog has no bound",
        "say what comes",
    ),
    (
        |it| named!(it.buffers, "line").capacity = 2_048,
        "buffer line: backlog",
        "give it room",
    ),
    (
        |it| named!(it.buffers, "science").flows[0].rate = 400,
        "flash store: utilisation",
        "erasing",
    ),
    (
        |it| {
            (
                named!(it.buffers, "store").capacity,
                named!(it.buffers, "science").capacity,
            ) = (8, 16)
        },
        "buffers science and store: backlog",
        "while sectors are erased",
    ),
];

#[test]
fn wrong_declarations_fail_for_their_reason() {
    let all = [
        &WRONG_WIRES[..],
        &WRONG_TIMES,
        &WRONG_MEMORY,
        &WRONG_BUFFERS,
    ]
    .concat();
    for (change, begins, says) in all {
        let mut system = System::of_mission();
        change(&mut system);
        let certificate = certify(&system, None);
        assert!(!certificate.holds(), "{begins} … {says}");
        let reasons = certificate.reasons();
        let found = reasons
            .iter()
            .find(|reason| reason.starts_with(begins) && reason.contains(says));
        assert!(
            found.is_some(),
            "{begins} … {says} is not among {reasons:#?}"
        );
        assert!(
            reasons.iter().all(|reason| !reason.contains('\n')),
            "{reasons:#?}"
        );
        assert_eq!(certificate.document(&system)["holds"], false);
    }
}

#[test]
fn a_contract_within_its_blocks_holds() {
    let mut system = System::of_mission();
    let demand = &mut named!(system.partitions, "tc").demands[0];
    (demand.burst, demand.rate, demand.lifetime) = (Some(2), Some(50), Some(100_000));
    let certificate = certify(&system, None);
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
