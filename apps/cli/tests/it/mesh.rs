//! `metes mesh`, from outside.

use crate::support::{Place, has_keys, status, stderr, stdout};

/// Two nodes: the first fills its heap and then the other's, the second frees what is its own of it.
const TRACE: &str = "\
# three blocks of the first node; the third goes to the other's heap
a,0,1,1500
a,0,2,1500
a,0,3,1500
# too much for either
a,1,4,3000
f,1,3
f,1,4 # was refused
a,1,5,1500
";

fn place() -> Place {
    let place = Place::new();
    place.write("trace.txt", TRACE);
    place
}

#[test]
fn a_trace_is_run_on_both_fabrics() {
    let place = place();
    // A kind with few records of its own.
    let run = "mesh run trace.txt --nodes 2 --heap 4KiB --kind best-fit";
    let run: Vec<&str> = run.split(' ').collect();
    let (code, document) = place.json(&[&run[..], &["--fabric", "sequential"]].concat());
    assert_eq!(code, 0, "{document}");
    has_keys(
        &document,
        &[
            "operations",
            "failed",
            "spurious",
            "live_bytes",
            "lost_blocks",
            "node_peaks",
        ],
    );
    assert_eq!(document["operations"], 7);
    assert_eq!(
        (&document["failed"], &document["spurious"]),
        (&1.into(), &0.into())
    );
    assert_eq!(document["live_bytes"], 4500);
    assert_eq!(
        (&document["local"], &document["remote"]),
        (&3.into(), &1.into())
    );
    assert_eq!(document["node_peaks"].to_string(), "[3000,1500]");

    // What threads are refused depends on who is first, but not what is lost.
    let (code, document) = place.json(&run);
    assert_eq!(code, 0, "{document}");
    assert_eq!(
        (&document["lost_blocks"], &document["operations"]),
        (&0.into(), &7.into())
    );

    let output = place.metes(&run);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert!(
        stdout(&output).contains("7 operations"),
        "{}",
        stdout(&output)
    );
}

#[test]
fn lines_that_are_wrong_are_named() {
    let place = place();
    place.write("twice.txt", "a,0,1,8\nf,1,1\nf,0,1\n");
    let run = |name, nodes| place.metes(&["mesh", "run", name, "--nodes", nodes, "--heap", "4KiB"]);
    for (name, nodes, says) in [
        ("twice.txt", "2", "line 3: block 1 is not in use"),
        ("trace.txt", "1", "line 6: there is no node 1"),
    ] {
        let output = run(name, nodes);
        assert_eq!(status(&output), 2);
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
}
