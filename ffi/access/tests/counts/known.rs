//! Known counts, block by block: the counter, an independent Valgrind tool and
//! what the program's source says must be equal.

use std::process::Command;

use metes_trace::record::access::{agree, join, read_accesses};
use metes_trace::{RecordOptions, record};

use crate::support::{
    by_size, compile, count, is_checked, libraries, options, oracle, parse, place, tool,
};

#[test]
fn counter_and_oracle_equal_what_is_known() {
    let place = place();
    let program = compile("known", place.path());
    let program = program.to_str().expect("a name");
    let oracle = oracle(place.path());
    for word in ["4", "8"] {
        // The program says what its blocks must show.
        let known = tool("gcc", Command::new(program).arg(word).env("SAY", "1"));
        let known = parse(&String::from_utf8_lossy(&known.stdout));
        assert_eq!(known.len(), 115);

        let counted = count(&[program, word], &options(word.parse().expect("4 or 8")));
        assert_eq!(by_size(&counted.trace), known, "words of {word} bytes");
        assert_eq!(counted.trace.provenance.threads, 5);
        assert_eq!(counted.trace.provenance.lost_events, 0);
        assert_eq!(counted.trace.provenance.unknown_blocks, 0);
        // Of both there are many, and of the program's own more.
        assert!(counted.trace.provenance.instructions > counted.allocator_instructions);
        assert!(counted.allocator_instructions > 10_000);

        let rows = place.path().join("rows");
        let mut valgrind = Command::new("valgrind");
        valgrind.env("VALGRIND_LIB", &oracle);
        valgrind.args(["-q", "--tool=accesses"]);
        valgrind.arg(format!("--word={word}"));
        valgrind.arg(format!("--rows={}", rows.display()));
        tool("valgrind", valgrind.arg(program).arg(word));
        let rows = std::fs::read_to_string(rows).expect("the tool's rows");
        assert_eq!(parse(&rows), known, "the oracle, words of {word} bytes");
    }
}

#[test]
fn bytes_equal_those_of_dhat() {
    let place = place();
    let program = compile("known", place.path());
    let program = program.to_str().expect("a name");
    let file = place.path().join("dhat.json");
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["-q", "--tool=dhat"]);
    valgrind.arg(format!("--dhat-out-file={}", file.display()));
    tool("valgrind", valgrind.args([program, "4", "patterns"]));
    let text = std::fs::read_to_string(file).expect("DHAT's result");
    let dhat: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let points = dhat["pps"].as_array().expect("program points");
    let number = |point: &serde_json::Value, key: &str| point[key].as_u64().unwrap_or(0);
    // Not the buffers in which the program's output is made.
    let mut points: Vec<_> = points.iter().collect();
    points.retain(|point| is_checked(number(point, "tb") / number(point, "tbk").max(1)));
    let sum = |key: &str| points.iter().map(|point| number(point, key)).sum::<u64>();

    let counted = count(&[program, "4", "patterns"], &options(4));
    let counts = by_size(&counted.trace);
    assert_eq!((counts.len() as u64, sum("tbk")), (100, 100));
    let read: u64 = counts.values().map(|[_, _, read, _]| read).sum();
    let written: u64 = counts.values().map(|[.., written]| written).sum();
    assert_eq!(written, sum("wb"));
    // DHAT takes the read of an atomic update twice: once loaded, once compared.
    let atomic = counts.iter().filter(|(size, _)| *size % 10 == 9);
    let atomic: u64 = atomic.map(|(_, [_, _, read, _])| read).sum();
    assert_eq!(read + atomic, sum("rb"));
}

#[test]
fn the_light_recording_agrees_and_gives_the_times() {
    let place = place();
    let program = compile("loops", place.path());
    let counted = count(&[program.to_str().expect("a name")], &options(4));
    let light = record(
        &[program.into()],
        &RecordOptions::new(libraries().join("libmetes_record.so")),
    );
    let light = light.unwrap_or_else(|error| panic!("{error}")).main;
    let agreement = agree(&light, &counted.trace);
    assert!(agreement.is_equal(), "{agreement:?}");
    let joined = join(&light, &counted.trace).expect("equal traces join");
    assert_eq!(joined.len(), counted.trace.len());
    assert!(joined.provenance.timed && joined.provenance.access_word == 4);
    for (both, light) in joined.iter().zip(light.iter()) {
        assert_eq!((both.time_ns, both.size), (light.time_ns, light.size));
    }
    let writes: u64 = joined.iter().map(|event| event.writes).sum();
    assert_eq!(writes, 321);

    // A run with one request more agrees no longer, and is not joined.
    let mut other = metes_trace::TraceBuilder::new();
    for event in light.iter() {
        other.push(event).expect("as it was");
    }
    other.alloc(0, 0, 99, 16).expect("one more");
    let other = other.finish(light.provenance.clone());
    let agreement = agree(&light, &other);
    assert_eq!(agreement.differing, 1);
    assert_eq!(agreement.equal_from_start, light.len() as u64);
    assert!(join(&light, &other).is_none());
}

#[test]
fn every_access_is_one_of_the_counts() {
    let place = place();
    let program = compile("known", place.path());
    let mut options = options(4);
    options.every = true;
    let counted = count(&[program.to_str().expect("a name"), "4"], &options);
    let file = place.path().join("every.parquet");
    let written = counted.write_every_access(&file).expect("a stream");
    // By block: bytes read and written, from the stream and from the trace.
    let trace = &counted.trace;
    let mut streamed = vec![[0u64; 2]; trace.block_count()];
    let mut sizes = vec![0u64; trace.block_count()];
    let mut at = 0;
    let read = read_accesses(&file, |access| {
        // What happened before it: its block lives, and has the size then.
        while at < access.event {
            let event = trace.event(at as usize).expect("a row");
            sizes[event.block as usize] = event.size;
            at += 1;
        }
        assert!(access.offset + u64::from(access.bytes) <= sizes[access.block as usize]);
        streamed[access.block as usize][usize::from(access.write)] += u64::from(access.bytes);
    });
    assert_eq!(read.expect("a stream"), written);
    let mut counts = vec![[0u64; 2]; trace.block_count()];
    for event in trace.iter() {
        counts[event.block as usize][0] += event.read_bytes;
        counts[event.block as usize][1] += event.write_bytes;
    }
    assert_eq!(streamed, counts);
    assert!(read_accesses(&program, |_| ()).is_err());
}
