//! A host on an address until SIGINT, with limits of its own: what `metes edge serve --tcp ADDRESS` is, without the command.
//!
//! Usage: `cargo run --release -p metes-edge --example serve -- [ADDRESS:PORT [PRIORITY]]`

use std::net::SocketAddr;

use metes_edge::serve::{Listeners, serve};
use metes_edge::{Host, HostOptions, Options};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let address: SocketAddr = words
        .next()
        .unwrap_or_else(|| "127.0.0.1:8080".to_owned())
        .parse()?;
    let priority = words.next().map(|word| word.parse()).transpose()?;
    let options = HostOptions {
        priority,
        engine: Options {
            slots: 16,
            slot_bytes: 4 << 20,
            deadline_priority: priority.map(|_| 80),
            ..Options::default()
        },
        ..HostOptions::default()
    };
    let host = Host::start(options)?;
    let listeners = Listeners::new(Some(address), None)?;
    println!("{}", serde_json::to_string(&host.told())?);
    // A signal ends the process.
    serve(host, listeners, std::future::pending())?;
    Ok(())
}
