//! `metes edge serve`: a host until it is asked to end.

use std::time::Duration;

use metes_edge::http::HttpLimits;
use metes_edge::serve::{Listeners, serve};
use metes_edge::{Host, HostOptions, Options};

use crate::arguments::EdgeServe;
use crate::error::Failure;
use crate::{interrupt, output};

pub(super) fn run(arguments: &EdgeServe, json: bool) -> Result<u8, Failure> {
    let options = HostOptions {
        cores: arguments.cores,
        priority: arguments.priority,
        functions: arguments.functions as usize,
        engine: Options {
            slots: arguments.slots as usize,
            slot_bytes: arguments.slot,
            lock: !arguments.unlocked,
            look: Some(Duration::from_micros(arguments.look)),
            deadline_priority: arguments.priority.map(|_| 80),
            ..Options::default()
        },
        ..HostOptions::default()
    };
    let host = Host::start(options).map_err(|error| Failure::input(error.to_string()))?;
    let listeners = Listeners::new(arguments.tcp, Some(&arguments.socket));
    let listeners =
        listeners.map_err(|error| Failure::io("listen on", &arguments.socket, error))?;
    let listeners = listeners.with(HttpLimits {
        timeout: Duration::from_millis(arguments.timeout),
        connections: arguments.connections as usize,
        deployments: arguments.deployments as usize,
    });
    let address = listeners.address();
    let ended = interrupt::ended()?;
    if json {
        let mut document =
            serde_json::to_value(host.told()).map_err(|error| Failure::input(error.to_string()))?;
        document["socket"] = output::name(&arguments.socket).into();
        document["address"] = address.map(|address| address.to_string()).into();
        output::json(&document)?;
    } else {
        for worker in host.told().workers {
            let processor = worker.processor.map_or_else(
                || "on any processor".to_owned(),
                |processor| format!("bound to processor {processor}"),
            );
            output::note(&format!(
                "core {}: {}, {processor}",
                worker.core, worker.class
            ));
        }
        let overheads = host.told().overheads;
        output::note(&format!(
            "the host takes {} us of each invocation, and {} us of each {} us of a core",
            overheads.release_ns.div_ceil(1000),
            overheads.look_ns.div_ceil(1000),
            overheads.look_period_ns / 1000
        ));
        output::note(&format!("listening on {}", output::name(&arguments.socket)));
        if let Some(address) = address {
            output::note(&format!("listening on http://{address}"));
        }
    }
    serve(host, listeners, ended)
        .map_err(|error| Failure::io("listen on", &arguments.socket, error))?;
    Ok(0)
}
