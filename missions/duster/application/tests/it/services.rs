//! Each service answers as its table says.

use metes_duster_application::testing::Bench;
use metes_duster_protocol::definitions::{
    Command, CustomStructure, Event, EventName, Failure, Housekeeping, Mode, Parameter, Report,
    Structure,
};
use metes_duster_protocol::telecommand::encode;
use metes_duster_protocol::value::{Counted, Rest};
use metes_duster_protocol::{Acknowledge, RequestId, Time};

const OK: [(u8, Option<Failure>); 3] = [(1, None), (3, None), (7, None)];

#[test]
fn a_ping_is_answered() {
    let mut bench = Bench::safe();
    bench.command(&Command::Ping {});
    let told = bench.take();
    assert!(
        told.iter()
            .any(|told| told.report() == Some(Report::Alive {}))
    );
    let request = RequestId {
        packet: 0x182a,
        sequence: 0xc001,
    };
    assert_eq!(told[0].report(), Some(Report::Accepted { request }));
}

#[test]
fn only_wanted_acknowledgements_are_sent() {
    let mut bench = Bench::safe();
    let mut packet = [0; 16];
    let length = encode(&Command::ReportMode {}, 5, Acknowledge::NONE, &mut packet).unwrap();
    bench.send(&packet[..length]);
    bench.run(100);
    let reports: Vec<_> = bench
        .take()
        .into_iter()
        .filter(|told| told.report().is_some())
        .collect();
    assert_eq!(reports.len(), 1);
    assert_eq!(
        reports[0].report(),
        Some(Report::ModeReport { mode: Mode::Safe })
    );
}

#[test]
fn both_processes_are_reached() {
    let mut bench = Bench::safe();
    for apid in [0x2a, 0x2b] {
        bench.command(&Command::TestConnection { apid });
        let told = bench.take();
        assert!(
            told.iter()
                .any(|told| told.report() == Some(Report::Connected { apid }))
        );
    }
    bench.core_1.dead = true;
    bench.run(1500);
    bench.take();
    let verified = bench.verified(&Command::TestConnection { apid: 0x2b });
    assert_eq!(verified, [(1, None), (4, Some(Failure::Silent))]);
}

#[test]
fn parameters_are_set_and_told() {
    let mut bench = Bench::in_mode(Mode::Config);
    let parameter = Parameter::ArmTimeout;
    assert_eq!(
        bench.verified(&Command::SetParameter {
            parameter,
            value: 30
        }),
        OK
    );
    bench.command(&Command::ReportParameter { parameter });
    let value = Report::ParameterValue {
        parameter,
        value: 30,
    };
    assert!(bench.take().iter().any(|told| told.report() == Some(value)));
    let verified = bench.verified(&Command::SetParameter {
        parameter,
        value: 601,
    });
    assert_eq!(verified, [(2, Some(Failure::Argument))]);
    let read_only = Command::SetParameter {
        parameter: Parameter::Uptime,
        value: 1,
    };
    assert_eq!(
        bench.verified(&read_only),
        [(1, None), (4, Some(Failure::ReadOnly))]
    );
}

#[test]
fn housekeeping_comes_at_its_period() {
    let mut bench = Bench::safe();
    let count = |bench: &mut Bench| {
        bench.run(10_000);
        bench
            .take()
            .iter()
            .filter(|told| matches!(told.housekeeping(), Some(Housekeeping::System { .. })))
            .count()
    };
    assert_eq!(count(&mut bench), 10);
    let structure = Structure::System;
    bench.done(&Command::SetHousekeepingPeriod {
        structure,
        interval: 5,
    });
    assert_eq!(count(&mut bench), 20);
    bench.done(&Command::DisableHousekeeping { structure });
    assert_eq!(count(&mut bench), 0);
    bench.command(&Command::ReportHousekeeping { structure });
    assert!(
        bench
            .take()
            .iter()
            .any(|told| told.housekeeping().is_some())
    );
    bench.done(&Command::EnableHousekeeping { structure });
    assert_eq!(count(&mut bench), 20);
}

#[test]
fn a_structure_of_the_grounds_choice_has_its_parameters() {
    let mut bench = Bench::safe();
    let (structure, custom) = (Structure::Custom1, CustomStructure::Custom1);
    let refused = [(1, None), (4, Some(Failure::NoEntry))];
    assert_eq!(
        bench.verified(&Command::ReportHousekeeping { structure }),
        refused
    );
    let parameters = [Parameter::Mode as u8, Parameter::ArmTimeout as u8];
    let create = Command::CreateHousekeeping {
        structure: custom,
        interval: 10,
        parameters: Counted::new(&parameters),
    };
    assert_eq!(bench.verified(&create), OK);
    assert_eq!(
        bench.verified(&create),
        [(1, None), (4, Some(Failure::Exists))]
    );
    bench.command(&Command::ReportHousekeeping { structure });
    let told = bench.take();
    let values: Vec<i32> = told
        .iter()
        .find_map(|told| match told.housekeeping() {
            Some(Housekeeping::Custom1 { values }) => Some(values.iter().collect()),
            _ => None,
        })
        .unwrap();
    assert_eq!(values, [1, 60]);
    assert_eq!(
        bench.verified(&Command::DeleteHousekeeping { structure: custom }),
        OK
    );
    assert_eq!(
        bench.verified(&Command::DeleteHousekeeping { structure: custom }),
        refused
    );
}

