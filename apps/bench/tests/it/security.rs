//! The hardened heap finds every bad program that it claims to find, at every size;
//! plain boundary tags do not, so the programs are bad.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::Value;

#[test]
fn a_hardened_heap_finds_what_it_claims_to_find() {
    let done = Command::new(env!("CARGO_BIN_EXE_metes-bench"))
        .args(["security", "--json", "--library"])
        .arg(metes_libraries::released().join("libmetes_preload.so"))
        .output()
        .expect("the program starts");
    let said: Value = serde_json::from_slice(&done.stdout).expect("one JSON document");
    let mut detected: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    for score in said["security"].as_array().expect("scores") {
        if score["certain"] != true {
            continue;
        }
        let heap = score["heap"].as_str().expect("a name");
        let outcomes = score["outcomes"].as_array().expect("outcomes");
        assert!(outcomes.len() >= 5, "the program applies: {score}");
        let found = outcomes.iter().filter(|outcome| outcome[1] == "detected");
        let sum = detected.entry(heap.to_owned()).or_default();
        sum.0 += found.count();
        sum.1 += outcomes.len();
    }
    let (found, all) = detected["metes tlsf:store=hardened"];
    assert!(all > 200, "{all} cases");
    assert_eq!(found, all, "{said}");
    assert_eq!(done.status.code(), Some(0));
    let (plain, _) = detected["metes tlsf"];
    assert!(plain < all * 3 / 4, "plain tags see {plain} of {all}");
}
