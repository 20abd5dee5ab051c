//! Any text as heap.toml: an error that names the place, or a valid heap that
//! survives being written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(config) = metes_config::parse(text, "heap.toml") {
        let written = config.to_toml();
        let again = metes_config::parse(&written, "heap.toml").expect("what we write, we read");
        assert_eq!(config.heap, again.heap, "{written}");
    }
});
