//! Any bytes as a set of functions: accepted or refused; a small one is decided, and its certificate checked.
#![no_main]

use libfuzzer_sys::fuzz_target;
use metes_admission::{Decision, Flaw, Set, admit};

fuzz_target!(|data: &[u8]| {
    let Ok(set) = Set::parse(&String::from_utf8_lossy(data)) else {
        return;
    };
    if set.functions.len() > 4 || set.host.cores > 4 {
        return;
    }
    if let Decision::Admitted(certificate) = admit(&set) {
        // A walk over millions of deadlines is no fault, but takes a second.
        if certificate.cores.iter().all(|core| core.horizon < 1 << 20) {
            let checked = certificate.check(&set);
            assert!(matches!(checked, Ok(()) | Err(Flaw::TooLong(_))), "{checked:?}");
        }
    }
});
