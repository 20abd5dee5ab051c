//! Any bytes as a CSV trace: an error that names the line, or a trace that comes
//! back the same after export and import.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use metes_trace::{export_csv, import_csv};

fuzz_target!(|data: &[u8]| {
    let name = Path::new("fuzz.csv");
    let Ok(trace) = import_csv(data, name) else { return };
    let mut text = Vec::new();
    export_csv(&trace, &mut text).expect("memory takes every byte");
    let again = import_csv(text.as_slice(), name).expect("what we export, we import");
    assert_eq!((trace.ops(), trace.sizes()), (again.ops(), again.sizes()));
});
