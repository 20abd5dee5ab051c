//! Science: live, stored, dumped, deleted; over resets in the midst of it.

use metes_duster_application::testing::{Bench, Told};
use metes_duster_protocol::definitions::{Command, Event, Failure, Mode, Parameter, Rates};
use proptest::prelude::*;

const START: Command<'_> = Command::StartAcquisition {
    probes: 3,
    rates: Rates::Objective,
    duration: 60,
};

fn science(told: &[Told], subtype: u8) -> Vec<Vec<u8>> {
    told.iter()
        .filter(|told| told.packet().telemetry.kind() == (128, subtype))
        .map(|told| told.data().to_vec())
        .collect()
}

fn dump(bench: &mut Bench, acquisition: u16, first: u32, count: u32) -> Vec<Told> {
    bench.done(&Command::SetMode { mode: Mode::Dump });
    bench.command(&Command::DumpScience {
        acquisition,
        first,
        count,
    });
    let mut all = Vec::new();
    for _ in 0..400 {
        bench.run(500);
        all.extend(bench.take());
        let verified = Told::verification(&all);
        if matches!(verified.last(), Some((4 | 7 | 8, _))) {
            break;
        }
    }
    bench.run(500);
    all.extend(bench.take());
    bench.done(&Command::SetMode {
        mode: Mode::Standby,
    });
    all
}

#[test]
fn an_acquisition_is_sent_stored_and_dumped() {
    let mut bench = Bench::in_mode(Mode::AcqEnv);
    bench.command(&START);
    bench.run(61_000);
    let told = bench.take();
    let made = bench.core_1.made.clone();
    assert_eq!(made.len(), 2500);
    assert_eq!(science(&told, 128), made);
    let verified = Told::verification(&told);
    assert_eq!(verified, [(1, None), (3, None), (5, None), (7, None)]);
    let finished = Event::AcquisitionFinished {
        acquisition: 1,
        records: 2500,
    };
    assert!(told.iter().any(|told| told.event() == Some(finished)));
    assert_eq!(bench.control().mode(), Mode::Standby);
    let told = dump(&mut bench, 1, 0, u32::MAX);
    assert_eq!(science(&told, 129), made);
    let told = dump(&mut bench, 1, 100, 5);
    assert_eq!(science(&told, 129), made[100..105]);
    bench.run(500);
    assert_eq!((bench.used(), bench.core_1.used()), (0, 0));
    assert_eq!(bench.core_1.dropped, 0);
}

#[test]
fn acquisitions_are_found_and_deleted_from_the_oldest_on() {
    let mut bench = Bench::in_mode(Mode::Standby);
    let mut made = Vec::new();
    for _ in 0..3 {
        bench.done(&Command::SetMode { mode: Mode::AcqEnv });
        bench.command(&START);
        bench.run(7000);
        bench.command(&Command::StopAcquisition {});
        bench.run(1000);
        made.push(core::mem::take(&mut bench.core_1.made));
        assert_eq!(bench.control().mode(), Mode::Standby);
    }
    bench.take();
    for (acquisition, made) in (1..).zip(&made) {
        assert!(made.len() > 280);
        assert_eq!(
            science(&dump(&mut bench, acquisition, 0, u32::MAX), 129),
            *made
        );
    }
    assert_eq!(
        science(&dump(&mut bench, 0, 0, u32::MAX), 129),
        made.concat()
    );
    bench.command(&Command::DeleteScience { acquisition: 1 });
    bench.run(3000);
    assert_eq!(Told::verification(&bench.take()).last(), Some(&(7, None)));
    assert_eq!(
        science(&dump(&mut bench, 0, 0, u32::MAX), 129),
        made[1..].concat()
    );
    let told = dump(&mut bench, 1, 0, u32::MAX);
    assert_eq!(
        Told::verification(&told).last(),
        Some(&(8, Some(Failure::NoAcquisition)))
    );
    let told = dump(&mut bench, 9, 0, u32::MAX);
    assert_eq!(
        Told::verification(&told).last(),
        Some(&(4, Some(Failure::NoAcquisition)))
    );
    // A deletion outlives a reset.
    let mut bench = bench.reset(512);
    bench.run(2500);
    bench.done(&Command::SetMode {
        mode: Mode::Standby,
    });
    assert_eq!(
        science(&dump(&mut bench, 0, 0, u32::MAX), 129),
        made[1..].concat()
    );
    bench.command(&Command::DeleteScience {
        acquisition: u16::MAX,
    });
    bench.run(1000);
    assert_eq!(Told::verification(&bench.take()).last(), Some(&(7, None)));
    let told = dump(&mut bench, 0, 0, u32::MAX);
    assert_eq!(science(&told, 129).len(), 0);
}

