//! `metes mission serve`.

use std::net::{Ipv4Addr, TcpListener};

use metes_duster_system::System;
use serde_json::json;

use super::unit;
use crate::arguments::MissionServe;
use crate::error::Failure;
use crate::{interrupt, output};

pub(super) fn run(arguments: &MissionServe, json: bool) -> Result<u8, Failure> {
    let refused = |error: std::io::Error| {
        Failure::input(format!(
            "port {} of this host cannot be had: {error}; give another with --tcp, or 0 for any",
            arguments.tcp
        ))
    };
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, arguments.tcp)).map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    let system = System::of_mission();
    let mut unit = unit(&arguments.unit, &system)?;
    if json {
        output::json(&json!({ "address": address.to_string() }))?;
    } else {
        output::text(&format!("{address}\n"))?;
        output::note("the unit runs until Ctrl-C");
    }
    let stop = interrupt::flag()?;
    metes_duster::serve(&mut unit, &listener, arguments.speed, &stop, output::note)
        .map_err(refused)?;
    Ok(0)
}
