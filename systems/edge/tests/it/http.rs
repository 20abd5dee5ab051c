//! The host's sockets, under clients that are wrong, slow, many, or deaf: over TCP and a Unix socket.
//!
//! *Invariant:* what a client of this file sends is bytes; no library between repairs them.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use metes_edge::HostOptions;
use metes_edge::http::HttpLimits;
use serde_json::Value;

use crate::guests::{NOP, NOTHING, binary};
use crate::served::{Served, options};

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// The two ways to a host.
const WAYS: [bool; 2] = [true, false];

/// A host of so many functions, whose clients may take so much.
fn served(limits: HttpLimits, functions: usize) -> Served {
    let options = HostOptions {
        functions,
        // What is measured on a loaded machine would decide what is admitted.
        overheads: Some(NOTHING),
        ..options(4)
    };
    Served::new(options, limits)
}

impl Served {
    fn connect(&self, tcp: bool) -> Box<dyn Stream> {
        // A test that waits for ever says less than one that fails.
        let patience = Some(Duration::from_secs(60));
        match tcp {
            true => {
                let stream = TcpStream::connect(self.address).expect("it listens");
                stream.set_read_timeout(patience).expect("a time");
                Box::new(stream)
            }
            false => {
                let stream = UnixStream::connect(&self.socket).expect("it listens");
                stream.set_read_timeout(patience).expect("a time");
                Box::new(stream)
            }
        }
    }

    /// What comes back for bytes, until the host closes.
    fn ask(&self, tcp: bool, bytes: &[u8]) -> Answer {
        let mut stream = self.connect(tcp);
        stream.write_all(bytes).expect("it takes bytes");
        read(stream.as_mut())
    }
}

#[derive(Debug)]
struct Answer {
    status: u16,
    head: String,
    body: String,
}

/// Reads one answer.
fn read(stream: &mut dyn Stream) -> Answer {
    read_on(stream, Vec::new())
}

/// Reads what is left of an answer.
fn read_on(stream: &mut dyn Stream, mut bytes: Vec<u8>) -> Answer {
    let mut byte = [0];
    while !bytes.ends_with(b"\r\n\r\n") {
        assert_eq!(
            stream.read(&mut byte).expect("an answer"),
            1,
            "{}",
            String::from_utf8_lossy(&bytes)
        );
        bytes.push(byte[0]);
    }
    let head = String::from_utf8(bytes)
        .expect("a head")
        .to_ascii_lowercase();
    let (_, length) = head.split_once("content-length: ").expect("a length");
    let length = length
        .lines()
        .next()
        .expect("a length")
        .parse()
        .expect("a length");
    let mut body = vec![0; length];
    stream.read_exact(&mut body).expect("a body");
    Answer {
        status: head[9..12].parse().expect("a status"),
        body: String::from_utf8(body).expect("a document"),
        head,
    }
}

/// That an answer is an error of this kind, and says all that it has to.
fn assert_refused(answer: &Answer, status: u16, kind: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert!(
        answer.head.contains("content-type: application/json"),
        "{answer:?}"
    );
    let document: Value = serde_json::from_str(&answer.body).expect("a document");
    assert_eq!(document["error"]["kind"], kind, "{answer:?}");
    for key in ["message", "remedy"] {
        let said = document["error"][key].as_str().unwrap_or_default();
        assert!(said.len() > 10, "{key}: {answer:?}");
    }
}

fn deployment(name: &str) -> Vec<u8> {
    let manifest =
        format!("name = \"{name}\"\nmodule = \"m.wasm\"\nperiod = \"100 ms\"\nbudget = \"1 ms\"\n");
    let body = [manifest.as_bytes(), &binary(NOP)].concat();
    let head = format!(
        "PUT /functions?manifest={} HTTP/1.1\r\nhost: h\r\ncontent-length: {}\r\n\r\n",
        manifest.len(),
        body.len()
    );
    [head.as_bytes(), &body].concat()
}

fn short(limits: HttpLimits) -> HttpLimits {
    HttpLimits {
        timeout: Duration::from_millis(150),
        ..limits
    }
}

