//! The host over HTTP: faults, clients that go away, errors.

use metes_edge::client::Client;
use metes_edge::serve::{Listeners, serve};
use metes_edge::{Host, HostOptions, Options};

use campaign::{Found, campaign};

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
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("edge.sock");
    let options = HostOptions {
        engine: Options {
            slots: 4,
            slot_bytes: 1 << 17,
            lock: false,
            deadline_priority: None,
            ..Options::default()
        },
        ..HostOptions::default()
    };
    let host = Host::start(options).expect("a host");
    let listeners = Listeners::new(Some(([127, 0, 0, 1], 0).into()), Some(&socket));
    let listeners = listeners.expect("a socket");
    let address = listeners.address().expect("an address").to_string();
    assert!(Listeners::new(None, Some(&socket)).is_err(), "it is taken");
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let server = std::thread::spawn(move || {
        serve(host, listeners, async {
            drop(ended.await);
        })
    });
    let echo = wat::parse_str(ECHO).expect("a guest of ours");
    for client in [Client::Unix(socket.clone()), Client::Tcp(address)] {
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
    end.send(()).expect("it serves");
    server.join().expect("it serves").expect("and ends well");
    assert!(!socket.exists());
}
