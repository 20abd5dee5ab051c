//! What a mesh makes of uniform random traffic: latency, and the load of its links.
//!
//! `cargo run --release -p metes-noc --example load -- COLUMNS ROWS NETWORK RATE [CYCLES]`

use std::error::Error;
use std::time::Instant;

use metes_noc::traffic::Uniform;
use metes_noc::{Faults, Kind, Mesh, Parameters};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = "usage: load COLUMNS ROWS timelines|buffered|deflection RATE [CYCLES]";
    let [columns, rows, network, rate, cycles @ ..] = arguments.as_slice() else {
        return Err(usage.into());
    };
    let kind: Kind = network.parse()?;
    let parameters = Parameters::new(columns.parse()?, rows.parse()?, kind);
    let uniform = Uniform {
        rate: rate.parse()?,
        warm_up: 1000,
        cycles: cycles.first().map_or(Ok(20_000), |cycles| cycles.parse())?,
        seed: 1,
    };
    let mut mesh = Mesh::new(&parameters, &Faults::default())?;
    let begin = Instant::now();
    let measured = uniform.measure(&mut mesh)?;
    let seconds = begin.elapsed().as_secs_f64();

    let (topology, statistics) = (mesh.topology(), &measured.statistics);
    let counts = statistics.counts;
    println!("{columns} x {rows} {kind}, {rate} packets a node and cycle");
    println!(
        "accepted    {:.4} packets a node and cycle",
        measured.accepted
    );
    println!("hops        {:.2} mean", measured.hops);
    let latency = &measured.latency;
    if let (Some(mean), Some(p99), Some(max)) =
        (latency.mean(), latency.percentile(990), latency.max())
    {
        println!("latency     {mean:.2} mean, {p99} p99, {max} max, in cycles");
    }
    println!(
        "deflected   {:.4} a packet",
        statistics.deflections as f64 / counts.injected.max(1) as f64
    );
    let mut loads: Vec<_> = topology
        .real_links()
        .map(|(link, node, other)| (statistics.load(link), node, other))
        .collect();
    loads.sort_by(|a, b| b.0.total_cmp(&a.0));
    if let Some((load, node, other)) = loads.first() {
        let mean = loads.iter().map(|(load, ..)| load).sum::<f64>() / loads.len() as f64;
        println!(
            "links       {mean:.4} of the time busy in the mean, {load:.4} from node {node} to {other}"
        );
    }
    println!(
        "simulated   {:.0} packets a second",
        counts.injected as f64 / seconds
    );
    Ok(())
}
