//! `docs/parts.md` names every key and every word that a `heap.toml` accepts.
//!
//! What is accepted is asked of the reader itself: an unknown key or word is
//! refused with all that are known in its place, so that nothing that is added
//! to the reader can be missing here.

use std::collections::BTreeSet;

use metes_config::{named, parse};

/// Stands for no key, no word and no section, and resembles none.
const STRANGER: &str = "zqxj";

/// What a refusal says is known in that place.
fn known(text: &str) -> Vec<String> {
    let error = parse(text, "heap.toml").expect_err(text).one_line();
    let (_, list) = error
        .rsplit_once("(known here: ")
        .unwrap_or_else(|| panic!("no list in: {error}\n{text}"));
    let list = list.trim_end_matches(')');
    list.split(", ").map(str::to_owned).collect()
}

/// Sections in which every required key is said, by kind of section; each `[heap]`
/// and each general pool once for every named heap.
fn sections() -> Vec<String> {
    let mut sections = vec![
        "[arena]\n".to_owned(),
        "[[level]]\nname = \"a\"\nsize = 1\n".to_owned(),
        "[[pool]]\nkind = \"dedicated\"\nsize = 64\n".to_owned(),
        "[[pool]]\nkind = \"object\"\nsize = 64\n".to_owned(),
    ];
    sections.push("[heap]\nname = \"first-fit\"\nsearch = \"tree\"\n".to_owned());
    for (name, _) in named() {
        sections.push(format!("[heap]\nname = \"{name}\"\n"));
        sections.push(format!(
            "[[pool]]\nkind = \"general\"\nindex = \"{name}\"\n"
        ));
    }
    sections
}

/// Section, key and words of every key that takes words.
fn words() -> BTreeSet<(String, Vec<String>)> {
    let mut found = BTreeSet::new();
    for section in sections() {
        for key in known(&format!("{section}{STRANGER} = 1\n")) {
            // The key may be there already: then the stranger takes its place.
            let lines = section
                .lines()
                .filter(|line| !line.starts_with(&format!("{key} =")));
            let mut text: String = lines.map(|line| format!("{line}\n")).collect();
            text += &format!("{key} = \"{STRANGER}\"\n");
            let Err(error) = parse(&text, "heap.toml") else {
                continue;
            };
            if error.one_line().contains("known here: ") {
                let words = known(&text);
                // A level refers to another section: its words are the user's.
                if key != "level" {
                    found.insert((key, words));
                }
            }
        }
    }
    found
}

fn list() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/parts.md");
    std::fs::read_to_string(path).expect("docs/parts.md")
}

#[test]
fn every_key_is_in_the_list() {
    let list = list();
    let mut keys: BTreeSet<String> = sections()
        .iter()
        .flat_map(|section| known(&format!("{section}{STRANGER} = 1\n")))
        .collect();
    keys.extend(
        known(&format!("[{STRANGER}]\n"))
            .into_iter()
            .filter(|key| key != "heap" && key != "pool"),
    );
    // A guard for this test: what it must find, whatever is added.
    for key in [
        "order",
        "links",
        "depth",
        "sizes",
        "slab",
        "increment",
        "latency",
        "arena",
    ] {
        assert!(
            keys.contains(key),
            "the reader no longer knows `{key}`: {keys:?}"
        );
    }
    for key in keys {
        let said = [format!("`{key}`"), format!("`{key} = "), format!("[{key}]")];
        assert!(
            said.iter().any(|said| list.contains(said)),
            "docs/parts.md does not name the key `{key}`"
        );
    }
}

#[test]
fn every_word_is_in_the_list() {
    let list = list();
    let words = words();
    for key in ["name", "fit", "order", "links", "store", "kind"] {
        assert!(
            words.iter().any(|(own, _)| own == key),
            "the reader no longer takes words for `{key}`"
        );
    }
    for (key, words) in words {
        for word in words {
            let said = format!("`{key} = \"{word}\"`");
            // A named heap is an `index` as well.
            let other = format!("`name = \"{word}\"`");
            assert!(
                list.contains(&said) || (key == "index" && list.contains(&other)),
                "docs/parts.md does not name {said}"
            );
        }
    }
    // Words beside sizes, which a refusal does not list.
    for (text, said) in [
        ("tlsf:coalesce_up_to=never", "`coalesce_up_to = \"never\"`"),
        ("tlsf:split_down_to=never", "`split_down_to = \"never\"`"),
        ("segregated-fit:probes=all", "`probes = \"all\"`"),
    ] {
        assert!(metes_config::spec(text).is_ok(), "{text}");
        assert!(list.contains(said), "docs/parts.md does not name {said}");
    }
}

#[test]
fn the_list_has_more_than_fifty_parts_numbered_in_order() {
    let list = list();
    let numbers = list.lines().filter_map(|line| {
        let cell = line.strip_prefix("| ")?.split(" |").next()?;
        cell.parse::<usize>().ok()
    });
    let numbers: Vec<usize> = numbers.collect();
    assert!(numbers.len() > 50);
    assert!(numbers.iter().copied().eq(1..=numbers.len()), "{numbers:?}");
}

/// Files that the list says parts live in.
#[test]
fn the_places_in_the_list_exist() {
    let heap = concat!(env!("CARGO_MANIFEST_DIR"), "/../../core/heap");
    let list = list();
    let mut places = 0;
    for place in list.split('`').filter(|word| word.ends_with(".rs")) {
        let path = format!("{heap}/src/{place}");
        assert!(std::path::Path::new(&path).exists(), "{path}");
        places += 1;
    }
    assert!(places > 20);
}

#[test]
fn probes_of_tlsf_are_those_of_segregated_fit() {
    let same = [
        ("tlsf:probes=0", "tlsf"),
        ("tlsf:probes=1", "segregated-fit:second_level=32,probes=1"),
        (
            "tlsf:second_level=8,probes=2",
            "segregated-fit:second_level=8,probes=2",
        ),
        ("tlsf:probes=all", "segregated-fit:second_level=32"),
    ];
    for (given, canonical) in same {
        let heap = |text| metes_config::spec(text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(heap(given), heap(canonical), "{given}");
    }
    assert!(metes_config::spec("half-fit:probes=1").is_err());
}