#[test]
fn a_dump_ends_when_it_is_told_to_or_its_mode_ends() {
    for command in [
        Command::StopDump {},
        Command::SetMode {
            mode: Mode::Standby,
        },
    ] {
        let mut bench = Bench::in_mode(Mode::AcqEnv);
        bench.command(&START);
        bench.run(20_000);
        bench.command(&Command::StopAcquisition {});
        bench.run(1000);
        bench.done(&Command::SetMode { mode: Mode::Dump });
        bench.command(&Command::DumpScience {
            acquisition: 1,
            first: 0,
            count: u32::MAX,
        });
        bench.run(1000);
        // The ground goes away in the midst of it: the unit cannot know, and goes on.
        bench.take();
        bench.command(&command);
        bench.run(1000);
        let told = bench.take();
        let verified = Told::verification(&told);
        assert!(
            verified.contains(&(8, Some(Failure::Aborted))),
            "{verified:?}"
        );
        assert!(verified.contains(&(7, None)));
        assert_eq!(bench.used(), 0);
        // And all is there for the next one.
        if bench.control().mode() == Mode::Dump {
            bench.done(&Command::SetMode {
                mode: Mode::Standby,
            });
        }
        let made = bench.core_1.made.clone();
        assert_eq!(science(&dump(&mut bench, 1, 0, u32::MAX), 129), made);
    }
}

#[test]
fn science_is_sent_or_kept_as_the_ground_wants() {
    for (parameter, live, stored) in [
        (Parameter::LiveScience, false, true),
        (Parameter::StoreScience, true, false),
    ] {
        let mut bench = Bench::in_mode(Mode::Standby);
        bench.done(&Command::SetParameter {
            parameter,
            value: 0,
        });
        bench.done(&Command::SetMode { mode: Mode::AcqEnv });
        bench.command(&START);
        bench.run(10_000);
        bench.command(&Command::StopAcquisition {});
        bench.run(1000);
        let made = bench.core_1.made.clone();
        let told = bench.take();
        assert_eq!(science(&told, 128).len(), if live { made.len() } else { 0 });
        let told = dump(&mut bench, 0, 0, u32::MAX);
        assert_eq!(
            science(&told, 129).len(),
            if stored { made.len() } else { 0 }
        );
        assert_eq!((bench.used(), bench.core_1.used()), (0, 0));
    }
}

#[test]
fn a_flash_that_fails_now_and_then_loses_nothing() {
    let mut bench = Bench::in_mode(Mode::AcqEnv);
    bench.command(&START);
    for _ in 0..10 {
        bench.unit.flash.failing = 2;
        bench.run(2000);
    }
    bench.command(&Command::StopAcquisition {});
    bench.run(1000);
    let told = bench.take();
    assert!(
        told.iter()
            .any(|told| matches!(told.event(), Some(Event::StoreFailed { .. })))
    );
    let mut stored = science(&dump(&mut bench, 1, 0, u32::MAX), 129);
    stored.sort_by_key(|data| data[6..10].to_vec());
    assert_eq!(stored, bench.core_1.made);
}

