//! What many runs are read from: files of commands, and results that are compared.
//!
//! *Invariant:* as of all parsers.

use metes_tune::regress::{Facts, Thresholds, compare};

use super::{seeds, text};

/// Words are those that quoting them again gives back.
pub(super) fn commands(bytes: &[u8]) -> bool {
    let Ok(found) = metes_tune::runs::commands(&text(bytes)) else {
        return false;
    };
    for command in &found {
        let words = command.words.iter().filter_map(|word| word.to_str());
        let quoted: Vec<String> = words
            .map(|word| format!("'{}'", word.replace('\'', "'\\''")))
            .collect();
        let again = metes_tune::runs::commands(&quoted.join(" ")).expect("quoted words are words");
        assert_eq!(again.len(), 1);
        assert_eq!(again[0].words, command.words);
    }
    true
}

pub(super) fn command_seeds() -> Vec<Vec<u8>> {
    seeds(&[
        "sqlite3 :memory: 'select 1;'\n# remark\nsort -n < numbers.txt\n",
        "a \"b \\\" c\" d\\ e '' <f",
        "cat < a | b\n",
    ])
}

/// A result beside itself differs in nothing, whatever it says.
pub(super) fn compared(bytes: &[u8]) -> bool {
    let Ok(facts) = Facts::of_document(&text(bytes)) else {
        return false;
    };
    let same = compare(("a", &facts), ("b", &facts), &Thresholds::default());
    assert_eq!(same.differences().count(), 0);
    let other = Facts::default();
    compare(("a", &other), ("b", &facts), &Thresholds::default());
    compare(("a", &facts), ("b", &other), &Thresholds::default());
    same.page().expect("a comparison is JSON");
    true
}

pub(super) fn compared_seeds() -> Vec<Vec<u8>> {
    seeds(&[
        r#"{"version":1,"trace":{"events":9,"allocations":5,"frees":4,"resizes":0,"peak_live":99,"peak_blocks":3},"profile":{"sizes":[{"size":24,"allocations":5,"frees":4,"peak_blocks":3}],"live":[[0,24],[8,24]],"bursts":{"longest_allocations":3}},"chosen":{"spec":"tlsf","predicted":{"footprint":8192}}}"#,
        r#"{"kind":"runs","heap":"tlsf","runs":[{"name":"a","peak_live":9,"footprint":4096},{"name":"a","peak_live":18446744073709551615,"footprint":null}]}"#,
        r#"{"heap":"tlsf","predicted":{"peak_live":1,"footprint":2}}"#,
        r#"{"heap":"tlsf","pareto":[{"heap":"tlsf","footprint":4096,"cycles_mean":1.5}]}"#,
    ])
}
