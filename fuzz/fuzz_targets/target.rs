//! Any bytes as `target` of `metes_attack`: accepted or refused, and as it should be if accepted.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    metes_attack::parser("target").map(|parser| (parser.accepts)(data));
});
