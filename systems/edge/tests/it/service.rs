//! The host over HTTP: faults, clients that go away, errors.

use metes_edge::client::Client;
use metes_edge::http::HttpLimits;
use metes_edge::serve::Listeners;
use metes_edge::{HostOptions, Told};

use campaign::{Found, campaign};

use crate::guests::NOTHING;
use crate::served::{Served, options};

mod campaign;

#[test]
fn a_thousand_requests_with_faults_leave_nothing_behind() {
    let found = campaign(1000, 3);
    let Found { requests, gone, .. } = found;
    assert!(gone > 50, "{found:?}");
    let expected = Found {
        requests,
        gone,
        ..Found::default()
    };
    assert_eq!(found, expected);
}

const ECHO: &str = r#"(module
    (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
    (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
    (memory (export "memory") 1)
    (func (export "_start")
        (i32.store (i32.const 0) (i32.const 1024)) (i32.store (i32.const 4) (i32.const 1000))
        (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 16)))
        (i32.store (i32.const 4) (i32.load (i32.const 16)))
        (drop (call $write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 20)))))"#;

fn manifest(name: &str) -> String {
    format!(
        "name = \"{name}\"\nmodule = \"m.wasm\"\nperiod = \"10 ms\"\nbudget = \"4 ms\"\ninput = \"100\"\n"
    )
}

fn deploy(client: &Client, manifest: &str, wasm: &[u8]) -> (u16, String) {
    let body = [manifest.as_bytes(), wasm].concat();
    let answer = client
        .request(
            "PUT",
            &format!("/functions?manifest={}", manifest.len()),
            &body,
        )
        .expect("an answer");
    (
        answer.status,
        String::from_utf8_lossy(&answer.body).into_owned(),
    )
}

#[test]
fn every_error_has_its_status_and_the_host_goes_on() {
    let options = options(4);
    let mut served = Served::new(options, HttpLimits::default());
    let again = Listeners::new(None, Some(&served.socket));
    assert!(again.is_err(), "it is taken");
    let echo = wat::parse_str(ECHO).expect("a guest of ours");
    for client in served.clients() {
        assert_eq!(deploy(&client, &manifest("a"), &echo).0, 201);
        for (status, kind, (found, said)) in [
            (409, "exists", deploy(&client, &manifest("a"), &echo)),
            (
                409,
                "not-admitted",
                deploy(&client, &manifest("b").replace("4 ms", "9 ms"), &echo),
            ),
            (422, "module", deploy(&client, &manifest("b"), b"no module")),
            (
                422,
                "module",
                deploy(&client, &(manifest("b") + "entry = \"none\"\n"), &echo),
            ),
            (
                400,
                "manifest",
                deploy(&client, &(manifest("b") + "colour = 1\n"), &echo),
            ),
            (
                400,
                "manifest",
                deploy(&client, &manifest("b").replace("4 ms", "40 ms"), &echo),
            ),
        ] {
            assert_eq!(found, status, "{said}");
            assert!(said.contains(&format!("\"kind\":\"{kind}\"")), "{said}");
        }
        for (status, method, path, body) in [
            (200, "POST", "/functions/a/invoke", 100),
            (413, "POST", "/functions/a/invoke", 101),
            (404, "POST", "/functions/b/invoke", 1),
            (405, "GET", "/functions/a/invoke", 0),
            (404, "GET", "/functions/b", 0),
            (404, "GET", "/nowhere", 0),
            (400, "PUT", "/functions", 10),
            (400, "PUT", "/functions?manifest=11", 10),
            (400, "PUT", "/functions?manifest=5&samples=", 10),
            (400, "PUT", "/functions?manifest=5&samples=2,4", 10),
            (
                400,
                "PUT",
                "/functions?manifest=5&samples=18446744073709551615",
                10,
            ),
            (404, "DELETE", "/functions/b", 0),
            (200, "GET", "/host", 0),
            (200, "GET", "/functions", 0),
        ] {
            let answer = client
                .request(method, path, &vec![b'x'; body])
                .expect("an answer");
            let said = String::from_utf8_lossy(&answer.body);
            assert_eq!(answer.status, status, "{method} {path}: {said}");
            assert!(status < 400 || said.contains("\"message\":"), "{said}");
        }
        let answer = client
            .request("POST", "/functions/a/invoke", b"hello")
            .expect("an answer");
        assert_eq!(answer.body, b"hello");
        assert_eq!(
            client
                .request("DELETE", "/functions/a", &[])
                .expect("an answer")
                .status,
            200
        );
    }
    served.end();
    assert!(!served.socket.exists());
}

