//! The recorder for targets, as files: one C file and its header, and ports that a target may take.
//!
//! *Invariant:* each file is complete with `metes_record.h` and `metes_record.c` beside it.

/// Name and text of each file.
pub const FILES: [(&str, &str); 8] = [
    ("metes_record.h", include_str!("../recorder/metes_record.h")),
    ("metes_record.c", include_str!("../recorder/metes_record.c")),
    (
        "metes_record_libc.c",
        include_str!("../recorder/metes_record_libc.c"),
    ),
    (
        "metes_record_newlib.options",
        include_str!("../recorder/metes_record_newlib.options"),
    ),
    (
        "metes_record_picolibc.options",
        include_str!("../recorder/metes_record_picolibc.options"),
    ),
    (
        "metes_record_semihosting.c",
        include_str!("../recorder/metes_record_semihosting.c"),
    ),
    (
        "metes_record_freertos.h",
        include_str!("../recorder/metes_record_freertos.h"),
    ),
    (
        "metes_record_zephyr.c",
        include_str!("../recorder/metes_record_zephyr.c"),
    ),
];
