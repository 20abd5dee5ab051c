//! `metes mesh simulate`, `bound` and `platform`, from outside.

use crate::support::{Place, has_keys, status, stderr, stdout};

#[test]
fn a_run_is_told_and_repeated() {
    let place = Place::new();
    let run = [
        "mesh",
        "simulate",
        "--columns",
        "3",
        "--rows",
        "3",
        "--operations",
        "60",
    ];
    let (code, document) = place.json(&run);
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
            "bound",
            "longest",
            "holds",
        ],
    );
    assert_eq!(document["spurious"], 0);
    assert_eq!(document["live_bytes"], 0);
    assert!(document["longest"].as_u64() <= document["bound"]["allocate"].as_u64());
    assert_eq!(place.json(&run), (0, document));
}

#[test]
fn a_node_dies_and_is_shown() {
    let place = Place::new();
    place.write("faults.toml", "deaths = [{ node = 4, from = 9000 }]\n");
    let run = [
        "mesh",
        "simulate",
        "--columns",
        "3",
        "--rows",
        "3",
        "--operations",
        "60",
        "--faults",
        "faults.toml",
        "-o",
        "mesh.html",
    ];
    let (code, document) = place.json(&run);
    assert_eq!(code, 0, "{document}");
    assert_eq!(document["dead"].to_string(), "[4]");
    assert_eq!(document["lost_blocks"], 0);
    let page = std::fs::read_to_string(place.path("mesh.html")).expect("it was written");
    assert!(page.contains("<meta name=\"generator\" content=\"Metes\">"));
}

#[test]
fn what_waits_for_ever_is_not_begun() {
    let place = Place::new();
    place.write("faults.toml", "deaths = [{ node = 9, from = 1 }]\n");
    place.write("lost.toml", "lost = [3]\n");
    for (words, why) in [
        (["--faults", "faults.toml"], "node 9"),
        (["--faults", "lost.toml"], "--manager metes"),
    ] {
        let manager = ["mesh", "simulate", "--manager", "proposed"];
        let run = if words[1] == "lost.toml" {
            [&manager[..], &words].concat()
        } else {
            [&manager[..2], &words].concat()
        };
        let done = place.metes(&run);
        assert_eq!(status(&done), 2);
        assert!(stderr(&done).contains(why), "{}", stderr(&done));
    }
}

#[test]
fn a_bound_is_beside_a_run() {
    let place = Place::new();
    let (code, document) = place.json(&["mesh", "bound"]);
    assert_eq!(code, 0, "{document}");
    assert_eq!(document["bound"]["nodes"], 4);
    assert!(document["simulated"].as_u64() > Some(0));
}

#[test]
fn what_is_printed_can_be_given_back() {
    let place = Place::new();
    let done = place.metes(&["mesh", "platform"]);
    assert_eq!(status(&done), 0);
    place.write("platform.toml", &stdout(&done));
    let given = place.json(&["mesh", "bound", "--platform", "platform.toml"]);
    assert_eq!(given, place.json(&["mesh", "bound"]));
}
