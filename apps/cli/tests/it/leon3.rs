//! `metes leon3`: each action on good images, and what each end is called.

use metes_leon3::image::elf;

use crate::support::{Place, has_keys, status, stderr, stdout};

/// mov 3, %g1; a loop that puts %g1 plus '0' out at UART 0 until %g1 is 0; ta 0.
const COUNTS: [u32; 8] = [
    0x8210_2003,
    0x0520_0000, // sethi %hi(0x80000000), %g2
    0x8600_6030, // add %g1, '0', %g3
    0xc620_a100, // st %g3, [%g2 + 0x100]
    0x82a0_6001, // subcc %g1, 1, %g1
    0x12bf_fffd, // bne -3
    0x0100_0000,
    0x91d0_2000, // ta 0
];

/// As `COUNTS`, but ends by an instruction that is none.
fn ends_badly() -> Vec<u32> {
    let mut words = COUNTS.to_vec();
    words[7] = 0;
    words
}

fn put(place: &Place, name: &str, bytes: &[u8]) {
    std::fs::write(place.path(name), bytes).expect("the file can be written");
}

fn place(words: &[u32]) -> Place {
    let place = Place::new();
    put(&place, "image.elf", &elf(0x4000_0000, words));
    place
}

#[test]
fn an_image_runs_to_its_end() {
    let place = place(&COUNTS);
    let output = place.metes(&["leon3", "run", "image.elf"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert_eq!(stdout(&output), "321");
    assert!(
        stderr(&output).contains("halted; 18 instructions"),
        "{}",
        stderr(&output)
    );

    let (code, document) = place.json(&["leon3", "run", "image.elf"]);
    assert_eq!(code, 0, "{document}");
    has_keys(&document, &["uart", "instructions", "cycles", "end"]);
    assert_eq!(document["uart"].to_string(), "[\"321\"]");
    assert_eq!(
        (&document["end"], &document["instructions"]),
        (&"halt".into(), &18.into())
    );
    // Three stores of two cycles and a cycle each for the device; a taken trap is five.
    assert_eq!(document["cycles"], 18 + 3 * 2 + 5);
}

#[test]
fn a_limit_and_error_mode_are_told() {
    let place = place(&ends_badly());
    let (code, document) = place.json(&["leon3", "run", "--max-instructions", "5", "image.elf"]);
    assert_eq!((code, &document["end"]), (0, &"limit".into()), "{document}");
    assert_eq!(document["instructions"], 5);

    let (code, document) = place.json(&["leon3", "run", "image.elf"]);
    assert_eq!((code, &document["end"]), (1, &"error".into()), "{document}");
    let reason = document["reason"].as_str().expect("a reason");
    assert!(
        reason.contains("0x4000001c") && reason.contains("trap 0x02"),
        "{reason}"
    );
    assert_eq!(document["registers"]["pc"], "4000001c");
    let output = place.metes(&["leon3", "run", "image.elf"]);
    assert_eq!(status(&output), 1);
    assert!(
        stderr(&output).contains("no instruction"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_trace_has_a_line_each_instruction() {
    let place = place(&COUNTS);
    let output = place.metes(&["leon3", "trace", "image.elf"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let text = stdout(&output);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 18, "{text}");
    assert_eq!(lines[0], "0 40000000 82102003");
    assert_eq!(lines[17], "0 4000001c 91d02000");
}

#[test]
fn what_no_machine_can_run_is_refused() {
    let place = place(&COUNTS);
    let mut file = elf(0x4000_0000, &COUNTS);
    file[4] = 2;
    put(&place, "wide.elf", &file);
    file[4] = 1;
    file[19] = 40;
    put(&place, "arm.elf", &file);
    put(&place, "low.elf", &elf(0x1000_0000, &COUNTS));
    put(&place, "cut.elf", &file[..60]);
    put(&place, "empty.elf", b"");
    for (arguments, says) in [
        (&["wide.elf"][..], "64 bits"),
        (&["arm.elf"], "for machine 40"),
        (&["low.elf"], "outside memory"),
        (&["cut.elf"], "no ELF file"),
        (&["empty.elf"], "no ELF file"),
        (&["missing.elf"], "cannot read"),
        (&["image.elf", "--cores", "0"], "1 to 64"),
        (&["image.elf", "--cores", "65"], "1 to 64"),
        (&["image.elf", "--windows", "1"], "2 to 32"),
        (&["image.elf", "--memory", "5000"], "4 KiB"),
        (&["image.elf", "--memory", "2GiB"], "1 GiB"),
        (&["image.elf", "--quantum", "0"], "at least 1"),
        (&["image.elf", "--uarts", "5"], "1 to 4"),
        (&["image.elf", "--frequency", "0"], "at least 1 Hz"),
        (&["image.elf", "--timer-interrupt", "15"], "1 to 14"),
    ] {
        for verb in ["run", "trace"] {
            let output = place.metes(&[&["leon3", verb], arguments].concat());
            assert_eq!(status(&output), 2, "{arguments:?}");
            assert!(
                stderr(&output).contains(says),
                "{arguments:?}: {}",
                stderr(&output)
            );
            assert!(stdout(&output).is_empty(), "{arguments:?}");
        }
    }
}
