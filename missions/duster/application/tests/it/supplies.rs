//! The power supplies: two steps to high voltage, and every way down.

use metes_duster_application::shared::Order;
use metes_duster_application::testing::{Bench, Told};
use metes_duster_protocol::definitions::{
    Command, Event, Failure, Housekeeping, Mode, Parameter, Rates, Supply,
};

fn stable(mode: Mode) -> Bench {
    let mut bench = Bench::in_mode(Mode::Standby);
    bench.done(&Command::ArmHighVoltage {});
    bench.command(&Command::SetHighVoltage { voltage: 500 });
    bench.run(1000);
    let told = bench.take();
    assert_eq!(Told::verification(&told).last(), Some(&(7, None)));
    let stable = Event::HvStable { voltage: 500 };
    assert!(told.iter().any(|told| told.event() == Some(stable)));
    assert!(!bench.unit.inhibited);
    if mode != Mode::Standby {
        bench.done(&Command::SetMode { mode });
    }
    bench
}

fn off(bench: &Bench) -> bool {
    bench.unit.inhibited && !bench.unit.supplies[0].on
}

#[test]
fn high_voltage_takes_two_steps() {
    let mut bench = Bench::in_mode(Mode::Standby);
    let set = Command::SetHighVoltage { voltage: 500 };
    let refused = [(1, None), (4, Some(Failure::NotArmed))];
    assert_eq!(bench.verified(&set), refused);
    bench.done(&Command::ArmHighVoltage {});
    assert!(off(&bench));
    bench.command(&set);
    bench.run(1000);
    let verified = Told::verification(&bench.take());
    assert_eq!(verified, [(1, None), (3, None), (5, None), (7, None)]);
    // Armed once, set once.
    assert_eq!(bench.verified(&set), refused);
}

#[test]
fn another_voltage_is_stable_when_it_is_there() {
    // At any time beside the requests for the status, which tell of the voltage before.
    for later in 0..50 {
        let mut bench = stable(Mode::Standby);
        bench.run(later);
        bench.done(&Command::ArmHighVoltage {});
        bench.command(&Command::SetHighVoltage { voltage: 700 });
        bench.run(1000);
        let told = bench.take();
        let stable = told.iter().filter_map(|told| match told.event() {
            Some(Event::HvStable { voltage }) => Some(voltage),
            _ => None,
        });
        assert_eq!(stable.collect::<Vec<_>>(), [700]);
    }
}

#[test]
fn arming_expires() {
    let mut bench = Bench::in_mode(Mode::Config);
    bench.done(&Command::SetParameter {
        parameter: Parameter::ArmTimeout,
        value: 2,
    });
    bench.done(&Command::ArmHighVoltage {});
    bench.run(2500);
    let told = bench.take();
    assert!(
        told.iter()
            .any(|told| told.event() == Some(Event::ArmExpired {}))
    );
    let verified = bench.verified(&Command::SetHighVoltage { voltage: 500 });
    assert_eq!(verified, [(1, None), (4, Some(Failure::NotArmed))]);
}

#[test]
fn high_voltage_goes_off_by_command_and_in_safe_mode() {
    for command in [
        Command::SafeHighVoltage {},
        Command::SetMode { mode: Mode::Safe },
    ] {
        let mut bench = stable(Mode::Standby);
        bench.done(&command);
        bench.run(200);
        assert!(off(&bench), "{command:?}");
    }
}

#[test]
fn a_supply_that_does_not_get_there_is_switched_off() {
    let mut bench = Bench::in_mode(Mode::Standby);
    bench.unit.supplies[0].stuck = true;
    bench.done(&Command::ArmHighVoltage {});
    bench.command(&Command::SetHighVoltage { voltage: 500 });
    bench.run(6000);
    let verified = Told::verification(&bench.take());
    assert_eq!(verified.last(), Some(&(8, Some(Failure::Supply))));
    assert!(off(&bench));
}

#[test]
fn garbled_replies_are_asked_for_again() {
    let mut bench = Bench::in_mode(Mode::Standby);
    bench.done(&Command::ArmHighVoltage {});
    bench.unit.supplies[0].garbled = 3;
    bench.command(&Command::SetHighVoltage { voltage: 500 });
    bench.run(1500);
    assert_eq!(Told::verification(&bench.take()).last(), Some(&(7, None)));
}

