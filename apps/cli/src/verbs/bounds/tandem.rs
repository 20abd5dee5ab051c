//! `metes bounds --tandem`: delay and backlog of flows through servers.
//!
//! Invariant: every bound is exact, and shown as a fraction; decimals are beside it.

use std::path::Path;

use metes_bounds::{FlowBounds, Limit, Tandem, TandemBounds};
use metes_curve::{Algebra, Curve};
use serde_json::{Value, json};

use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output::{self, BOLD, Table};

pub(super) fn run(path: &Path, limit: u64, json: bool) -> Result<u8, Failure> {
    let wrong =
        |error: &dyn std::fmt::Display| Failure::input(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| Failure::io("read", path, error))?;
    let tandem = Tandem::parse(&text).map_err(|error| wrong(&error))?;
    let bounds = tandem
        .bounds(&Algebra {
            limit,
            ..Algebra::default()
        })
        .map_err(|error| wrong(&error))?;
    if json {
        output::json(&document(&tandem, &bounds))?;
    } else {
        output::text(&text_of(&tandem, &bounds))?;
    }
    let unbounded = bounds.flows.iter().any(|flow| flow.once.finite().is_none());
    Ok(if unbounded { DOES_NOT_HOLD } else { 0 })
}

/// The delays of a flow by method, the methods named.
fn delays(flow: &FlowBounds) -> [(&'static str, &'static str, Option<&Limit>); 3] {
    [
        ("total flow", "total_flow", flow.total_flow.as_ref()),
        ("hop by hop", "hop_by_hop", Some(&flow.hop_by_hop)),
        ("once", "once", Some(&flow.once)),
    ]
}

fn exact(limit: &Limit) -> Value {
    limit
        .finite()
        .map_or(Value::Null, |number| number.to_string().into())
}

/// How many times the bound by convolving first.
fn ratio(limit: &Limit, once: &Limit) -> Option<f64> {
    let (limit, once) = (limit.finite()?.to_f64(), once.finite()?.to_f64());
    (once > 0.0).then_some(limit / once)
}

fn document(tandem: &Tandem, bounds: &TandemBounds) -> Value {
    let curve = |curve: &Curve| serde_json::from_str::<Value>(&curve.to_json()).unwrap_or_default();
    let server = |number: usize| tandem.servers()[number].name.as_str();
    let servers = tandem.servers().iter().zip(&bounds.servers);
    let servers = servers.map(|(server, bounds)| {
        json!({
            "name": server.name,
            "strict": server.strict,
            "order": if server.fifo { "fifo" } else { "any" },
            "backlog": exact(&bounds.backlog),
            "delay": bounds.delay.as_ref().map(exact),
        })
    });
    let flows = tandem.flows().iter().zip(&bounds.flows);
    let flows = flows.map(|(flow, bounds)| {
        let mut delay = json!({});
        let mut ratios = json!({});
        for (_, key, limit) in delays(bounds) {
            delay[key] = limit.map_or(Value::Null, exact);
            ratios[key] = limit.and_then(|limit| ratio(limit, &bounds.once)).into();
        }
        json!({
            "name": flow.name,
            "delay": delay,
            "ratio": ratios,
            "backlog": {
                "hop_by_hop": exact(&bounds.backlog_by_hop),
                "once": exact(&bounds.backlog_once),
            },
            "service": bounds.service.as_ref().map(curve),
            "hops": bounds.hops.iter().map(|hop| json!({
                "server": server(hop.server),
                "delay": exact(&hop.delay),
                "backlog": exact(&hop.backlog),
                "arrival": hop.arrival.as_ref().map(curve),
                "service": hop.service.as_ref().map(curve),
            })).collect::<Vec<_>>(),
        })
    });
    json!({
        "servers": servers.collect::<Vec<_>>(),
        "flows": flows.collect::<Vec<_>>(),
    })
}

/// Exactly, and in decimals where that differs.
fn shown(limit: &Limit) -> String {
    match limit.finite() {
        Some(number) if number.to_string().contains('/') => {
            format!("{number} = {:.3}", number.to_f64())
        }
        _ => limit.to_string(),
    }
}

fn text_of(tandem: &Tandem, bounds: &TandemBounds) -> String {
    let plain = anstyle::Style::new();
    let mut table = Table::new(&["server", "order", "backlog of all flows", "delay of all"]);
    for (server, bounds) in tandem.servers().iter().zip(&bounds.servers) {
        let order = if server.fifo { "fifo" } else { "any" };
        let delay = bounds.delay.as_ref().map_or("-".to_owned(), shown);
        let cells = vec![
            server.name.clone(),
            order.to_owned(),
            shown(&bounds.backlog),
            delay,
        ];
        table.row(plain, cells);
    }
    let mut text = table.to_string();
    for (flow, bounds) in tandem.flows().iter().zip(&bounds.flows) {
        text += &format!("\n{BOLD}{}{BOLD:#}\n", flow.name);
        let mut table = Table::new(&["", "delay", "backlog", "× once"]);
        for hop in &bounds.hops {
            let name = format!("at {}", tandem.servers()[hop.server].name);
            table.row(plain, vec![name, shown(&hop.delay), shown(&hop.backlog)]);
        }
        for (name, key, limit) in delays(bounds) {
            let backlog = match key {
                "hop_by_hop" => shown(&bounds.backlog_by_hop),
                "once" => shown(&bounds.backlog_once),
                _ => String::new(),
            };
            let ratio = limit.and_then(|limit| ratio(limit, &bounds.once));
            let cells = vec![
                name.to_owned(),
                limit.map_or("not in order".to_owned(), shown),
                backlog,
                ratio.map_or(String::new(), |ratio| format!("{ratio:.3}")),
            ];
            table.row(if key == "once" { BOLD } else { plain }, cells);
        }
        text += &table.to_string();
    }
    text
}
