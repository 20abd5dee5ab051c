//! The functions of `functions/`, as they are deployed: an image filter and a network, built for WASI with their crates.
//!
//! *Invariant:* an answer is the one that Python computed from the same request (`picture.py`, `train.py`).

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::channel;

use metes_edge::{Host, HostOptions, Options, Outcome, Response};

use crate::guests::NOTHING;

fn directory() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/functions"))
}

/// A host with both functions.
fn host() -> Host {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target
        .unwrap_or_else(|| directory().join("../../../target"))
        .join("functions");
    let built = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        // There lie the flags.
        .current_dir(directory())
        .args([
            "build",
            "--quiet",
            "--release",
            "--locked",
            "--target",
            "wasm32-wasip1",
            "--target-dir",
        ])
        .arg(&target)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("RUSTFLAGS")
        .status()
        .expect("cargo");
    assert!(built.success(), "rustup target add wasm32-wasip1");
    let host = Host::start(HostOptions {
        // What is measured on a loaded machine would decide what is admitted.
        overheads: Some(NOTHING),
        engine: Options {
            slots: 4,
            slot_bytes: 4 << 20,
            lock: false,
            deadline_priority: None,
            ..Options::default()
        },
        ..HostOptions::default()
    });
    let host = host.expect("a host");
    for name in ["digits", "edges"] {
        let manifest = read(&format!("{name}/function.toml"));
        // A machine that is loaded makes no difference to what is answered.
        let manifest = String::from_utf8(manifest).expect("a text");
        let roomy = manifest
            .replace("budget = \"1 ms\"", "budget = \"400 ms\"")
            .replace("budget = \"8 ms\"", "budget = \"400 ms\"")
            .replace(" = \"2 ms\"", " = \"1 s\"")
            .replace(" = \"20 ms\"", " = \"1 s\"");
        let module = target.join(format!("wasm32-wasip1/release/{name}.wasm"));
        let module = std::fs::read(module).expect("it was built");
        host.deploy(&roomy, &module)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
    }
    host
}

fn read(name: &str) -> Vec<u8> {
    std::fs::read(directory().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn asked(host: &Host, name: &str, request: Vec<u8>) -> Response {
    let (send, receive) = channel();
    let reply = move |response| send.send(response).expect("it is waited for");
    host.invoke(name, request, reply).expect("it is deployed");
    receive.recv().expect("an answer")
}

#[test]
fn a_filter_and_a_network_answer_what_python_computed() {
    let host = host();
    let done = Outcome::Done { exit: 0 };
    let digits = asked(&host, "digits", read("digits/request.bin"));
    assert_eq!(
        digits.invocation.outcome,
        done,
        "{}",
        String::from_utf8_lossy(&digits.errors)
    );
    assert_eq!(
        String::from_utf8_lossy(&digits.output),
        String::from_utf8_lossy(&read("digits/answer.txt"))
    );
    let all = asked(&host, "digits", read("digits/test.bin"));
    let answers = String::from_utf8(all.output).expect("a text");
    let right = answers
        .lines()
        .zip(
            String::from_utf8(read("digits/test.txt"))
                .expect("a text")
                .trim()
                .chars(),
        )
        .filter(|(line, digit)| line.starts_with(*digit))
        .count();
    assert_eq!((answers.lines().count(), right), (360, 355));
    let edges = asked(&host, "edges", read("edges/picture.png"));
    assert_eq!(
        edges.invocation.outcome,
        done,
        "{}",
        String::from_utf8_lossy(&edges.errors)
    );
    assert_eq!(edges.output, read("edges/edges.png"));
    // Its own answer is a picture, too.
    let again = asked(&host, "edges", edges.output);
    assert_eq!(
        again.invocation.outcome,
        done,
        "{}",
        String::from_utf8_lossy(&again.errors)
    );
}

#[test]
fn what_is_no_request_of_theirs_ends_with_a_line() {
    let host = host();
    for (name, request, said) in [
        ("digits", vec![0; 63], "send images of 64 bytes each"),
        ("digits", vec![17; 64], "send images of 64 bytes each"),
        ("edges", b"GIF89a".to_vec(), "the request is no PNG"),
        (
            "edges",
            read("edges/picture.png")[..500].to_vec(),
            "the request is no PNG",
        ),
    ] {
        let response = asked(&host, name, request);
        assert_eq!(
            response.invocation.outcome,
            Outcome::Done { exit: 2 },
            "{name}"
        );
        let errors = String::from_utf8_lossy(&response.errors);
        assert!(
            errors.starts_with(said) && errors.lines().count() == 1,
            "{name}: {errors}"
        );
    }
}
