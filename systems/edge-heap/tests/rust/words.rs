//! Counts words of its input in a table that grows, with vectors that are resized, strings that come and go, and a
//! block of more than usual alignment. Prints what it finds, so that two allocators can be compared by the output.

use std::collections::HashMap;
use std::io::Read;

#[repr(align(64))]
struct Line([u8; 64]);

fn main() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).expect("text");
    let mut places: HashMap<String, Vec<u32>> = HashMap::new();
    let mut lines: Vec<Box<Line>> = Vec::new();
    for (number, word) in text.split_whitespace().enumerate() {
        places.entry(word.to_owned()).or_default().push(number as u32);
        if number % 7 == 0 {
            places.remove(&word.to_uppercase());
        }
        if number % 50 == 0 {
            lines.push(Box::new(Line([number as u8; 64])));
        }
        if number % 300 == 0 {
            lines.clear();
        }
    }
    let mut most: Vec<(usize, &str)> = places.iter().map(|(word, at)| (at.len(), word.as_str())).collect();
    most.sort_unstable();
    let sum: u64 = lines.iter().map(|line| u64::from(line.0[63])).sum();
    let aligned = lines.iter().all(|line| std::ptr::from_ref(&**line).addr() % 64 == 0);
    println!("{} words, {:?} most often, {sum} {aligned}", most.len(), most.last());
    if std::env::args().any(|argument| argument == "fail") {
        std::process::exit(3);
    }
}
