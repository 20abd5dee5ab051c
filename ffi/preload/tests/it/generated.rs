//! Any heap that `heap.toml` can describe serves a program: heaps are drawn from a
//! seed, and a program that verifies every byte it wrote runs on each.

use std::fmt::Write;
use std::process::Command;

use crate::common::{compile, directory, preload, run};

/// Heaps drawn.
const HEAPS: u64 = 60;

/// What heaps are drawn by.
struct Random(metes_random::Random);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.remainder(bound)
    }

    fn one_of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// The key that names an index and its parameters, as lines.
fn index(random: &mut Random, key: &str) -> String {
    let name = random.one_of(&[
        "buddy",
        "buddy",
        "tlsf",
        "half-fit",
        "segregated-fit",
        "kingsley",
        "lea",
        "ose",
        "first-fit",
        "next-fit",
        "best-fit",
        "worst-fit",
        "exact-fit",
    ]);
    let mut lines = format!("{key} = \"{name}\"\n");
    let more = match name {
        "buddy" => random.one_of(&["", "lowest = true"]),
        "tlsf" => random.one_of(&["", "second_level = 1", "second_level = 8"]),
        "segregated-fit" => random.one_of(&["", "probes = 2", "second_level = 4"]),
        "lea" => random.one_of(&["", "keep_up_to = 0", "keep_up_to = 64"]),
        name if name.ends_with("-fit") && name != "half-fit" => random.one_of(&[
            "",
            "order = \"address\"",
            "order = \"fifo\"",
            "links = \"single\"",
        ]),
        _ => "",
    };
    let limits = random.one_of(&["", "", "coalesce_up_to = 4096", "coalesce_up_to = 0"]);
    for line in [more, limits] {
        let _ = writeln!(lines, "{line}");
    }
    lines
}

/// A description; not all are accepted.
fn document(random: &mut Random) -> String {
    let granules = match random.below(3) {
        0 => 1 + random.below(8),
        1 => 255 + random.below(6),
        _ => 1 + random.below(600),
    };
    let mut text = format!("[arena]\nincrement = {}\n", 16 * granules);
    if random.below(2) == 0 {
        let _ = write!(text, "[heap]\n{}", index(random, "name"));
        if random.below(3) == 0 {
            text.push_str("store = \"hardened\"\n");
        }
        return text;
    }
    for _ in 0..random.below(3) {
        let kind = random.one_of(&["object", "dedicated"]);
        let size = 16 * (1 + random.below(16));
        let _ = write!(text, "[[pool]]\nkind = \"{kind}\"\nsize = {size}\n");
    }
    for up_to in [100 + random.below(4000), 0] {
        if up_to != 0 && random.below(2) == 0 {
            continue;
        }
        let index = index(random, "index");
        let _ = write!(text, "[[pool]]\nkind = \"general\"\n{index}");
        if up_to != 0 {
            let _ = writeln!(text, "up_to = {up_to}");
        }
    }
    text
}

#[test]
fn every_accepted_description_serves() {
    let program = compile("stress.c", &[]);
    let place = directory("generated").join("heap.toml");
    let path = place.to_str().expect("a path of text");
    let mut random = Random(metes_random::Random::new(2026));
    let mut served = 0;
    while served < HEAPS {
        let text = document(&mut random);
        if metes_config::parse(&text, path).is_err() {
            continue;
        }
        std::fs::write(&place, &text).expect("the temporary directory is writable");
        let mut command = Command::new(&program);
        command.args(["1", "3000", "0"]);
        let done = run(preload(&mut command, path));
        assert_eq!(String::from_utf8_lossy(&done.stderr), "", "{text}");
        assert_eq!(done.stdout, b"sound\n", "{text}{}", done.status);
        served += 1;
    }
}
