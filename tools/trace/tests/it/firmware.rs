//! Recording firmware: the images `heap` and `heaps` count their calls themselves, and print it.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;

use metes_leon3::calls::Shape;
use metes_leon3::image::elf;
use metes_leon3::{Configuration, End, Stop};
use metes_trace::{
    FirmwareError, FirmwareOptions, FirmwareRecording, Op, profile, record_firmware,
};

/// The image `name`, built in `directory`.
fn built(directory: &Path, name: &str) -> PathBuf {
    let build = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sim/leon3/images/build");
    let status = Command::new(build).arg(directory).arg(name).status();
    assert!(
        status.expect("a shell").success(),
        "the images are built: scripts/setup"
    );
    directory.join(format!("{name}.elf"))
}

/// The recording, and what the image printed: numbers by the words before them.
fn recorded(path: &Path, options: &FirmwareOptions) -> (FirmwareRecording, HashMap<String, u64>) {
    let mut printed = Vec::new();
    let mut between = |machine: &mut metes_leon3::Machine| {
        printed.extend(machine.printed(0));
        ControlFlow::Continue(())
    };
    let recording = record_firmware(path, options, &mut between).unwrap();
    let text = String::from_utf8(printed).unwrap();
    let words: Vec<&str> = text.split_whitespace().collect();
    let pairs = words.windows(2).filter_map(|pair| {
        let number = pair[1].parse().ok()?;
        Some((pair[0].to_owned(), number))
    });
    (recording, pairs.collect())
}

fn count(recording: &FirmwareRecording, op: Op) -> u64 {
    let ops = recording.trace.ops().iter();
    ops.filter(|&&other| other == op).count() as u64
}

#[test]
fn the_trace_says_what_the_image_counted() {
    let directory = tempfile::tempdir().unwrap();
    let path = built(directory.path(), "heap");
    let (recording, said) = recorded(&path, &FirmwareOptions::default());
    assert_eq!(recording.stop, Some(Stop::End(End::Halt { core: 0 })));
    let (findings, profile) = (&recording.findings, profile(&recording.trace));
    let made = count(&recording, Op::Alloc) + count(&recording, Op::Resize);
    assert_eq!(made, said["made"]);
    assert_eq!(findings.refused, said["refused"]);
    assert_eq!(profile.peak_live, said["peak"]);
    // Each of its rounds is one call.
    assert_eq!(findings.calls, 20_000);
    let more = (
        findings.unknown_frees,
        findings.unknown_resizes,
        findings.replaced,
    );
    assert_eq!((more, findings.in_handlers), ((0, 0, 0), 0));
    assert_eq!(findings.never_returned, []);
    let end = recording.machine.cycles() * 25;
    let times: Vec<u64> = recording.trace.iter().map(|event| event.time_ns).collect();
    assert!(times.is_sorted() && times[0] > 0 && times[times.len() - 1] <= end);
}

#[test]
fn calls_of_handlers_and_of_all_cores_are_counted() {
    let directory = tempfile::tempdir().unwrap();
    let path = built(directory.path(), "heaps");
    for cores in [1, 4, 16] {
        let options = FirmwareOptions {
            configuration: Configuration {
                cores,
                ..Configuration::default()
            },
            most: Some(500_000_000),
            ..FirmwareOptions::default()
        };
        let (recording, said) = recorded(&path, &options);
        let findings = &recording.findings;
        let what = format!("{cores} cores: {said:?} {findings:?}");
        assert_eq!(
            recording.stop,
            Some(Stop::End(End::Halt { core: 0 })),
            "{what}"
        );
        let made = count(&recording, Op::Alloc) + count(&recording, Op::Resize);
        assert_eq!(made, said["made"], "{what}");
        assert_eq!(count(&recording, Op::Free), said["freed"], "{what}");
        assert_eq!(findings.refused, said["refused"], "{what}");
        assert_eq!(findings.in_handlers, said["handled"], "{what}");
        assert!(said["handled"] > 100, "{what}");
        assert_eq!(findings.never_returned, [], "{what}");
        assert_eq!(recording.trace.provenance.threads, cores as u32);
        assert_eq!(recording.trace.provenance.unknown_blocks, 0, "{what}");
        assert_eq!(findings.replaced, 0, "{what}");
    }
}

#[test]
fn named_functions_alone_are_looked_for() {
    let directory = tempfile::tempdir().unwrap();
    let path = built(directory.path(), "heap");
    let with = |functions: &[(Shape, &str)]| FirmwareOptions {
        functions: functions
            .iter()
            .map(|(shape, name)| (*shape, (*name).to_owned()))
            .collect(),
        ..FirmwareOptions::default()
    };
    let options = with(&[(Shape::Malloc, "malloc"), (Shape::Free, "free")]);
    let (recording, said) = recorded(&path, &options);
    assert_eq!(count(&recording, Op::Resize), 0);
    // A refused `realloc` is a refused `malloc`.
    assert_eq!(count(&recording, Op::Alloc), said["made"]);
    assert_eq!(recording.findings.refused, said["refused"]);
    // Frees alone have nothing to free.
    let (recording, _) = recorded(&path, &with(&[(Shape::Free, "free")]));
    assert!(recording.trace.is_empty());
    assert!(recording.findings.unknown_frees > 1000);
    let missing = record_firmware(
        &path,
        &with(&[(Shape::Malloc, "pvPortMalloc")]),
        &mut |_| ControlFlow::Continue(()),
    );
    let said = missing.err().unwrap().to_string();
    for part in ["no symbol pvPortMalloc", "0x40001000", "malloc"] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn limits_and_callers_end_the_run() {
    let directory = tempfile::tempdir().unwrap();
    let path = built(directory.path(), "heap");
    let options = FirmwareOptions {
        most: Some(1_000_000),
        ..FirmwareOptions::default()
    };
    let (recording, _) = recorded(&path, &options);
    assert_eq!(recording.stop, Some(Stop::Limit));
    assert_eq!(recording.machine.instructions(), 1_000_000);
    assert!(recording.trace.len() > 100);
    let options = FirmwareOptions::default();
    let ended = record_firmware(&path, &options, &mut |_| ControlFlow::Break(())).unwrap();
    assert_eq!(ended.stop, None);
    assert!(ended.trace.len() >= recording.trace.len());
}

#[test]
fn what_is_no_image_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("image");
    let options = FirmwareOptions::default();
    let refused = || {
        let recorded = record_firmware(&path, &options, &mut |_| ControlFlow::Continue(()));
        recorded.err().unwrap()
    };
    assert!(matches!(refused(), FirmwareError::Io { .. }));
    std::fs::write(&path, "#!/bin/sh\n").unwrap();
    assert!(matches!(refused(), FirmwareError::Image { .. }));
    std::fs::copy("/proc/self/exe", &path).unwrap();
    let said = refused().to_string();
    assert!(said.contains("64 bits") && said.contains("LEON3"), "{said}");
    std::fs::write(&path, elf(0x4000_0000, &[0x91d0_2000])).unwrap();
    let said = refused().to_string();
    for part in ["posix_memalign", "--malloc NAME", "no symbols at all"] {
        assert!(said.contains(part), "{said}");
    }
}
