//! `metes mission check` and `fit`, from outside.

use crate::support::{Place, has_keys, status, stderr, stdout};

const MISSION: &str = metes_duster_system::MISSION;

#[test]
fn the_mission_is_certified() {
    let place = Place::new();
    let (code, document) = place.json(&["mission", "check"]);
    assert_eq!(code, 0, "{}", document["reasons"]);
    has_keys(
        &document,
        &[
            "holds",
            "reasons",
            "tasks",
            "partitions",
            "rows",
            "assumptions",
        ],
    );
    has_keys(
        &document["tasks"][0],
        &["name", "core", "response", "deadline", "budget"],
    );
    has_keys(
        &document["partitions"][0],
        &["name", "heap", "size", "live", "bound"],
    );
    let output = place.metes(&["mission", "check"]);
    assert_eq!(status(&output), 0);
    assert!(
        stdout(&output).contains("task acquire response"),
        "{}",
        stdout(&output)
    );
    assert!(stdout(&output).contains("holds"), "{}", stdout(&output));
}

#[test]
fn a_line_as_slow_as_the_papers_does_not_hold() {
    let place = Place::new();
    place.write(
        "system.toml",
        &MISSION.replace("baud = 781_250", "baud = 115_200"),
    );
    let output = place.metes(&["mission", "check", "system.toml"]);
    assert_eq!(status(&output), 1);
    assert!(
        stdout(&output).contains("line telemetry: utilisation"),
        "{}",
        stdout(&output)
    );
    let (code, document) = place.json(&["mission", "check", "system.toml"]);
    assert_eq!(
        (code, &document["holds"]),
        (1, &serde_json::Value::Bool(false))
    );
    assert!(
        document["reasons"][0]
            .as_str()
            .unwrap()
            .contains("baud at least"),
        "{document}"
    );
}

#[test]
fn what_is_no_declaration_is_told() {
    let place = Place::new();
    place.write(
        "core.toml",
        &MISSION.replacen(
            "
core = 1
",
            "
core = 7
",
            1,
        ),
    );
    place.write("keys.toml", "[platform]\nname = 3\n");
    place.write("image", "no ELF file");
    let cases: [(&[&str], &str); 4] = [
        (&["mission", "check", "absent.toml"], "absent.toml"),
        (&["mission", "check", "core.toml"], "but cores are 0 to 1"),
        (&["mission", "check", "keys.toml"], "line 2"),
        (&["mission", "check", "--image", "image"], "image: "),
    ];
    for (arguments, says) in cases {
        let output = place.metes(arguments);
        assert_eq!(status(&output), 2, "{arguments:?}");
        assert!(
            stderr(&output).contains(says),
            "{arguments:?}: {}",
            stderr(&output)
        );
        assert_eq!(
            stderr(&output).trim_end().lines().count(),
            1,
            "{}",
            stderr(&output)
        );
    }
}

#[test]
fn devices_are_judged() {
    let place = Place::new();
    let (code, document) = place.json(&["mission", "fit"]);
    assert_eq!(code, 0);
    has_keys(&document, &["devices", "corrections", "assumptions"]);
    let devices = document["devices"].as_array().unwrap();
    assert_eq!(devices.len(), 6);
    let verdict =
        |name: &str| devices.iter().find(|it| it["device"] == name).unwrap()["verdict"].clone();
    assert_eq!(verdict("Axcelerator"), "no");
    assert_eq!(verdict("XQRKU060"), "fits");
    let output = place.metes(&["mission", "fit", "--baseline"]);
    assert_eq!(status(&output), 0);
    assert!(stdout(&output).contains("111.62 %"), "{}", stdout(&output));
}

#[test]
fn heaps_are_compared_on_requests_of_a_file() {
    let place = Place::new();
    let mut requests = String::from("# requests\n");
    for block in 0..20 {
        requests += &format!("a,tc,{block},{}\n", 30 + block);
    }
    place.write("requests.txt", &requests);
    let (code, document) = place.json(&["mission", "heaps", "requests.txt"]);
    assert_eq!(code, 0, "{document}");
    has_keys(&document, &["drawn", "requests", "rows"]);
    assert_eq!(document["drawn"], false);
    assert_eq!(document["requests"][0]["peak_blocks"], 20);
    has_keys(
        &document["rows"][0],
        &[
            "partition",
            "allocator",
            "memory",
            "fragmentation",
            "refusals",
            "largest_free",
            "instructions",
        ],
    );
    place.write("wrong.txt", "a,tc,1,10\nf,tc,2\n");
    place.write("foreign.txt", "a,nobody,1,10\n");
    for (file, says) in [("wrong.txt", "line 2"), ("foreign.txt", "name partitions")] {
        let output = place.metes(&["mission", "heaps", file]);
        assert_eq!(status(&output), 2);
        assert!(stderr(&output).contains(says), "{}", stderr(&output));
    }
}