#[test]
fn a_flash_that_is_broken_stops_no_acquisition() {
    let mut bench = Bench::in_mode(Mode::AcqEnv);
    bench.command(&START);
    bench.run(2000);
    bench.unit.flash.failing = u32::MAX;
    bench.run(60_000);
    let told = bench.take();
    assert_eq!(science(&told, 128).len(), bench.core_1.made.len());
    assert_eq!(Told::verification(&told).last(), Some(&(7, None)));
    assert_eq!(bench.core_1.used(), 0);
    // The next one would not be kept.
    bench.done(&Command::SetMode { mode: Mode::AcqEnv });
    assert_eq!(
        bench.verified(&START),
        [(1, None), (4, Some(Failure::StoreFull))]
    );
}

#[test]
fn an_acquisition_without_an_end_is_given_up() {
    let mut bench = Bench::in_mode(Mode::AcqEnv);
    bench.core_1.endless = true;
    bench.command(&START);
    assert!(bench.verified(&START).contains(&(4, Some(Failure::Busy))));
    let mode = Mode::Standby;
    assert_eq!(
        bench.verified(&Command::SetMode { mode }),
        [(1, None), (4, Some(Failure::Busy))]
    );
    bench.run(72_000);
    assert_eq!(bench.control().mode(), Mode::Safe);
    let verified = Told::verification(&bench.take());
    assert_eq!(verified, [(8, Some(Failure::Aborted))]);
}

#[test]
fn more_science_than_the_line_carries_is_stored() {
    let mut bench = Bench::in_mode(Mode::AcqEnv);
    bench.core_1.pace = 8;
    bench.command(&START);
    bench.run(20_000);
    bench.command(&Command::StopAcquisition {});
    bench.run(2000);
    let made = bench.core_1.made.clone();
    assert!(made.len() > 2400);
    let sent = science(&bench.take(), 128).len();
    assert!(sent < made.len());
    assert_eq!(bench.core_1.dropped, 0);
    assert_eq!(science(&dump(&mut bench, 1, 0, u32::MAX), 129), made);
}

#[test]
fn a_sweep_ends_as_one() {
    let mut bench = Bench::in_mode(Mode::Sweep);
    bench.command(&Command::StartSweep {
        steps: 600,
        from: -100,
        to: 100,
        dwell: 10,
    });
    bench.run(8000);
    let told = bench.take();
    let records = bench.core_1.made.len() as u32;
    let swept = Event::SweepFinished {
        acquisition: 1,
        records,
    };
    assert!(told.iter().any(|told| told.event() == Some(swept)));
    assert_eq!(bench.control().mode(), Mode::Standby);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn what_was_stored_outlives_resets_at_any_time(
        runs in prop::collection::vec((1..4000_u32, 0..=512_usize), 1..4),
    ) {
        let mut bench = Bench::in_mode(Mode::AcqEnv);
        let mut kept: Vec<Vec<u8>> = Vec::new();
        for (milliseconds, done) in runs {
            bench.command(&START);
            bench.run(milliseconds);
            // What went to the line had been stored.
            bench.unit.pass(2000);
            let sent = science(&bench.take(), 128);
            let made = core::mem::take(&mut bench.core_1.made);
            prop_assert_eq!(&made[..sent.len()], &sent[..]);
            kept.extend(sent);
            bench = bench.reset(done);
            bench.run(2600);
            prop_assert_eq!(bench.control().mode(), Mode::Safe);
            bench.done(&Command::SetMode { mode: Mode::Standby });
            let dumped = science(&dump(&mut bench, 0, 0, u32::MAX), 129);
            // At most what waited for the line is there, too.
            prop_assert!(kept.iter().all(|data| dumped.contains(data)), "{} of {}", dumped.len(), kept.len());
            kept = dumped;
            bench.done(&Command::SetMode { mode: Mode::AcqEnv });
        }
    }
}
