//! `metes mission serve`.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use metes_duster::page::serve::Live;
use metes_duster_system::System;
use metes_explorer::serve::{Server, only_here};
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
    let stop = interrupt::flag()?;
    let live = Live::new(&system.platform.name);
    let page = arguments.http.map(|port| show(&live, port)).transpose()?;
    let mut unit = unit(&arguments.unit, &system)?;
    if json {
        output::json(&json!({ "address": address.to_string(), "page": page }))?;
    } else {
        output::text(&format!("{address}\n"))?;
        if let Some(page) = &page {
            output::text(&format!("{page}\n"))?;
        }
        output::note("the unit runs until Ctrl-C");
    }
    let shown = |bytes: &[u8]| {
        if page.is_some() {
            live.take_bytes(bytes);
        }
    };
    let speed = arguments.speed;
    metes_duster::serve(&mut unit, &listener, speed, &stop, output::note, shown)
        .map_err(refused)?;
    Ok(0)
}

/// Serves the page of what is `live` until the process is interrupted; where it is.
fn show(live: &Live, port: u16) -> Result<String, Failure> {
    let here = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let router = only_here(live.router(), here.ip());
    let server = Server::over(here, router).map_err(|error| {
        Failure::input(format!(
            "port {port} of this host cannot be had: {error}; give another with --http, or 0 for any"
        ))
    })?;
    let url = format!("http://{}/", server.address());
    let ended = interrupt::ended()?;
    std::thread::spawn(move || {
        if let Err(error) = server.run(ended) {
            output::note(&format!("the page is gone: {error}"));
        }
    });
    Ok(url)
}
