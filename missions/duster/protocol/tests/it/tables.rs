//! What the tables promise beyond what compiles.

use std::collections::BTreeSet;

use metes_duster_protocol::definitions::{
    ENUMERATIONS, EVENTS, EventName, HOUSEKEEPING, Housekeeping, Memories, Mode, PARAMETERS,
    Parameter, REPORTS, Supplies, System, TELECOMMANDS, transitions,
};
use metes_duster_protocol::telemetry::MAX_DATA;
use metes_duster_protocol::value::Value;

fn modes() -> impl Iterator<Item = Mode> {
    (0..=u8::MAX).map_while(Mode::of)
}

#[test]
fn keys_and_names_are_there_once() {
    fn once<T: Ord + std::fmt::Debug>(all: impl Iterator<Item = T>) {
        let mut seen = BTreeSet::new();
        for one in all {
            let told = format!("{one:?}");
            assert!(seen.insert(one), "{told} is there twice");
        }
    }
    once(TELECOMMANDS.iter().map(|row| row.key));
    once(TELECOMMANDS.iter().map(|row| row.name));
    once(REPORTS.iter().map(|row| row.key));
    once(REPORTS.iter().map(|row| row.name));
    once(HOUSEKEEPING.iter().map(|row| row.key));
    once(EVENTS.iter().map(|row| row.name));
    once(ENUMERATIONS.iter().map(|enumeration| enumeration.name));
    for enumeration in ENUMERATIONS {
        once(enumeration.values.iter().map(|value| value.0));
        once(enumeration.values.iter().map(|value| value.1));
    }
}

#[test]
fn commands_name_events_and_structures_as_their_tables_do() {
    for event in EVENTS {
        assert_eq!(EventName::of(event.key.0).unwrap().name(), event.name);
    }
    assert_eq!(EventName::DEFINITION.values.len(), EVENTS.len());
    for structure in HOUSEKEEPING {
        let name = metes_duster_protocol::definitions::Structure::of(structure.key.0).unwrap();
        assert_eq!(name.name(), structure.name);
    }
    for row in PARAMETERS {
        assert_eq!(row.parameter.definition(), Some(row));
    }
    assert_eq!(Parameter::Mode.definition(), None);
    assert_eq!(Parameter::Uptime.definition(), None);
}

#[test]
fn structures_fit_into_packets() {
    for size in [System::SIZE, Supplies::SIZE, Memories::SIZE] {
        assert!(size + 2 <= MAX_DATA, "{size}");
    }
    let values = [0; 4 * 16];
    let custom = Housekeeping::Custom1 {
        values: metes_duster_protocol::value::Counted::new(&values),
    };
    assert_eq!(custom.extra(), 0);
}

#[test]
fn from_every_mode_commands_lead_to_standby() {
    for mode in modes().skip(1) {
        assert!(transitions(mode).contains(Mode::Standby) || mode == Mode::Standby);
        assert!(transitions(mode).contains(Mode::Safe));
        assert!(!transitions(mode).contains(Mode::Boot));
    }
    // An acquisition is not left for another.
    assert!(!transitions(Mode::AcqFull).contains(Mode::AcqDust));
    // Dust needs high voltage, which safe mode has not.
    assert!(!transitions(Mode::Safe).contains(Mode::AcqDust));
}

#[test]
fn each_telecommand_is_allowed_somewhere() {
    for row in TELECOMMANDS {
        assert!(modes().any(|mode| row.extra.contains(mode)), "{}", row.name);
    }
}
