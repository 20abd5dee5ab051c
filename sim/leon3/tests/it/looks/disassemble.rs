//! The disassembler beside binutils' `objdump`.

use std::io::Write as _;
use std::process::Command;

use metes_leon3::decode::{Kind, decode};
use metes_leon3::tools::disassemble;
use metes_random::Random;

/// What objdump makes of `words` at address 0; nothing without it.
fn objdump(words: &[u32]) -> Vec<String> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    file.write_all(&bytes).unwrap();
    let said = Command::new("sparc64-linux-gnu-objdump")
        .args(["-D", "-z", "-b", "binary", "-m", "sparc:sparclite", "-EB"])
        .arg(file.path())
        .output();
    let said = said.expect("sparc64-linux-gnu-objdump is missing; run scripts/setup");
    let said = String::from_utf8(said.stdout).unwrap();
    let lines = said.lines().filter_map(|line| line.splitn(3, '\t').nth(2));
    lines.map(str::to_owned).collect()
}

/// Without what only the eye wants: spaces, and the comments of objdump.
fn normal(text: &str) -> String {
    let text = text.split('!').next().unwrap();
    text.chars()
        .filter(|character| !character.is_whitespace())
        .collect()
}

#[test]
fn it_says_what_objdump_says() {
    let mut random = Random::new(7);
    let mut words: Vec<u32> = Vec::new();
    for index in 0..60_000u32 {
        let mut word = random.below(1 << 32) as u32;
        // Arithmetic, memory and floating point have most forms; small fields meet aliases.
        match index % 6 {
            0 => {}
            1 => word = 2 << 30 | word & 0x3fff_ffff,
            2 => word = 3 << 30 | word & 0x3fff_ffff,
            3 => word = 2 << 30 | word & 0x3fff_ffff & !0x3e07_c01f,
            4 => word = 2 << 30 | 0x34 << 19 | word & 0x3e07_ffff & !0x2000,
            _ => word = word & 0xc1ff_e00f | 1 << 30,
        }
        words.push(word);
    }
    let said = objdump(&words);
    assert_eq!(said.len(), words.len());
    let mut compared = 0;
    let mut different = Vec::new();
    for (index, (&word, said)) in words.iter().zip(&said).enumerate() {
        let own = disassemble(word, 4 * index as u32);
        if skipped(word, said) || said.starts_with("unknown") || said.starts_with(".word") {
            continue;
        }
        compared += 1;
        if normal(&own) != normal(said) {
            different.push(format!(
                "{word:08x} {:?}: {own} | {said}",
                decode(word).kind
            ));
        }
    }
    assert!(compared > words.len() / 4, "{compared}");
    let count = different.len();
    different.sort_by_key(|line| line[9..].to_owned());
    different.dedup_by_key(|line| line[9..18].to_owned());
    assert!(
        different.is_empty(),
        "{count} of {}:\n{}",
        words.len(),
        different.join("\n")
    );
}

/// What one of both does not know: LEON3 has no quadruple precision, SPARC V9 has names for spaces and more registers.
fn skipped(word: u32, said: &str) -> bool {
    let it = decode(word);
    let name = said.split_whitespace().next().unwrap_or_default();
    let quad = name.starts_with('f') && name.replace("sqrt", "").contains('q');
    let unknown = matches!(
        it.kind,
        Kind::Illegal | Kind::Coprocessor | Kind::Casa | Kind::Umac | Kind::Smac
    );
    // objdump gives the constant a sign.
    let unimp = it.kind == Kind::Unimp && word >> 21 & 1 == 1;
    unknown || quad || odd_double(word) || unimp || said.contains("#ASI")
}

/// Whether a register of a pair is odd, which SPARC V9 reads as one above 31.
fn odd_double(word: u32) -> bool {
    let it = decode(word);
    let float = matches!(it.kind, Kind::FloatOperate | Kind::FloatCompare);
    float
        && (it.rd | it.rs1 | it.rs2) & 1 == 1
        && disassemble(word, 0)
            .split(' ')
            .next()
            .unwrap()
            .contains('d')
        || matches!(it.kind, Kind::Lddf | Kind::Stdf) && it.rd & 1 == 1
}
