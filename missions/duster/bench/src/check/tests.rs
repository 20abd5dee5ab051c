//! The mission's declaration holds; each wrong one fails for its own reason.

use super::*;
use metes_duster_system::MISSION;

fn certificate(text: &str) -> Certificate {
    certify(
        &System::read(text).unwrap_or_else(|error| panic!("{error}")),
        None,
    )
}

#[test]
fn the_mission_holds() {
    let certificate = certificate(MISSION);
    for row in &certificate.rows {
        println!(
            "{} | {} | {:?} | {:?} | {}",
            row.subject,
            row.quantity,
            row.bound.map(|v| row.unit.text(v)),
            row.limit.map(|v| row.unit.text(v)),
            row.note
        );
    }
    assert!(certificate.holds(), "{:#?}", certificate.reasons());
}
