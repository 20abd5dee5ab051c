//! Heaps of several pools in a line, and the choice of a heap that is guaranteed.

use serde_json::Value;

use crate::support::{Place, STEADY, parsed, status, stderr, stdout};

const DEMAND: [&str; 6] = ["--live", "1MiB", "--max-block", "4096", "--min-block", "64"];

#[test]
fn the_bound_of_several_pools_says_what_it_is_made_of() {
    let place = Place::new();
    let heap = "objects 64/256 + kingsley";
    let arguments = [&["bounds", "--heap", heap], &DEMAND[..]].concat();
    let (code, document) = place.json(&arguments);
    assert_eq!((code, document["heap"].as_str()), (0, Some(heap)));
    let parts = document["parts"].as_array().expect("a list");
    let bytes = |of: &Value| of["heap_bytes"].as_u64().expect("a number");
    assert_eq!(parts.len(), 3, "{document}");
    assert_eq!(parts.iter().map(bytes).sum::<u64>(), bytes(&document));
    let text = stdout(&place.metes(&arguments));
    for said in [
        "part        objects 64: ",
        "requests    257 to 4 096, M = 1 048 576 live",
        "#pool",
        "#storage",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    // A heap without a bound says of which part there is none.
    let arguments = [&["bounds", "--heap", "objects 64 + exact-fit"], &DEMAND[..]].concat();
    let (code, document) = place.json(&arguments);
    assert_eq!((code, &document["heap_bytes"]), (1, &Value::Null));
    assert!(document["parts"][0]["heap_bytes"].is_u64());
    assert!(document["parts"][1]["heap_bytes"].is_null());
}

#[test]
fn every_heap_of_an_exploration_is_named_as_it_is_printed() {
    let place = Place::new();
    place.write("t.csv", &trace());
    let imported = place.metes(&["trace", "import", "t.csv", "-o", "t.parquet"]);
    assert_eq!(status(&imported), 0, "{}", stderr(&imported));
    let (code, document) = place.json(&[
        "explore",
        "t.parquet",
        "--configurations",
        "96",
        "-o",
        "out",
    ]);
    assert_eq!(code, 0, "{document}");
    for heap in document["pareto"].as_array().expect("a list") {
        let name = heap["heap"].as_str().expect("a name");
        let (code, replay) = place.json(&["replay", "t.parquet", "--heap", name]);
        assert_eq!(
            (code, &replay["footprint"]),
            (0, &heap["footprint"]),
            "{name}"
        );
        let (_, bound) = place.json(&[&["bounds", "--heap", name], &DEMAND[..]].concat());
        assert_eq!(bound["heap"], heap["heap"]);
    }
    // The heap to rely on has what its bound says.
    let guarantee = &document["guarantee"];
    let demand = &guarantee["demand"];
    assert_eq!(
        (&demand["max_block"], &demand["min_block"]),
        (&512.into(), &64.into())
    );
    assert_eq!(guarantee["useful"], true, "{document}");
    let live = demand["live"].to_string();
    let heap = document["heap"].as_str().expect("a name");
    let (_, bound) = place.json(&[
        "bounds",
        "--heap",
        heap,
        "--live",
        &live,
        "--max-block",
        "512",
        "--min-block",
        "64",
    ]);
    let all = ["heap_bytes", "outside_bytes"].map(|key| bound[key].as_u64().expect("a number"));
    assert_eq!(guarantee["bytes"], all[0] + all[1], "{document} {bound}");
    assert_eq!(guarantee["necessary"], bound["necessary_bytes"]);
    // What no heap keeps is not chosen, and the least is named.
    let necessary = guarantee["necessary"].to_string();
    let least = place.metes(&[
        "explore",
        "t.parquet",
        "--configurations",
        "8",
        "-o",
        "out",
        "--arena",
        &necessary,
    ]);
    assert_eq!(status(&least), 1);
    assert!(
        stderr(&least).contains("the least is"),
        "{}",
        stderr(&least)
    );
}

#[test]
fn a_guarantee_below_what_is_necessary_is_told_with_what_would_do() {
    let place = Place::new();
    let limit = ["tune", "--guarantee", "3x", "-o", "out"];
    let refused = place.metes(&[&limit[..], &DEMAND, &["--", "true"]].concat());
    assert_eq!(status(&refused), 2);
    let said = stderr(&refused);
    for part in [
        "no heap can guarantee 3145728 bytes",
        "are necessary",
        "suffice for",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!place.path("out").exists());
    let missing = place.metes(&["tune", "--live", "1MiB", "-o", "out", "--", "true"]);
    assert_eq!(status(&missing), 2);
    assert!(stderr(&missing).contains("--max-block"));
}

#[test]
fn a_tuned_program_has_a_guarantee_for_its_demand() {
    let place = Place::new();
    place.compile("steady", STEADY, &[]);
    let output = place.metes(&[
        "--json", "tune", "--budget", "2", "-o", "out", "--", "./steady",
    ]);
    let (_, document) = parsed(&output);
    let guarantee = &document["guarantee"];
    for key in ["live", "max_block", "min_block"] {
        assert!(guarantee["demand"][key].is_u64(), "{guarantee}");
    }
    let known = guarantee["bytes"].as_u64();
    assert!(known.is_some() || guarantee["bytes"].is_null());
    let useful = known.is_some_and(|bytes| Some(bytes) <= guarantee["limit"].as_u64());
    assert_eq!(guarantee["useful"], useful, "{guarantee}");
    let why = document["why"].as_str().expect("a sentence");
    assert!(why.contains("guarantee"), "{why}");
}

/// Blocks of 64 to 512 bytes that come and go.
fn trace() -> String {
    let mut text = String::new();
    for block in 0..600_u32 {
        text += &format!(
            "a,{block},{}\n",
            [64, 100, 256, 512][(block * 7 % 4) as usize]
        );
        if block >= 40 {
            text += &format!("f,{}\n", block - 40);
        }
    }
    text
}

const SPACE: &str = "[general]\nindex = [\"list\", \"classes\", \"kingsley\"]\n[list]\nfit = [\"first\", \"best\"]\n\
    order = [\"address\", \"lifo\"]\n[dedicated]\ncount = [0, 2]\nlimit = [\"none\", 4]\n";

#[test]
fn a_described_space_is_explored_for_guarantees_in_shards_and_with_a_limit() {
    let place = Place::new();
    place.write("t.csv", &trace());
    place.write("s.toml", SPACE);
    let imported = place.metes(&["trace", "import", "t.csv", "-o", "t.parquet"]);
    assert_eq!(status(&imported), 0, "{}", stderr(&imported));
    let explore = ["explore", "t.parquet", "--space", "s.toml"];
    let objectives = ["--objectives", "footprint,guarantee,cycles"];
    let whole = [
        &explore[..],
        &objectives,
        &["--search", "exhaustive", "-o", "whole"],
    ]
    .concat();
    let (code, document) = place.json(&whole);
    assert_eq!(code, 0, "{document}");
    let front = document["pareto"].as_array().expect("a list");
    // What is said of a heap is what its bound says; limited lists have one, others have none.
    let demand = &document["guarantee"];
    let number = |key: &str| demand[key].to_string();
    let mut bounded = 0;
    for heap in front {
        let name = heap["heap"].as_str().expect("a name");
        let (_, bound) = place.json(&[
            "bounds",
            "--heap",
            name,
            "--live",
            &number("live"),
            "--max-block",
            &number("max_block"),
            "--min-block",
            &number("min_block"),
        ]);
        let all = ["heap_bytes", "outside_bytes"].map(|key| bound[key].as_u64());
        let all = all[0].map(|bytes| bytes + all[1].unwrap_or(0));
        assert_eq!(heap["guarantee"].as_u64(), all, "{name}: {bound}");
        bounded += usize::from(all.is_some());
    }
    assert!(bounded > 0, "{document}");
    let text = stdout(&place.metes(&whole));
    assert!(text.contains("guarantee"), "{text}");
    // In parts, joined, it is the same file.
    for part in ["1/2", "2/2"] {
        let output = if part == "1/2" { "one" } else { "two" };
        let part = [&explore[..], &objectives, &["--shard", part, "-o", output]].concat();
        assert_eq!(place.json(&part).0, 0);
    }
    let (code, merged) = place.json(&["merge", "one", "two", "-o", "merged"]);
    assert_eq!((code, &merged["distinct"]), (0, &document["distinct"]));
    let read = |name: &str| std::fs::read(place.path(name).join("results.parquet"));
    assert_eq!(read("merged").unwrap(), read("whole").unwrap());
    // What guarantees less than was asked for is left out, and said.
    let limited = [
        &explore[..],
        &[
            "--search",
            "exhaustive",
            "--guarantee",
            "7x",
            "-o",
            "limited",
        ],
    ];
    let (code, limited) = place.json(&limited.concat());
    assert_eq!(code, 0, "{limited}");
    assert!(limited["beyond"].as_u64() > Some(0), "{limited}");
    let most = limited["guarantee"]["limit"].as_u64().expect("a limit");
    for heap in limited["pareto"].as_array().expect("a list") {
        assert!(heap["guarantee"].as_u64().expect("finite") <= most);
    }
    // A demand is declared to evaluate, too, and told with each row.
    let (_, rows) = place.json(&[
        "evaluate",
        "t.parquet",
        "--space",
        "s.toml",
        "0",
        "--margin",
        "10",
    ]);
    assert!(rows["rows"][0]["guarantee"].is_u64(), "{rows}");
    let suggested = [
        "explore",
        "t.parquet",
        "--configurations",
        "64",
        "-o",
        "out",
        "--objectives",
        "footprint,cycles,worst,guarantee",
    ];
    let (code, suggested) = place.json(&suggested);
    let guarantees = suggested["pareto"].as_array().expect("a list").iter();
    let least = guarantees
        .filter_map(|heap| heap["guarantee"].as_u64())
        .min();
    assert!(code == 0 && least.is_some(), "{suggested}");
}
