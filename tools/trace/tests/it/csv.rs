//! The text form: round trip, foreign block names, errors with line numbers,
//! and no panic on any bytes.

use std::path::Path;

use crate::common::traces;
use metes_trace::{Event, Op, Trace, TraceError, export_csv, import_csv};
use proptest::prelude::*;

fn import(text: impl AsRef<[u8]>) -> Result<Trace, TraceError> {
    import_csv(text.as_ref(), Path::new("x.csv"))
}

fn export(trace: &Trace) -> String {
    let mut text = Vec::new();
    let export = export_csv(trace, &mut text).unwrap();
    assert_eq!(export.written as usize, trace.len());
    String::from_utf8(text).unwrap()
}

/// The counts, which the text form keeps too.
fn counts(trace: &Trace) -> Vec<(Op, [u64; 4])> {
    trace
        .iter()
        .map(|e| (e.op, [e.reads, e.writes, e.read_bytes, e.write_bytes]))
        .collect()
}

/// What the text form keeps.
fn essence(trace: &Trace) -> Vec<(Op, u64, u64, u32, u32)> {
    let kept = trace.iter().filter(|event| event.op != Op::Access);
    kept.map(
        |Event {
             op,
             block,
             size,
             align,
             thread,
             ..
         }| (op, block, size, align, thread),
    )
    .collect()
}

proptest! {
    #[test]
    fn round_trip(trace in traces(200)) {
        let text = export(&trace);
        let back = import(&text).unwrap();
        prop_assert_eq!(essence(&back), essence(&trace));
        prop_assert_eq!(counts(&back), counts(&trace));
        prop_assert_eq!(export(&back), text);
    }

    #[test]
    fn foreign_names_do_not_matter(trace in traces(200), odd in any::<u64>()) {
        // An injective renaming, used again for another block after a free.
        let mut text = String::new();
        let mut free: Vec<u64> = Vec::new();
        let mut names = std::collections::HashMap::new();
        for event in trace.iter() {
            let op = match event.op { Op::Alloc => 'a', Op::Free => 'f', Op::Resize => 'r', Op::Access => continue };
            if event.op == Op::Alloc {
                let fresh = names.len() as u64;
                names.insert(event.block, free.pop().unwrap_or(fresh));
            }
            let name = names[&event.block];
            if event.op == Op::Free { free.push(name); }
            let align = event.align.max(1);
            text += &format!("{op}, {:#x} ,{},{align},{}\r\n", name.wrapping_mul(2).wrapping_add(odd), event.size, event.thread);
        }
        // 2n + odd is injective below 2^63 names.
        prop_assert_eq!(essence(&import(&text).unwrap()), essence(&trace));
    }

    #[test]
    fn any_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = import(&bytes);
    }

    #[test]
    fn nearly_right_bytes_never_panic(
        trace in traces(50),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
    ) {
        let mut bytes = export(&trace).into_bytes();
        for (place, value) in damage {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        if let Err(error) = import(&bytes) {
            prop_assert!(error.to_string().starts_with("x.csv"));
        }
    }
}

#[test]
fn short_lines_and_headers() {
    let trace = import("\u{feff}op,block,size\n\na,7,10\nr,7,20\nf,7\na,7,0,64,3").unwrap();
    let expected = [
        (Op::Alloc, 0, 10, 16, 0),
        (Op::Resize, 0, 20, 16, 0),
        (Op::Free, 0, 0, 0, 0),
        (Op::Alloc, 1, 0, 64, 3),
    ];
    assert_eq!(essence(&trace), expected);
    assert!(!trace.provenance.timed);
    assert_eq!(trace.provenance.threads, 2);
}

#[test]
fn counts_are_of_words() {
    let text = "op,block,size,align,thread,reads8,writes8,read_bytes,write_bytes\n\
                a,0,64,16,0\nx,0,64,,,1,2,8,9\nf,0,,,,3,4\n";
    let trace = import(text).unwrap();
    assert_eq!(trace.provenance.access_word, 8);
    let expected = [
        (Op::Alloc, [0; 4]),
        (Op::Access, [1, 2, 8, 9]),
        (Op::Free, [3, 4, 0, 0]),
    ];
    assert_eq!(counts(&trace), expected);
    // Without a header a word has four bytes; without counts there is none.
    assert_eq!(import("a,0,1,16,0,5,6").unwrap().provenance.access_word, 4);
    assert_eq!(import("a,0,1,16,0").unwrap().provenance.access_word, 0);
}

#[test]
fn errors_name_line_and_cause() {
    let line = "1".repeat(5000);
    let cases: [(&str, u64, &str); 16] = [
        (
            "a,1,8\nf,2",
            2,
            "free of block 2, which was never allocated",
        ),
        ("a,1,8\nf,1\nf,1", 3, "freed a second time"),
        ("a,1,8\na,1,8", 2, "while it is live"),
        ("a,1,8\nf,1\nr,1,9", 3, "already freed"),
        ("y,1,8", 1, "unknown op \"y\""),
        ("a,1,8\nop,1,8", 2, "unknown op \"op\""),
        ("a", 1, "field block is missing"),
        ("a,1", 1, "field size is missing"),
        ("a,1,8,16,0,9,9,9,9,9", 1, "more than 9 fields"),
        ("a,1,-8", 1, "field size is \"-8\""),
        ("a,1,+8", 1, "field size is \"+8\""),
        ("a,1,0x+8", 1, "field size is \"0x+8\""),
        ("a,99999999999999999999,8", 1, "field block is"),
        ("a,1,9223372036854775808", 1, "larger than any object"),
        ("a,1,8,0", 1, "no power of two"),
        (&line, 1, "longer than 1024 bytes"),
    ];
    for (text, line, wanted) in cases {
        let error = import(text).unwrap_err();
        assert!(
            matches!(error, TraceError::Line { line: found, .. } if found == line),
            "{error}"
        );
        assert!(
            error.to_string().contains(wanted),
            "{error} should say {wanted}"
        );
    }
    let error = import(b"a,1,8\n\0\0\0\n").unwrap_err();
    assert!(error.to_string().contains("line 2: unknown op"), "{error}");
    for empty in ["", "\n\n", "op,block,size\n"] {
        assert!(matches!(import(empty), Err(TraceError::Empty { .. })));
    }
}
