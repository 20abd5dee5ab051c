//! Any bytes as `call_stacks` of `metes_attack`: accepted or refused, and as it should be if accepted.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    metes_attack::parser("call_stacks").map(|parser| (parser.accepts)(data));
});
