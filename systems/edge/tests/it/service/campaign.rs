//! Requests over HTTP to functions that do all they can to their host, beside one that must not notice.
//!
//! *Invariant:* a seed gives the same requests.

use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use metes_edge::client::Client;
use metes_edge::http::HttpLimits;
use metes_edge::{HostOptions, Options, Overheads};
use metes_random::Random;

use crate::served::Served;

const IMPORTS: &str = r#"
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))"#;

/// Answers with what it finds in its memory from 2048 on, and then leaves the request there: a secret.
const KEEPER: &str = r#"
    (func (export "_start")
        (i32.store (i32.const 0) (i32.const 2048)) (i32.store (i32.const 4) (i32.const 64))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 16)))
        (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 16)))
        FAULT)"#;

/// How a function ends: by itself, and by every fault. Faults wait for a request, as the host measures with none.
const FUNCTIONS: [(&str, &str, &str); 7] = [
    ("well", "", ""),
    (
        "trap",
        "(if (i32.load (i32.const 16)) (then unreachable))",
        "trap",
    ),
    (
        "spin",
        "(if (i32.load (i32.const 16)) (then (loop $again (br $again))))",
        "overrun",
    ),
    (
        "bomb",
        "(if (i32.load (i32.const 16)) (then (loop $again
            (br_if $again (i32.ne (memory.grow (i32.const 1)) (i32.const -1))) unreachable)))",
        "trap",
    ),
    (
        "stack",
        "(if (i32.load (i32.const 16)) (then (call $deep)))",
        "trap",
    ),
    (
        "liar",
        "(if (i32.load (i32.const 16)) (then (drop (i32.load (i32.const 65536)))))",
        "trap",
    ),
    (
        "far",
        "(if (i32.load (i32.const 16)) (then (i32.store (i32.const -4) (i32.const 1))))",
        "trap",
    ),
];

/// What became of requests.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Requests, clients that went away included.
    pub requests: u64,
    /// Clients that went away.
    pub gone: u64,
    /// Answers of another kind than the function's fault has.
    pub unexpected: u64,
    /// Answers that held what another request had left.
    pub leaked: u64,
    /// Deadlines that the well-behaved function missed.
    pub missed: u64,
    /// Bytes of slots that were not given back.
    pub slots: u64,
}

/// Serves a host, and sends it so many requests.
pub(crate) fn campaign(requests: u64, seed: u64) -> Found {
    let options = HostOptions {
        engine: Options {
            slots: FUNCTIONS.len() + 1,
            slot_bytes: 1 << 16,
            lock: false,
            deadline_priority: None,
            ..Options::default()
        },
        // A machine under load measures what it likes, and faults are what this is about.
        overheads: Some(Overheads {
            release_ns: 50_000,
            blocking_ns: 50_000,
            look_ns: 0,
            look_period_ns: 100_000,
        }),
        ..HostOptions::default()
    };
    let served = Served::new(options, HttpLimits::default());
    let host = &served.host;
    let client = Client::Unix(served.socket.clone());
    for (name, fault, _) in FUNCTIONS {
        deploy(&client, name, fault);
    }
    let taken = host.told().memory_taken;
    let mut found = Found::default();
    let mut random = Random::new(seed);
    for _ in 0..requests {
        one(&client, &served.socket, &mut random, &mut found);
    }
    for told in host.list() {
        if told.name == "well" {
            found.missed = told.counts.missed;
        }
        assert_eq!(
            client
                .request("DELETE", &format!("/functions/{}", told.name), &[])
                .expect("an answer")
                .status,
            200
        );
    }
    found.slots = host.told().memory_taken;
    assert!(taken > 0, "functions have slots");
    found
}

fn deploy(client: &Client, name: &str, fault: &str) {
    let deep = "(func $deep (call $deep) (call $deep))";
    let body = KEEPER.replace("FAULT", fault);
    let text = format!("(module {IMPORTS} (memory (export \"memory\") 1 1) {deep} {body})");
    let wasm = wat::parse_str(text).expect("a guest of ours");
    let (period, budget) = match name {
        "spin" => ("100 ms", "2 ms"),
        _ => ("5 ms", "500 us"),
    };
    let manifest = format!(
        "name = \"{name}\"\nmodule = \"m.wasm\"\nperiod = \"{period}\"\ndeadline = \"10 s\"\nbudget = \"{budget}\"\n"
    );
    let mut request = manifest.clone().into_bytes();
    request.extend(wasm);
    let path = format!("/functions?manifest={}", manifest.len());
    let answer = client.request("PUT", &path, &request).expect("an answer");
    let said = String::from_utf8_lossy(&answer.body);
    assert_eq!(answer.status, 201, "{name}: {said}");
}

fn one(client: &Client, socket: &PathBuf, random: &mut Random, found: &mut Found) {
    found.requests += 1;
    // Spinning waits for its period, so it is asked for seldom.
    let index = match random.below(100) {
        0 => 2,
        _ => [0, 1, 3, 4, 5, 6][random.below(6) as usize],
    };
    let (name, _, kind) = FUNCTIONS[index];
    let secret = format!("secret {:016x}", random.next());
    if random.below(10) == 0 {
        found.gone += 1;
        let mut stream = UnixStream::connect(socket).expect("the host is there");
        let head = format!(
            "POST /functions/{name}/invoke HTTP/1.1\r\nhost: m\r\ncontent-length: {}\r\n\r\n",
            secret.len()
        );
        let whole = [head.as_bytes(), secret.as_bytes()].concat();
        let sent = random.below(whole.len() as u64 + 1) as usize;
        stream.write_all(&whole[..sent]).expect("the host reads");
        return;
    }
    let path = format!("/functions/{name}/invoke");
    let answer = client
        .request("POST", &path, secret.as_bytes())
        .expect("an answer");
    let text = String::from_utf8_lossy(&answer.body);
    // An ordinary thread may be held up for longer than a budget.
    let expected = match kind {
        "" => answer.status == 200 || text.contains("\"overrun\""),
        kind => text.contains(&format!("\"{kind}\"")) || text.contains("\"overrun\""),
    };
    found.unexpected += u64::from(!expected);
    let leaked = text.contains("secret")
        || answer.status == 200 && answer.body.iter().any(|byte| *byte != 0);
    found.leaked += u64::from(leaked);
}
