//! Any bytes on the telecommand line of the DUSTER unit, whole telecommands among them, with time and faults in between: it
//! answers, says nothing that is no telemetry, and keeps no memory.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    metes_duster_application::testing::campaign::feed(data);
});
