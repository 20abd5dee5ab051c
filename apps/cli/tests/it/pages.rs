//! `metes pages`: each action on good input.

use crate::support::{Place, has_keys, parsed, status, stderr, stdout};

#[test]
fn operations_are_replayed_to_the_contract() {
    let place = Place::new();
    let operations =
        "# a region, and around it\nm,2,4,rw\nw,3,7\nr,3\nr,4\nr,6\nm,5,2,r\nu,2\nr,3\n";
    place.write("operations.txt", operations);
    let command = [
        "pages",
        "replay",
        "operations.txt",
        "--pages",
        "8",
        "--frames",
        "2",
    ];
    let output = place.metes(&command);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert!(
        stdout(&output).contains("2 page faults"),
        "{}",
        stdout(&output)
    );

    let output = place.metes(&[&command[..], &["--json"]].concat());
    let (_, document) = parsed(&output);
    let results =
        "[\"ok\",\"fault\",\"ok\",\"fault\",\"unmapped\",\"overlap\",\"ok\",\"unmapped\"]";
    assert_eq!(document["results"].to_string(), results);
    let values = "[null,null,7,0,null,null,null,null]";
    assert_eq!(document["values"].to_string(), values);
    for (key, expected) in [("regions", 0), ("frames_used", 0), ("faults", 2)] {
        assert_eq!(document[key], expected, "{key}");
    }
}

#[test]
fn instructions_stay_within_the_goals() {
    let place = Place::new();
    let output = place.metes(&["pages", "bench", "--calls", "20", "--json"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let (_, document) = parsed(&output);
    has_keys(
        &document,
        &["instructions_max", "index_bytes", "spaces", "parts"],
    );
    let most = &document["instructions_max"];
    for (key, goal) in [
        ("map", 147),
        ("unmap", 271),
        ("map_page", 144),
        ("find", 60),
        ("access", 20),
    ] {
        let count = most[key].as_u64().expect(key);
        assert!(0 < count && count <= goal, "{key}: {count}");
    }
    assert_eq!(document["index_bytes"], 133_160);
    let tables = document["spaces"][1]["page_tables"]
        .as_f64()
        .expect("a number");
    assert!(tables < 4.0, "{tables}");
}

#[test]
fn touches_are_replayed_on_both_systems() {
    let place = Place::new();
    place.write(
        "t.touches",
        "a,0,10000\na,1,100000\nw,1,0\nw,1,99999\nr,1,50000\nf,0\nf,1\n",
    );
    let output = place.metes(&["pages", "compare", "t.touches", "--json"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let (_, document) = parsed(&output);
    assert_eq!(document["constant"]["footprint"], 3);
    let free = |system: &str| document[system]["free_max"].as_u64().expect("a count");
    assert!(free("constant") > 0 && free("conventional") > 0);
    let output = place.metes(&["pages", "compare", "t.touches"]);
    assert!(
        stdout(&output).contains("constant time"),
        "{}",
        stdout(&output)
    );
}