#[test]
fn events_are_silenced_and_heard_again() {
    let mut bench = Bench::safe();
    let event = EventName::ModeChanged;
    let changes = |bench: &mut Bench| {
        for mode in [Mode::Standby, Mode::Safe] {
            bench.command(&Command::SetMode { mode });
        }
        let told = bench.take();
        told.iter()
            .filter(|told| matches!(told.event(), Some(Event::ModeChanged { .. })))
            .count()
    };
    assert_eq!(changes(&mut bench), 2);
    bench.done(&Command::DisableEvent { event });
    assert_eq!(changes(&mut bench), 0);
    bench.command(&Command::ReportDisabledEvents {});
    let told = bench.take();
    let disabled: Vec<u8> = told
        .iter()
        .find_map(|told| match told.report() {
            Some(Report::DisabledEvents { events }) => Some(events.iter().collect()),
            _ => None,
        })
        .unwrap();
    assert_eq!(disabled, [event as u8]);
    bench.done(&Command::EnableEvent { event });
    assert_eq!(changes(&mut bench), 2);
}

#[test]
fn time_is_what_the_ground_says() {
    let mut bench = Bench::safe();
    let time = Time::from_microseconds(1_000_000_000_000);
    bench.done(&Command::SetTime { time });
    bench.command(&Command::Ping {});
    let stamp = bench.take()[0].packet().time;
    let since = stamp.units() - time.units();
    assert!((1 << 16..2 << 16).contains(&since), "{since}");
}

fn insert(bench: &mut Bench, after: u64, command: &Command<'_>) -> Vec<(u8, Option<Failure>)> {
    let request = bench.packet(command);
    let release = Time::from_microseconds(bench.unit.now + after);
    bench.verified(&Command::InsertSchedule {
        count: 1,
        release,
        request: Rest(&request),
    })
}

fn modes(bench: &mut Bench) -> usize {
    let told = bench.take();
    told.iter()
        .filter(|told| matches!(told.report(), Some(Report::ModeReport { .. })))
        .count()
}

#[test]
fn scheduled_commands_are_released_in_their_order() {
    let mut bench = Bench::safe();
    bench.done(&Command::EnableSchedule {});
    assert_eq!(insert(&mut bench, 3_000_000, &Command::Ping {}), OK);
    assert_eq!(insert(&mut bench, 2_000_000, &Command::ReportMode {}), OK);
    bench.command(&Command::ReportSchedule {});
    let told = bench.take();
    let waiting: Vec<_> = told
        .iter()
        .find_map(|told| match told.report() {
            Some(Report::Schedule { entries }) => Some(entries.iter().collect::<Vec<_>>()),
            _ => None,
        })
        .unwrap();
    assert_eq!(waiting.len(), 2);
    bench.run(4000);
    let told = bench.take();
    let answers: Vec<_> = told
        .iter()
        .filter_map(|told| match told.report()? {
            Report::ModeReport { .. } => Some(1),
            Report::Alive {} => Some(2),
            _ => None,
        })
        .collect();
    assert_eq!(answers, [1, 2]);
    assert_eq!(bench.control().partition(2).unwrap().statistics().used, 0);
}

#[test]
fn the_schedule_is_stopped_emptied_and_corrected() {
    let mut bench = Bench::safe();
    // It does not run: what falls due is dropped, and told.
    assert_eq!(insert(&mut bench, 500_000, &Command::ReportMode {}), OK);
    bench.run(2000);
    let told = bench.take();
    assert!(told.iter().any(|told| matches!(
        told.event(),
        Some(Event::ScheduledRefused {
            code: Failure::Time,
            ..
        })
    )));
    bench.done(&Command::EnableSchedule {});
    assert_eq!(insert(&mut bench, 500_000, &Command::ReportMode {}), OK);
    bench.done(&Command::ResetSchedule {});
    bench.done(&Command::EnableSchedule {});
    bench.run(1000);
    assert_eq!(modes(&mut bench), 0);
    assert_eq!(insert(&mut bench, 500_000, &Command::ReportMode {}), OK);
    // The request within was the packet before the last.
    let request = RequestId {
        packet: 0x182a,
        sequence: 0xc000 | (bench.packet(&Command::Ping {})[3] as u16 - 2),
    };
    assert_eq!(bench.verified(&Command::DeleteSchedule { request }), OK);
    let gone = [(1, None), (4, Some(Failure::NoEntry))];
    assert_eq!(bench.verified(&Command::DeleteSchedule { request }), gone);
    bench.run(1000);
    assert_eq!(modes(&mut bench), 0);
    assert_eq!(bench.control().partition(2).unwrap().statistics().used, 0);
}

#[test]
fn a_scheduled_command_is_refused_like_any_other() {
    let mut bench = Bench::safe();
    bench.done(&Command::EnableSchedule {});
    // What is not allowed in a mode may be by then: it is refused when it is released.
    assert_eq!(insert(&mut bench, 500_000, &Command::ArmHighVoltage {}), OK);
    bench.run(1000);
    let told = bench.take();
    assert!(told.iter().any(|told| matches!(
        told.event(),
        Some(Event::ScheduledRefused {
            code: Failure::Mode,
            ..
        })
    )));
}

#[test]
fn the_log_tells_modes_and_faults() {
    let mut bench = Bench::safe();
    bench.command(&Command::SetMode {
        mode: Mode::Standby,
    });
    bench.command(&Command::ArmHighVoltage {});
    bench.command(&Command::StopDump {});
    bench.run(200);
    let logged = String::from_utf8(bench.unit.logged.clone()).unwrap();
    assert!(logged.contains("M 00000001 00000002\n"), "{logged}");
    assert!(logged.contains("C 182ac003 00000014\n"), "{logged}");
}
