//! The packet program asks its heap for what the generated trace says.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use metes_cases::packets;
use metes_trace::{Op, RecordOptions, record};

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// The recording library.
fn recorder() -> PathBuf {
    metes_libraries::beside().join("libmetes_record.so")
}

#[test]
fn the_recorded_program_agrees_with_the_generated_trace() {
    let place = tempfile::tempdir().expect("a directory for the test");
    let program = place.path().join("forward");
    let status = Command::new("cc")
        .args([
            "-O2",
            "-std=c99",
            "-D_POSIX_C_SOURCE=200809L",
            "-Wall",
            "-Wextra",
            "-Werror",
        ])
        .arg(repository().join("examples/cases/packets/forward.c"))
        .arg("-o")
        .arg(&program)
        .status()
        .expect("a C compiler can be run");
    assert!(status.success(), "the program can be built");

    let packets = packets::packets(&packets::Options::default());
    let capture = place.path().join("in.pcap");
    let sent = place.path().join("out.pcap");
    let mut file = File::create(&capture).expect("the capture can be made");
    packets::write_capture(&packets, &mut file).expect("the capture can be written");

    let command = [&program, &capture, &sent].map(|path| path.clone().into_os_string());
    let recording = record(&command, &RecordOptions::new(recorder())).expect("it can be recorded");
    let recorded: Vec<_> = recording
        .main
        .iter()
        .map(|event| (event.op, event.block, event.size))
        .collect();
    let generated: Vec<_> = packets::trace(&packets)
        .iter()
        .map(|event| (event.op, event.block, event.size))
        .collect();
    assert_eq!(recorded.len(), 24_000);
    assert!(recorded == generated, "the same requests in the same order");
    assert!(generated.iter().any(|event| event.0 == Op::Free));

    // What was sent is what came, with the time of departure.
    let sent = std::fs::read(&sent).expect("the program wrote it");
    let came = std::fs::read(&capture).expect("the test wrote it");
    assert_eq!(sent.len(), came.len());
    let mut at = 24;
    for packet in &packets {
        let word = |place| {
            let bytes: [u8; 4] = sent[place..place + 4].try_into().expect("four bytes");
            u64::from(u32::from_le_bytes(bytes))
        };
        assert_eq!(word(at) * 1_000_000_000 + word(at + 4), packet.departure);
        let payload = at + 16 + 34..at + 16 + packet.size as usize;
        assert!(sent[payload.clone()] == came[payload]);
        at += 16 + packet.size as usize;
    }
}
