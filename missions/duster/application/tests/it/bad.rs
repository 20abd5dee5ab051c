//! Bad input: the right report, a defined state, nothing lost.

use metes_duster_application::testing::{Bench, Told};
use metes_duster_protocol::definitions::{
    Command, Event, Failure, Mode, Probe, Rates, TELECOMMANDS,
};
use metes_duster_protocol::telecommand::encode;
use metes_duster_protocol::value::Rest;
use metes_duster_protocol::{Acknowledge, Time, checksum};

/// Sends bytes, lets silence follow, and tells the verification reports.
fn sent(bench: &mut Bench, bytes: &[u8]) -> Vec<(u8, Option<Failure>)> {
    bench.send(bytes);
    bench.run(100);
    Told::verification(&bench.take())
}

/// A telecommand with any content and a right checksum.
fn packet(service: u8, subtype: u8, data: &[u8]) -> Vec<u8> {
    let mut packet = vec![
        0x18,
        0x2a,
        0xc0,
        0x07,
        0,
        (data.len() + 6) as u8,
        0x2f,
        service,
        subtype,
        0,
        0,
    ];
    packet.extend_from_slice(data);
    let crc = checksum::of(&packet);
    packet.extend_from_slice(&crc.to_be_bytes());
    packet
}

#[test]
fn a_corrupt_telecommand_is_refused_and_the_next_one_heard() {
    let mut bench = Bench::safe();
    let good = bench.packet(&Command::Ping {});
    for byte in 6..good.len() {
        let mut bad = good.clone();
        bad[byte] ^= 0x40;
        assert_eq!(sent(&mut bench, &bad), [(2, Some(Failure::Checksum))]);
        assert_eq!(sent(&mut bench, &good).last(), Some(&(7, None)));
    }
}

#[test]
fn a_lost_byte_is_told_and_the_next_one_heard() {
    let mut bench = Bench::safe();
    let good = bench.packet(&Command::SetMode {
        mode: Mode::Standby,
    });
    for byte in 6..good.len() {
        let mut bad = good.clone();
        bad.remove(byte);
        assert_eq!(sent(&mut bench, &bad), [(2, Some(Failure::Length))]);
    }
    assert_eq!(bench.control().mode(), Mode::Safe);
    assert_eq!(sent(&mut bench, &good).last(), Some(&(7, None)));
    assert_eq!(bench.used(), 0);
}

#[test]
fn garbage_is_told_as_an_event() {
    let mut bench = Bench::safe();
    bench.send(&[0xff; 300]);
    bench.run(200);
    let told = bench.take();
    assert!(
        told.iter()
            .any(|told| matches!(told.event(), Some(Event::Garbage { .. })))
    );
    assert_eq!(bench.verified(&Command::Ping {}).last(), Some(&(7, None)));
}

#[test]
fn an_oversize_telecommand_is_refused() {
    let mut bench = Bench::safe();
    let mut bytes = vec![0x18, 0x2a, 0xc0, 0x01, 0x0f, 0xff];
    bytes.extend_from_slice(&[0; 4096]);
    assert_eq!(sent(&mut bench, &bytes), [(2, Some(Failure::Length))]);
    // One whose data is longer than the command's.
    assert_eq!(
        sent(&mut bench, &packet(17, 1, &[0; 8])),
        [(2, Some(Failure::Length))]
    );
    assert_eq!(bench.verified(&Command::Ping {}).last(), Some(&(7, None)));
}

#[test]
fn what_is_in_no_table_is_refused() {
    let mut bench = Bench::safe();
    for (bytes, code) in [
        (packet(250, 1, &[]), Failure::Service),
        (packet(17, 9, &[]), Failure::Subtype),
        (packet(8, 1, &[200]), Failure::Function),
        (packet(128, 1, &[77]), Failure::Argument),
    ] {
        assert_eq!(sent(&mut bench, &bytes), [(2, Some(code))]);
    }
}

#[test]
fn a_repeated_start_is_refused_and_disturbs_nothing() {
    let mut bench = Bench::in_mode(Mode::AcqEnv);
    let start = bench.packet(&Command::StartAcquisition {
        probes: 3,
        rates: Rates::Objective,
        duration: 60,
    });
    bench.send(&start);
    bench.send(&start);
    bench.run(1000);
    let verified = Told::verification(&bench.take());
    assert!(verified.contains(&(4, Some(Failure::Busy))));
    bench.run(61_000);
    assert_eq!(Told::verification(&bench.take()), [(7, None)]);
    let starts = bench
        .core_1
        .orders
        .iter()
        .filter(|order| matches!(order, metes_duster_application::Order::Start { .. }));
    assert_eq!(starts.count(), 1);
}

#[test]
fn reordered_commands_are_refused_by_what_is_missing() {
    let mut bench = Bench::in_mode(Mode::Standby);
    // Set before arm, start before mode, stop before start.
    let set = Command::SetHighVoltage { voltage: 5000 };
    assert!(bench.verified(&set).contains(&(4, Some(Failure::NotArmed))));
    let start = Command::StartAcquisition {
        probes: 1,
        rates: Rates::Minimum,
        duration: 60,
    };
    assert!(bench.verified(&start).contains(&(4, Some(Failure::Mode))));
    bench.done(&Command::SetMode { mode: Mode::AcqEnv });
    assert!(
        bench
            .verified(&Command::StopAcquisition {})
            .contains(&(4, Some(Failure::Idle)))
    );
}

