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
fn a_trace_is_run_on_all_fabrics() {
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

    // What is refused at once depends on who is first, but not what is lost.
    for fabric in ["threads", "processes"] {
        let (code, document) = place.json(&[&run[..], &["--fabric", fabric]].concat());
        assert_eq!(code, 0, "{document}");
        assert_eq!(
            (&document["lost_blocks"], &document["operations"]),
            (&0.into(), &7.into())
        );
        assert_eq!(document["dead"].to_string(), "[]");
    }

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

#[test]
fn a_node_that_dies_is_told() {
    let place = place();
    let run = "mesh run trace.txt --nodes 2 --heap 4KiB --kind best-fit --kill 0@3 --fabric";
    for fabric in ["threads", "processes"] {
        let run: Vec<&str> = run.split(' ').chain([fabric]).collect();
        let (code, document) = place.json(&run);
        assert_eq!(code, 0, "{document}");
        assert_eq!(document["dead"].to_string(), "[0]", "{document}");
        assert_eq!(document["lost_blocks"], 0, "{document}");
        // It has done what it had to do, and dies before it says so.
        assert_eq!(document["undone"], 0, "{document}");
        let output = place.metes(&run);
        assert_eq!(status(&output), 0, "{}", stderr(&output));
        let told = stdout(&output);
        assert!(told.contains("died: node 0; "), "{told}");
    }
    // Before its second operation, its first access to what nodes share, and so on.
    for step in 0..20 {
        let kill = format!("0@1.{step}");
        let run = "mesh run trace.txt --nodes 2 --heap 4KiB --fabric processes --kill";
        let run: Vec<&str> = run.split(' ').chain([&*kill]).collect();
        let (code, document) = place.json(&run);
        assert_eq!(code, 0, "{document}");
        assert_eq!(document["dead"].to_string(), "[0]", "{document}");
        assert_eq!(document["lost_blocks"], 0, "{document}");
    }
}

#[test]
fn what_cannot_be_names_its_option() {
    let place = place();
    let run = |more: &str| {
        let run = "mesh run trace.txt --nodes 2 --heap 64KiB ".to_string() + more;
        let output = place.metes(&run.split(' ').collect::<Vec<_>>());
        assert_eq!(status(&output), 2, "{run}");
        stderr(&output)
    };
    for (more, says) in [
        ("--kill 2@0", "--kill: there is no node 2: nodes are 0 to 1"),
        ("--kill 0@4", "--kill: node 0 has 3 operations"),
        ("--kill 0@1 --kill 0@2", "--kill: node 0 dies once"),
        ("--kill 0@1 --kill 1@2", "all nodes die: let one live"),
        ("--kill 0", "such as 2@100"),
        (
            "--fabric sequential --kill 0@1",
            "--kill: nodes that take turns do not die",
        ),
    ] {
        let told = run(more);
        assert!(told.contains(says), "{more}: {told}");
    }
    let too_large = "mesh run trace.txt --nodes 2 --heap 16GiB --fabric processes";
    let output = place.metes(&too_large.split(' ').collect::<Vec<_>>());
    assert_eq!(status(&output), 2);
    let told = stderr(&output);
    assert!(
        told.contains("--heap: 2 heaps of 17179869184 bytes"),
        "{told}"
    );
}

/// What is missing is named, with where to get it.
#[test]
fn mpi_that_is_not_there_is_told() {
    let place = place();
    let run = "mesh run trace.txt --nodes 2 --heap 64KiB --fabric mpi";
    let run: Vec<&str> = run.split(' ').collect();
    let mut command = place.command(&run);
    let output = command.env("PATH", place.path("")).output();
    let output = output.expect("metes is run");
    assert_eq!(status(&output), 2);
    let told = stderr(&output);
    assert!(
        told.contains("--fabric mpi: metes-mesh-mpi is neither"),
        "{told}"
    );
    let mut command = place.command(&run);
    command.env("METES_MESH_MPI", "none");
    let output = command.env("PATH", place.path("")).output();
    let output = output.expect("metes is run");
    assert_eq!(status(&output), 2);
    let told = stderr(&output);
    assert!(
        told.contains("no mpirun of Open MPI is on the path"),
        "{told}"
    );
}
