//! Heaps and pools compared on small requests, where what comes of it is known.

use super::*;

fn system() -> System {
    System::of_mission()
}

const NOT_COUNTED: Options = Options {
    counted: 0,
    repeated: 1,
};

fn rows(trace: &str) -> Report {
    compare(&system(), &Trace::read(trace).unwrap(), NOT_COUNTED)
}

#[test]
fn a_trace_is_read_and_told() {
    let trace =
        Trace::read("# a comment\na,tm,7,100\n a , tm , 8 , 50 # another\nf,tm,7\na,tm,7,20\n")
            .unwrap();
    let requests = trace.of("tm").unwrap();
    assert_eq!(requests.events().len(), 4);
    assert!(trace.of("tc").is_none());
    let partition = system().partition("tm").unwrap().clone();
    let asked = requests.asked(&partition);
    assert_eq!(
        (asked.allocations, asked.peak_live, asked.peak_blocks),
        (3, 150, 2)
    );
    let wrong = [
        ("a,tm,1,10\na,tm,1,10", "line 2: this block is live already"),
        ("f,tm,1", "line 1: this block is not live"),
        ("a,tm,x,10", "line 1: a block has a number"),
        ("a,tm,1,9999999999", "line 1: a size is"),
        ("b,tm,1", "line 1: this is no operation"),
        ("a,tm,1", "line 1: this is no operation"),
    ];
    for (text, says) in wrong {
        let said = Trace::read(text).unwrap_err().to_string();
        assert!(
            said.starts_with(says) && said.contains("write a,PARTITION"),
            "{said}"
        );
    }
}

#[test]
fn needs_are_those_that_can_be_reckoned() {
    // Ten of 100 bytes, freed, then ten of 200.
    let mut text = String::new();
    for block in 0..10 {
        text += &format!("a,tm,{block},100\n");
    }
    for block in 0..10 {
        text += &format!("f,tm,{block}\n");
    }
    for block in 10..20 {
        text += &format!("a,tm,{block},200\n");
    }
    let report = rows(&text);
    let of = |name: &str| {
        let found = report.rows.iter().find(|row| row.allocator == name);
        found.unwrap_or_else(|| panic!("{name}: {:?}", report.rows))
    };
    // Buckets of 128 and 256 are never merged: 10 (144 + 272) bytes; slots have a word each in the table.
    assert_eq!(of("cFE buckets, usual sizes").memory, Some(4160));
    assert_eq!(
        of("satrs slots, usual sizes").memory,
        Some((10 * (128 + 256) + 80u64).next_multiple_of(64))
    );
    // Of the declared size that holds both, ten suffice.
    let system = system();
    let sizes = system
        .partition("tm")
        .unwrap()
        .demands
        .iter()
        .map(|demand| demand.size as u64);
    let held = sizes
        .filter(|&size| size >= 200)
        .min()
        .unwrap()
        .next_multiple_of(8);
    assert_eq!(
        of("F´ bins, declared sizes").memory,
        Some((10 * held + 40).next_multiple_of(64))
    );
    // Merged, they serve each other: 10 x 208 bytes, and list heads.
    let merged = of("first-fit").memory.unwrap();
    assert!((2080..2200).contains(&merged), "{merged}");
    assert!(report.rows.iter().all(|row| row.refusals == Some(0)));
    assert!(report.rows.iter().all(|row| row.instructions.is_none()));
}

#[test]
fn what_is_drawn_is_within_the_demands_and_repeats() {
    let system = system();
    let trace = Trace::drawn(&system, 200, 3);
    assert_eq!(trace, Trace::drawn(&system, 200, 3));
    assert_ne!(trace, Trace::drawn(&system, 200, 4));
    for (partition, bound) in system
        .partitions
        .iter()
        .zip(crate::check::partitions(&system))
    {
        let requests = trace.of(&partition.name).unwrap();
        let asked = requests.asked(partition);
        assert!(
            asked.peak_live <= bound.live && asked.peak_blocks <= bound.blocks,
            "{asked:?} {bound:?}"
        );
        assert!(asked.allocations > 20, "{asked:?}");
        // What is certified suffices.
        let bytes = bound.heap_bytes.unwrap() as usize;
        let outcome = subjects::replay(
            &Kind::Metes("tlsf:second_level=8"),
            bytes,
            requests,
            2,
            true,
        )
        .unwrap();
        assert_eq!(outcome.refusals, 0);
    }
}

#[test]
fn instructions_are_counted() {
    let mut text = String::new();
    for block in 0..30 {
        text += &format!("a,tm,{block},{}\n", 40 + block * 7);
    }
    for block in 0..30 {
        text += &format!("f,tm,{block}\n");
    }
    let report = compare(
        &system(),
        &Trace::read(&text).unwrap(),
        Options {
            counted: 80,
            repeated: 1,
        },
    );
    let counted: Vec<_> = report
        .rows
        .iter()
        .filter_map(|row| row.instructions)
        .collect();
    // Elsewhere than on x86-64 nothing is counted.
    assert!(counted.is_empty() || counted.len() == report.rows.len());
    assert!(
        counted
            .iter()
            .flatten()
            .all(|count| (5..50_000).contains(count)),
        "{counted:?}"
    );
}