#[test]
fn every_refusal_is_a_document() {
    let served = served(HttpLimits::default(), 1);
    assert_eq!(served.ask(true, &deployment("a")).status, 201);
    let long = "x".repeat(20_000);
    let longest = "x".repeat(70_000);
    let many: String = (0..200).map(|number| format!("h{number}: 1\r\n")).collect();
    for (status, kind, request) in [
        (404, "path", "GET / HTTP/1.1\r\n\r\n".to_owned()),
        (404, "path", "GET /functions/a/b/c HTTP/1.1\r\n\r\n".to_owned()),
        (404, "path", "BREW /coffee HTTP/1.1\r\n\r\n".to_owned()),
        (405, "method", "PATCH /host HTTP/1.1\r\n\r\n".to_owned()),
        (405, "method", "GET /functions/a/invoke HTTP/1.1\r\n\r\n".to_owned()),
        (404, "unknown", "GET /functions/b HTTP/1.1\r\n\r\n".to_owned()),
        (404, "unknown", "POST /functions/b/invoke HTTP/1.1\r\ncontent-length: 0\r\n\r\n".to_owned()),
        (400, "request", "GET /functions/%ff HTTP/1.1\r\n\r\n".to_owned()),
        (400, "request", "POST /functions/%ff/invoke HTTP/1.1\r\n\r\n".to_owned()),
        (400, "manifest", "PUT /functions HTTP/1.1\r\ncontent-length: 2\r\n\r\nab".to_owned()),
        (400, "manifest", "PUT /functions HTTP/1.1\r\n\r\n".to_owned()),
        (400, "manifest", "PUT /functions?manifest=99 HTTP/1.1\r\ncontent-length: 2\r\n\r\nab".to_owned()),
        (400, "manifest", "PUT /functions?manifest=2 HTTP/1.1\r\ncontent-type: multipart/form-data\r\ncontent-length: 2\r\n\r\nab".to_owned()),
        (413, "too-large", "POST /functions/a/invoke HTTP/1.1\r\ncontent-length: 99999999999\r\n\r\n".to_owned()),
        (413, "too-large", format!("POST /functions/a/invoke HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{longest}\r\n", longest.len())),
        (400, "request", "POST /functions/a/invoke HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nnone\r\n".to_owned()),
        (400, "request", "POST /functions/a/invoke HTTP/1.1\r\ncontent-length: -1\r\n\r\n".to_owned()),
        (400, "request", "POST /functions/a/invoke HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n".to_owned()),
        (400, "request", "what is this?\r\n\r\n".to_owned()),
        (400, "request", "GET /host HTTP/9.9\r\n\r\n".to_owned()),
        (400, "request", "GET /host HTTP/1.1\r\nno colon\r\n\r\n".to_owned()),
        (400, "request", "\0\x01\x02\x03\r\n\r\n".to_owned()),
        (431, "head", format!("GET /host HTTP/1.1\r\n{many}\r\n")),
        (431, "head", format!("GET /host HTTP/1.1\r\nx: {long}\r\n\r\n")),
        (431, "head", format!("GET /{longest} HTTP/1.1\r\n\r\n")),
        (505, "version", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_owned()),
    ] {
        for tcp in WAYS {
            let answer = served.ask(tcp, request.as_bytes());
            let shown = &request[..request.len().min(60)];
            assert_eq!(answer.status, status, "{shown}: {answer:?}");
            assert_refused(&answer, status, kind);
        }
    }
    let allowed = served.ask(true, b"PATCH /host HTTP/1.1\r\n\r\n");
    assert!(allowed.head.contains("allow: get"), "{allowed:?}");
}

#[test]
fn an_answer_reaches_a_client_that_still_sends() {
    let served = served(HttpLimits::default(), 1);
    assert_eq!(served.ask(false, &deployment("a")).status, 201);
    for tcp in WAYS {
        let mut stream = served.connect(tcp);
        let head = "POST /functions/a/invoke HTTP/1.1\r\ncontent-length: 4000000\r\n\r\n";
        stream.write_all(head.as_bytes()).expect("a head");
        for _ in 0..100 {
            stream
                .write_all(&[0; 10_000])
                .expect("the host goes on reading");
        }
        assert_refused(&read(stream.as_mut()), 413, "too-large");
    }
}

#[test]
fn whoever_sends_slowly_is_told_and_closed() {
    let served = served(short(HttpLimits::default()), 1);
    assert_eq!(served.ask(true, &deployment("a")).status, 201);
    for tcp in WAYS {
        for begun in [
            "GET /host HT",
            "GET /host HTTP/1.1\r\nx: ",
            "POST /functions/a/invoke HTTP/1.1\r\ncontent-length: 9\r\n\r\n1234",
            "POST /functions/a/invoke HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n4\r\n12",
            "PUT /functions?manifest=1 HTTP/1.1\r\ncontent-length: 9\r\n\r\n1234",
        ] {
            let mut stream = served.connect(tcp);
            stream.write_all(begun.as_bytes()).expect("it takes bytes");
            assert_refused(&read(stream.as_mut()), 408, "slow");
            assert_eq!(stream.read(&mut [0]).expect("an end"), 0, "it is closed");
        }
        // A byte now and then is no progress.
        let mut stream = served.connect(tcp);
        stream
            .write_all(b"GET /host HTTP/1.1\r\nx: ")
            .expect("it takes bytes");
        while stream.write_all(b"x").is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
        // Who says nothing is told nothing.
        let mut stream = served.connect(tcp);
        assert_eq!(stream.read(&mut [0]).expect("an end"), 0);
        stream = served.connect(tcp);
        stream
            .write_all(b"GET /host HTTP/1.1\r\n\r\n")
            .expect("it takes bytes");
        assert_eq!(read(stream.as_mut()).status, 200);
        assert_eq!(stream.read(&mut [0]).expect("an end"), 0);
    }
}