#[test]
fn a_silent_supply_is_cut_off_and_told_once() {
    let mut bench = stable(Mode::Standby);
    bench.unit.supplies[0].silent = true;
    bench.run(5000);
    assert!(bench.unit.inhibited);
    let told = bench.take();
    let silent = Event::SupplySilent {
        supply: Supply::High,
    };
    assert_eq!(
        told.iter()
            .filter(|told| told.event() == Some(silent))
            .count(),
        1
    );
    // It speaks again: it is told to switch off, and can be used.
    bench.unit.supplies[0].silent = false;
    bench.run(1000);
    assert!(off(&bench));
    bench.done(&Command::ArmHighVoltage {});
    bench.command(&Command::SetHighVoltage { voltage: 500 });
    bench.run(1500);
    assert_eq!(Told::verification(&bench.take()).last(), Some(&(7, None)));
}

#[test]
fn a_silent_supply_fails_the_command() {
    let mut bench = Bench::in_mode(Mode::Standby);
    bench.done(&Command::ArmHighVoltage {});
    bench.unit.supplies[0].silent = true;
    bench.command(&Command::SetHighVoltage { voltage: 500 });
    bench.run(1500);
    assert_eq!(
        Told::verification(&bench.take()).last(),
        Some(&(8, Some(Failure::Silent)))
    );
    assert!(bench.unit.inhibited);
}

#[test]
fn a_trip_during_an_acquisition_ends_it_safely() {
    let mut bench = stable(Mode::AcqDust);
    bench.command(&Command::StartAcquisition {
        probes: 4,
        rates: Rates::Objective,
        duration: 60,
    });
    bench.run(5000);
    bench.take();
    bench.unit.supplies[0].tripped = true;
    bench.run(1000);
    assert_eq!(bench.control().mode(), Mode::Safe);
    assert!(off(&bench));
    assert!(bench.core_1.orders.contains(&Order::Safe));
    let told = bench.take();
    assert!(
        told.iter()
            .any(|told| matches!(told.event(), Some(Event::HvTrip { .. })))
    );
    assert_eq!(Told::verification(&told), [(8, Some(Failure::Aborted))]);
    // What was acquired is there.
    bench.done(&Command::SetMode {
        mode: Mode::Standby,
    });
    bench.done(&Command::SetMode { mode: Mode::Dump });
    bench.command(&Command::DumpScience {
        acquisition: 1,
        first: 0,
        count: u32::MAX,
    });
    bench.run(8000);
    let stored = bench
        .take()
        .iter()
        .filter(|told| told.packet().telemetry.kind() == (128, 129))
        .count();
    assert_eq!(stored, bench.core_1.made.len());
    // High voltage stays off until the trip is cleared.
    bench.done(&Command::SetMode {
        mode: Mode::Standby,
    });
    let verified = bench.verified(&Command::ArmHighVoltage {});
    assert_eq!(verified, [(1, None), (4, Some(Failure::Tripped))]);
    bench.done(&Command::ClearTrip {});
    bench.done(&Command::ArmHighVoltage {});
}

#[test]
fn low_voltage_is_set_and_told() {
    let mut bench = Bench::in_mode(Mode::Config);
    for channel in 0..4 {
        let voltage = 1000 + u16::from(channel);
        bench.done(&Command::SetLowVoltage { channel, voltage });
    }
    bench.done(&Command::LowVoltageOn {});
    assert_eq!(bench.unit.supplies[1].channels, [true; 4]);
    bench.run(2000);
    let told = bench.take();
    let lv = told
        .iter()
        .rev()
        .find_map(|told| match told.housekeeping() {
            Some(Housekeeping::Supplies { supplies, .. }) => Some(supplies.lv.map(|lv| lv.voltage)),
            _ => None,
        })
        .unwrap();
    assert_eq!(lv[1..], [1001, 1002, 1003]);
    bench.done(&Command::LowVoltageOff {});
    assert_eq!(bench.unit.supplies[1].channels, [false; 4]);
    bench.unit.supplies[1].silent = true;
    bench.command(&Command::LowVoltageOn {});
    bench.run(1000);
    assert_eq!(
        Told::verification(&bench.take()).last(),
        Some(&(8, Some(Failure::Silent)))
    );
}