#[test]
fn probes_that_the_mode_does_not_acquire_are_refused() {
    let mut bench = Bench::in_mode(Mode::AcqEnv);
    for probes in [4, 5, 6, 7] {
        let start = Command::StartAcquisition {
            probes,
            rates: Rates::Objective,
            duration: 60,
        };
        assert_eq!(
            bench.verified(&start),
            [(1, None), (4, Some(Failure::Probes))]
        );
    }
}

#[test]
fn sweeps_and_durations_out_of_range_are_refused() {
    let mut bench = Bench::in_mode(Mode::Sweep);
    for (steps, dwell) in [(599_u16, 10_u16), (1001, 10), (600, 9), (600, 101), (0, 0)] {
        let mut data = vec![3];
        for word in [steps, 0, 100, dwell] {
            data.extend_from_slice(&word.to_be_bytes());
        }
        assert_eq!(
            sent(&mut bench, &packet(8, 1, &data)),
            [(2, Some(Failure::Argument))]
        );
    }
    for duration in [0_u16, 59, 3601] {
        let [high, low] = duration.to_be_bytes();
        let data = [1, 3, 0, high, low];
        assert_eq!(
            sent(&mut bench, &packet(8, 1, &data)),
            [(2, Some(Failure::Argument))]
        );
    }
    assert!(bench.core_1.orders.is_empty());
}

#[test]
fn bad_schedules_are_refused() {
    let mut bench = Bench::safe();
    let now = Time::from_microseconds(bench.unit.now).units();
    let ping = bench.packet(&Command::Ping {});
    let nested = bench.packet(&Command::EnableSchedule {});
    let mut corrupt = ping.clone();
    corrupt[12] ^= 1;
    let second = 1_u64 << 16;
    for (release, request, code) in [
        (0, &ping, Failure::Time),
        (now - second, &ping, Failure::Time),
        (now + 500 * 86_400 * second, &ping, Failure::Time),
        (now + 50 * second, &nested, Failure::Nested),
        (now + 50 * second, &corrupt, Failure::Nested),
    ] {
        let insert = Command::InsertSchedule {
            count: 1,
            release: Time::from_units(release),
            request: Rest(request),
        };
        assert_eq!(bench.verified(&insert), [(1, None), (4, Some(code))]);
    }
    assert_eq!(bench.control().partition(2).unwrap().statistics().used, 0);
}

#[test]
fn a_full_schedule_refuses_and_goes_on() {
    let mut bench = Bench::safe();
    bench.done(&Command::EnableSchedule {});
    let ping = bench.packet(&Command::Ping {});
    let release = Time::from_microseconds(bench.unit.now + 60_000_000);
    let insert = Command::InsertSchedule {
        count: 1,
        release,
        request: Rest(&ping),
    };
    for _ in 0..64 {
        bench.command(&insert);
    }
    bench.take();
    bench.command(&insert);
    let told = bench.take();
    assert_eq!(
        Told::verification(&told),
        [(1, None), (4, Some(Failure::ScheduleFull))]
    );
    assert!(
        told.iter()
            .any(|told| matches!(told.event(), Some(Event::ScheduleFull { .. })))
    );
    bench.run(70_000);
    let answers = Told::verification(&bench.take())
        .iter()
        .filter(|it| it.0 == 7)
        .count();
    assert_eq!(answers, 64);
    assert_eq!(bench.used(), 0);
}

#[test]
fn a_flood_is_answered_as_the_line_allows() {
    let mut bench = Bench::safe();
    for _ in 0..500 {
        let ping = bench.packet(&Command::Ping {});
        bench.send(&ping);
    }
    bench.run(10_000);
    let verified = Told::verification(&bench.take());
    assert_eq!(verified.iter().filter(|it| it.0 == 7).count(), 500);
    assert_eq!(bench.used(), 0);
}

#[test]
fn orders_that_core_1_does_not_take_are_refused() {
    let mut bench = Bench::in_mode(Mode::Standby);
    bench.core_1.dead = true;
    let bias = Command::SetBias {
        probe: Probe::Langmuir,
        code: 5,
    };
    let mut refused = false;
    for _ in 0..16 {
        let packet = bench.packet(&bias);
        bench.send(&packet);
    }
    bench.run(150);
    refused |= Told::verification(&bench.take()).contains(&(4, Some(Failure::Orders)));
    assert!(refused);
    // One place is left, for safe mode.
    bench.run(2000);
    assert_eq!(bench.control().mode(), Mode::Safe);
    bench.core_1.dead = false;
    bench.run(100);
    assert!(
        bench
            .core_1
            .orders
            .contains(&metes_duster_application::Order::Safe)
    );
}

#[test]
fn a_telecommand_for_another_process_is_refused() {
    let mut bench = Bench::safe();
    let mut bytes = [0; 16];
    let length = encode(&Command::Ping {}, 1, Acknowledge::ALL, &mut bytes).unwrap();
    bytes[1] = 0x2b;
    let crc = checksum::of(&bytes[..length - 2]).to_be_bytes();
    bytes[length - 2..length].copy_from_slice(&crc);
    assert_eq!(
        sent(&mut bench, &bytes[..length]),
        [(2, Some(Failure::Apid))]
    );
    assert!(TELECOMMANDS.len() > 30);
}