/// A connection that has been served, as soon as the host has room.
fn entered(served: &Served, tcp: bool) -> Box<dyn Stream> {
    loop {
        let mut stream = served.connect(tcp);
        let asked = stream.write_all(b"GET /host HTTP/1.1\r\n\r\n");
        let mut first = [0];
        // Whoever is above the limit is told so, or closed.
        if asked.is_ok() && matches!(stream.read(&mut first), Ok(1)) {
            let answer = read_on(stream.as_mut(), first.to_vec());
            if answer.status == 200 {
                return stream;
            }
            assert_refused(&answer, 503, "connections");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn connections_are_counted_over_both_sockets() {
    let limits = HttpLimits {
        connections: 2,
        ..HttpLimits::default()
    };
    let served = served(limits, 1);
    for tcp in WAYS {
        let mut open = [entered(&served, true), entered(&served, false)];
        let answer = served.ask(tcp, b"GET /host HTTP/1.1\r\n\r\n");
        assert_refused(&answer, 503, "connections");
        assert!(answer.head.contains("connection: close"), "{answer:?}");
        // Those that are open are served as before.
        open[0]
            .write_all(b"GET /host HTTP/1.1\r\n\r\n")
            .expect("it takes bytes");
        assert_eq!(read(open[0].as_mut()).status, 200);
        drop(open);
        drop(entered(&served, tcp));
    }
    // Many more than are told are closed, and the host goes on.
    let crowd: Vec<_> = (0..100).map(|_| served.connect(true)).collect();
    drop(crowd);
    drop(entered(&served, true));
}

#[test]
fn whoever_does_not_read_loses_the_connection() {
    let limits = HttpLimits {
        connections: 1,
        ..HttpLimits::default()
    };
    let served = served(short(limits), 1);
    for tcp in WAYS {
        let mut deaf = served.connect(tcp);
        // Answers are longer than requests: the sockets between are full some time.
        let requests = b"GET /host HTTP/1.1\r\n\r\n".repeat(100);
        let failed = loop {
            if let Err(error) = deaf.write_all(&requests) {
                break error;
            }
        };
        assert!(
            matches!(
                failed.kind(),
                ErrorKind::BrokenPipe | ErrorKind::ConnectionReset
            ),
            "{failed}"
        );
        drop(entered(&served, tcp));
    }
}

#[test]
fn deployments_are_limited_at_once_and_in_all() {
    let limits = HttpLimits {
        deployments: 1,
        ..HttpLimits::default()
    };
    let served = served(limits, 2);
    for tcp in WAYS {
        let whole = deployment("a");
        let mut first = served.connect(tcp);
        // `GET` after it on another connection: the host has seen this much.
        first
            .write_all(&whole[..whole.len() - 1])
            .expect("it takes bytes");
        let second = loop {
            let answer = served.ask(tcp, &deployment("b"));
            if answer.status == 429 {
                break answer;
            }
            assert_eq!(answer.status, 201, "{answer:?}");
            served.host.remove("b").expect("it is there");
        };
        assert_refused(&second, 429, "deploying");
        let removal = served.ask(tcp, b"DELETE /functions/b HTTP/1.1\r\n\r\n");
        assert_refused(&removal, 429, "deploying");
        first
            .write_all(&whole[whole.len() - 1..])
            .expect("it takes bytes");
        assert_eq!(read(first.as_mut()).status, 201);
        // One that goes away half-way leaves its place.
        let mut gone = served.connect(tcp);
        gone.write_all(&whole[..whole.len() - 1])
            .expect("it takes bytes");
        drop(gone);
        let again = loop {
            let answer = served.ask(tcp, &deployment("b"));
            if answer.status != 429 {
                break answer;
            }
        };
        assert_eq!(again.status, 201, "{again:?}");
        assert_refused(&served.ask(tcp, &deployment("c")), 409, "full");
        for name in ["a", "b"] {
            served.host.remove(name).expect("it is there");
        }
    }
}
