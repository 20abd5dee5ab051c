//! Modes: which follow which, what each allows.

use metes_duster_application::testing::{Bench, Unit};
use metes_duster_protocol::definitions::{
    Command, Event, Failure, Mode, ModeCause, ResetCause, TELECOMMANDS, transitions,
};
use metes_duster_protocol::value::Reader;

const IDLE: [Mode; 6] = [
    Mode::Safe,
    Mode::Standby,
    Mode::Config,
    Mode::AcqEnv,
    Mode::Sweep,
    Mode::Dump,
];

#[test]
fn a_unit_boots_into_safe_mode() {
    let mut bench = Bench::new(Unit::default());
    assert!(bench.unit.inhibited);
    bench.run(2500);
    let told = bench.take();
    let events: Vec<_> = told.iter().filter_map(|told| told.event()).collect();
    assert_eq!(
        events,
        [
            Event::Reset {
                cause: ResetCause::Power,
                resets: 0
            },
            Event::StoreRecovered {
                records: 0,
                torn: 0
            },
            Event::ModeChanged {
                from: Mode::Boot,
                to: Mode::Safe,
                cause: ModeCause::Boot
            },
        ]
    );
    assert!(bench.unit.inhibited);
    // The watchdog is kicked ten times a second.
    assert!(
        (23..=25).contains(&bench.unit.kicks),
        "{}",
        bench.unit.kicks
    );
}

#[test]
fn in_boot_the_unit_only_talks() {
    let mut bench = Bench::default();
    bench.run(100);
    assert_eq!(bench.verified(&Command::Ping {}).last(), Some(&(7, None)));
    let verified = bench.verified(&Command::SetMode { mode: Mode::Safe });
    assert_eq!(verified, [(1, None), (4, Some(Failure::Mode))]);
}

#[test]
fn modes_follow_as_the_table_says() {
    for from in IDLE {
        for to in IDLE.into_iter().chain([Mode::Boot]) {
            let mut bench = Bench::in_mode(from);
            let verified = bench.verified(&Command::SetMode { mode: to });
            let expected = if transitions(from).contains(to) {
                (7, None)
            } else {
                (4, Some(Failure::Transition))
            };
            assert_eq!(verified.last(), Some(&expected), "{from:?} to {to:?}");
        }
    }
}

#[test]
fn dust_needs_stable_high_voltage() {
    let mut bench = Bench::in_mode(Mode::Standby);
    for mode in [Mode::AcqDust, Mode::AcqFull] {
        let verified = bench.verified(&Command::SetMode { mode });
        assert_eq!(verified, [(1, None), (4, Some(Failure::NotStable))]);
    }
}

/// Arguments of zeros, or where those are out of range the least.
fn least(row: usize) -> Vec<u8> {
    use metes_duster_protocol::value::Kind;
    let mut data = Vec::new();
    for field in TELECOMMANDS[row].fields {
        let least = field.range.map_or(0, |(least, _)| least) as u64;
        let bytes = least.to_be_bytes();
        match field.kind {
            Kind::U8 => data.extend_from_slice(&bytes[7..]),
            Kind::U16 | Kind::I16 => data.extend_from_slice(&bytes[6..]),
            Kind::U32 | Kind::I32 => data.extend_from_slice(&bytes[4..]),
            Kind::Time => data.extend_from_slice(&bytes[2..]),
            Kind::Bytes => data.extend_from_slice(&[0, 1, 0]),
            Kind::Counted(_) => data.extend_from_slice(&[1, 1]),
            Kind::Rest => data.extend_from_slice(&[0; 13]),
            Kind::Enumeration("custom_structure") => data.push(16),
            Kind::Enumeration("mode") => data.push(0),
            Kind::Enumeration("probe" | "rates" | "probe_mode") => data.push(0),
            Kind::Enumeration(_) => data.push(1),
            _ => data.extend_from_slice(&[0; 4]),
        }
    }
    data
}

#[test]
fn each_command_is_refused_in_each_mode_that_does_not_allow_it() {
    for mode in IDLE {
        let mut bench = Bench::in_mode(mode);
        for (number, row) in TELECOMMANDS.iter().enumerate() {
            let data = least(number);
            if row.extra.contains(mode) {
                continue;
            }
            let command = Command::read(row.key, &mut Reader::new(&data))
                .unwrap()
                .unwrap();
            // The one range that depends on another argument: 0 is out of it.
            let command = match command {
                Command::SetParameter { parameter, .. } => Command::SetParameter {
                    parameter,
                    value: 100,
                },
                other => other,
            };
            let verified = bench.verified(&command);
            assert_eq!(
                verified,
                [(1, None), (4, Some(Failure::Mode))],
                "{} in {mode:?}",
                row.name
            );
        }
        assert_eq!(bench.control().mode(), mode);
    }
}

#[test]
fn a_restart_lets_the_watchdog_run_out() {
    let mut bench = Bench::safe();
    bench.run(500);
    let kicks = bench.unit.kicks;
    bench.run(500);
    assert!(bench.unit.kicks > kicks);
    bench.command(&Command::Restart {});
    let kicks = bench.unit.kicks;
    bench.run(3000);
    assert!(bench.unit.kicks <= kicks + 1);
    let mut bench = bench.reset(512);
    bench.run(2500);
    let told = bench.take();
    let reset = Event::Reset {
        cause: ResetCause::Watchdog,
        resets: 1,
    };
    assert_eq!(told.iter().find_map(|told| told.event()), Some(reset));
}

#[test]
fn a_core_that_no_longer_ticks_leads_to_safe_mode_and_a_reset() {
    let mut bench = Bench::in_mode(Mode::AcqEnv);
    bench.core_1.dead = true;
    bench.run(2000);
    assert_eq!(bench.control().mode(), Mode::Safe);
    let told = bench.take();
    assert!(told.iter().any(|told| matches!(
        told.event(),
        Some(Event::TaskSilent { tasks }) if tasks == 1 << 15
    )));
    let kicks = bench.unit.kicks;
    bench.run(3000);
    assert_eq!(bench.unit.kicks, kicks);
}

#[test]
fn a_bit_that_flips_in_the_image_leads_to_safe_mode_and_a_reset() {
    use metes_duster_application::declared::IMAGE_CHECK;
    let whole = Bench::in_mode(Mode::Standby);
    let portions = whole.unit.image.len().div_ceil(IMAGE_CHECK) as u32;
    for byte in (0..whole.unit.image.len()).step_by(97) {
        let mut bench = Bench::in_mode(Mode::AcqEnv);
        bench.take();
        bench.unit.image[byte] ^= 1 << (byte % 8);
        // At most one pass has seen it as it was; the next one begins behind that.
        bench.run(200 * portions);
        assert_eq!(bench.control().mode(), Mode::Safe, "byte {byte}");
        let told = bench.take();
        let events = told.iter().filter_map(|told| told.event());
        let corrupt = events.filter(|event| *event == Event::ImageCorrupt {});
        assert_eq!(corrupt.count(), 1, "byte {byte}");
        let kicks = bench.unit.kicks;
        bench.run(3000);
        assert_eq!(bench.unit.kicks, kicks, "byte {byte}");
    }
}
