//! A function as its author writes it: counts the words of the request, and answers with the most frequent.
//!
//! *Invariant:* it uses the standard library, its heap and its hash map, as programs do.

use std::collections::HashMap;
use std::io::{Read, Write};

fn main() {
    let mut text = String::new();
    if std::io::stdin().read_to_string(&mut text).is_err() {
        eprintln!("the request is no text");
        std::process::exit(3);
    }
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for word in text.split_whitespace() {
        *counts.entry(word).or_default() += 1;
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by(|left, right| right.1.cmp(&left.1).then(left.0.cmp(right.0)));
    let mut out = std::io::stdout().lock();
    for (word, count) in counts.iter().take(3) {
        writeln!(out, "{word} {count}").expect("stdout is there");
    }
    assert!(!counts.is_empty(), "no words");
}
