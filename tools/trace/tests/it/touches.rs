//! Touch traces: read as written, refused with line and cause.

use std::path::Path;

use metes_trace::{TouchOperation, TouchProfile, TouchReader, TraceError};
use proptest::prelude::*;

fn read(text: impl AsRef<[u8]>) -> Result<Vec<TouchOperation>, TraceError> {
    TouchReader::new(text.as_ref(), Path::new("x.touches")).collect()
}

/// Operations that can be done one after the other, of any numbers.
fn possible(drawn: &[(u8, u64, u64)]) -> Vec<TouchOperation> {
    let mut live: Vec<(u64, u64)> = Vec::new();
    let mut blocks = 0;
    let mut operations = Vec::new();
    for &(what, first, second) in drawn {
        if what < 3 || live.is_empty() {
            let (block, size) = (blocks, first >> (second % 64).max(1));
            let align = 1 << (second % 32);
            operations.push(TouchOperation::Allocate { block, size, align });
            live.push((block, size));
            blocks += 1;
            continue;
        }
        let index = first as usize % live.len();
        let (block, size) = live[index];
        match what {
            3 => {
                live.swap_remove(index);
                operations.push(TouchOperation::Free { block });
            }
            _ if size == 0 => {}
            4 => operations.push(TouchOperation::Read {
                block,
                offset: second % size,
            }),
            _ => operations.push(TouchOperation::Write {
                block,
                offset: second % size,
            }),
        }
    }
    operations
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        drawn in prop::collection::vec((0_u8..8, any::<u64>(), any::<u64>()), 1..200),
    ) {
        let operations = possible(&drawn);
        let mut text = String::new();
        for operation in &operations {
            text += &format!("{operation}\n");
        }
        prop_assert_eq!(read(text).expect("possible"), operations);
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in "[afrw0-9,#x \\n]{0,120}") {
        // Nothing comes after an error.
        let mut reader = TouchReader::new(bytes.as_bytes(), Path::new("x.touches"));
        let wrong = reader.position(|operation| operation.is_err());
        prop_assert!(wrong.is_none() || reader.next().is_none());
    }
}

#[test]
fn comments_blanks_and_defaults() {
    let text =
        "# a comment\n\n a , 0 , 64 # with a remark\r\na,1,8,4096\nw,0,63\nr,1,0\nf,0\n#\nf,1";
    let expected = [
        TouchOperation::Allocate {
            block: 0,
            size: 64,
            align: 16,
        },
        TouchOperation::Allocate {
            block: 1,
            size: 8,
            align: 4096,
        },
        TouchOperation::Write {
            block: 0,
            offset: 63,
        },
        TouchOperation::Read {
            block: 1,
            offset: 0,
        },
        TouchOperation::Free { block: 0 },
        TouchOperation::Free { block: 1 },
    ];
    assert_eq!(read(text).expect("a touch trace"), expected);
}

#[test]
fn errors_name_line_and_cause() {
    let long = "1".repeat(5000);
    let cases: [(&str, u64, &str); 22] = [
        ("a,1,8", 1, "block 1 where serial number 0 is due"),
        ("a,0,8\na,0,8", 2, "block 0 where serial number 1 is due"),
        (
            "a,0,8\nf,1",
            2,
            "free of block 1, which was never allocated",
        ),
        ("a,0,8\nf,0\nf,0", 3, "freed a second time"),
        (
            "a,0,8\nf,0\nr,0,0",
            3,
            "access of block 0, which is already freed",
        ),
        (
            "a,0,8\n\nw,3,0",
            3,
            "access of block 3, which was never allocated",
        ),
        ("a,0,8\nw,0,8", 2, "offset 8 of block 0, which has 8 bytes"),
        ("a,0,0\nr,0,0", 2, "offset 0 of block 0, which has 0 bytes"),
        ("x,0,8", 1, "unknown operation \"x\""),
        ("A,0,8", 1, "unknown operation \"A\""),
        ("a", 1, "1 fields; a line is a,BLOCK,SIZE[,ALIGN]"),
        ("a,0", 1, "2 fields"),
        ("a,0,8,16,0", 1, "5 fields"),
        ("a,0,8\nf,0,0", 2, "3 fields"),
        ("a,0,8\nr,0", 2, "2 fields"),
        ("a,0,+8", 1, "SIZE is \"+8\""),
        ("a,-0,8", 1, "BLOCK is \"-0\""),
        ("a,0,8\nw,0,0x1", 2, "OFFSET is \"0x1\""),
        ("a,0,99999999999999999999", 1, "SIZE is"),
        ("a,0,9223372036854775808", 1, "larger than any object"),
        ("a,0,8,24", 1, "alignment 24 is no power of two"),
        (&long, 1, "longer than 1024 bytes"),
    ];
    for (text, line, wanted) in cases {
        let error = read(text).expect_err(text);
        assert!(
            matches!(error, TraceError::Touch { line: found, .. } if found == line),
            "{error}"
        );
        assert!(
            error.to_string().contains(wanted),
            "{error} should say {wanted}"
        );
    }
    for empty in ["", "\n\n", "# nothing\n"] {
        assert!(matches!(read(empty), Err(TraceError::Empty { .. })));
    }
    assert!(
        read(b"a,0,8\n\xff\xfe")
            .expect_err("no text")
            .to_string()
            .contains("line 2")
    );
}

#[test]
fn figures_are_those_of_the_operations() {
    let text = "a,0,4097\na,1,8192\nw,0,0\nw,0,1\nr,0,4096\nf,0\na,2,1\nr,2,0\nw,1,8191\na,3,0\n";
    let mut profile = TouchProfile::default();
    for operation in &read(text).expect("a touch trace") {
        profile.take(operation);
    }
    let figures = serde_json::to_value(&profile).expect("JSON");
    let expected = serde_json::json!({
        "operations": 10, "allocations": 4, "frees": 1, "reads": 2, "writes": 3,
        "touched_slices": 4, "peak_blocks": 3, "peak_live": 12_289,
        "peak_slices": 4, "peak_touched_slices": 2,
    });
    assert_eq!(figures, expected);
}