#[test]
fn samples_are_counted_and_timed_and_the_budget_stands() {
    let options = HostOptions {
        overheads: Some(NOTHING),
        ..options(2)
    };
    let served = Served::new(options, HttpLimits::default());
    let echo = wat::parse_str(ECHO).expect("a guest of ours");
    let named = manifest("a") + "samples = ['short', 'long']\n";
    let put = |client: &Client, manifest: &str, samples: &[&[u8]]| {
        let sizes: Vec<String> = samples.iter().map(|one| one.len().to_string()).collect();
        let path = match sizes.is_empty() {
            true => format!("/functions?manifest={}", manifest.len()),
            false => format!(
                "/functions?manifest={}&samples={}",
                manifest.len(),
                sizes.join(",")
            ),
        };
        let body = [manifest.as_bytes(), &samples.concat(), &echo].concat();
        let answer = client.request("PUT", &path, &body).expect("an answer");
        (
            answer.status,
            String::from_utf8_lossy(&answer.body).into_owned(),
        )
    };
    for client in served.clients() {
        for (status, said, (found, answer)) in [
            (
                400,
                "names 2 samples, and 0 came",
                put(&client, &named, &[]),
            ),
            (
                400,
                "names 0 samples, and 1 came",
                put(&client, &manifest("a"), &[b"x"]),
            ),
            (
                413,
                "raise `input`",
                put(&client, &named, &[b"x", &[0; 101]]),
            ),
        ] {
            assert_eq!(found, status, "{answer}");
            assert!(answer.contains(said), "{answer}");
        }
        let (status, answer) = put(&client, &named, &[b"x", &[7; 100]]);
        assert_eq!(status, 201, "{answer}");
        // What is answered to the deployment is told ever after.
        let listed = client.request("GET", "/functions", &[]).expect("an answer");
        let listed: Vec<Told> = serde_json::from_slice(&listed.body).expect("a list");
        let told: Told = serde_json::from_str(&answer).expect("a document");
        assert_eq!(listed[0].samples, told.samples);
        assert_eq!(told.budget_ns, 4_000_000);
        let names: Vec<&str> = told.samples.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["short", "long"]);
        for (sample, bytes) in told.samples.iter().zip([1, 100]) {
            let counts = sample.operators.expect("it ends");
            assert!(counts.operators() > 10 && sample.repeatable, "{sample:?}");
            assert_eq!((sample.bytes, sample.ended.as_str()), (bytes, "done"));
            let tiers: Vec<&str> = sample.tiers.iter().map(|of| of.tier.as_str()).collect();
            assert_eq!(tiers, ["baseline", "optimised"]);
            for of in &sample.tiers {
                let [least, most] = of.estimate_ns.expect("a table");
                assert!(least <= most && most > 0, "{of:?}");
                assert!(
                    of.runs > 0 && of.observed_ns.p50 <= of.observed_ns.max,
                    "{of:?}"
                );
            }
        }
        let removed = client
            .request("DELETE", "/functions/a", &[])
            .expect("an answer");
        assert_eq!(removed.status, 200);
    }
    assert_eq!(served.host.told().memory_taken, 0);
}

#[test]
fn a_sample_that_does_not_end_is_told_and_nothing_else() {
    const SPIN: &str = r#"(module
        (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
        (memory (export "memory") 1)
        (func (export "_start")
            (i32.store (i32.const 0) (i32.const 1024)) (i32.store (i32.const 4) (i32.const 100))
            (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 16)))
            (if (i32.load (i32.const 16)) (then (loop $again (br $again))))))"#;
    let options = HostOptions {
        overheads: Some(NOTHING),
        ..options(2)
    };
    let host = metes_edge::Host::start(options).expect("a host");
    let spin = wat::parse_str(SPIN).expect("a guest of ours");
    let named = manifest("a") + "samples = ['spin']\n";
    let told = host.deploy_with(&named, &[b"x".to_vec()], &spin);
    let [sample] = told
        .expect("an empty request ends")
        .samples
        .try_into()
        .expect("one");
    assert_eq!((sample.operators, sample.repeatable), (None, false));
    assert!(
        sample.ended.contains("operators for this request"),
        "{}",
        sample.ended
    );
    for of in sample.tiers {
        assert!(of.overruns == of.runs && of.runs > 0, "{of:?}");
        assert_eq!(of.estimate_ns, None);
    }
}
