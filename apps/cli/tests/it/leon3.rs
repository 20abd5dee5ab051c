//! `metes leon3`: each action on good images, and what each end is called.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

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

/// A loop of 100 000 turns that stores in each, which is long enough to be translated.
#[test]
fn both_engines_do_the_same() {
    let place = place(&[
        0x0300_0061, // sethi %hi(0x18400), %g1
        0x8210_62a0, // or %g1, 0x2a0, %g1
        0x0510_0010, // sethi %hi(0x40004000), %g2
        0x82a0_6001, // subcc %g1, 1, %g1
        0x12bf_ffff, // bne -1
        0xc220_8000, // st %g1, [%g2]
        0x91d0_2000, // ta 0
    ]);
    let run = |engine| place.json(&["leon3", "run", "--engine", engine, "image.elf"]);
    let (translated, interpreted) = (run("translate"), run("interpret"));
    assert_eq!(translated, interpreted);
    assert_eq!(translated.0, 0, "{}", translated.1);
    assert_eq!(translated.1["instructions"], 300_004);
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
        (&["image.elf", "--uarts", "6"], "1 to 5"),
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

/// Prints what arrives until a full stop has.
const ECHO: [u32; 11] = [
    0x0320_0000, // sethi %hi(0x80000000), %g1
    0xc400_6104, // ld [%g1 + 0x104], %g2
    0x8088_a001, // andcc %g2, 1, %g0
    0x02bf_fffe, // be -2
    0x0100_0000,
    0xc600_6100, // ld [%g1 + 0x100], %g3
    0xc620_6100, // st %g3, [%g1 + 0x100]
    0x80a0_e02e, // cmp %g3, '.'
    0x12bf_fff9, // bne -7
    0x0100_0000,
    0x91d0_2000, // ta 0
];

#[test]
fn a_serial_line_takes_a_file() {
    let place = place(&ECHO);
    let text = "what arrives, byte by byte, is printed.";
    put(&place, "input", format!("{text} This is not.").as_bytes());
    let run = ["leon3", "run", "image.elf", "--uart-input", "input"];
    let output = place.metes(&run);
    assert_eq!(
        (status(&output), &*stdout(&output)),
        (0, text),
        "{}",
        stderr(&output)
    );
    // A byte is ten bits of so many cycles.
    let cycles = |rate: &str| {
        let (_, document) = place.json(&[&run[..], &["--uart-rate", rate]].concat());
        assert_eq!(document["end"], "halt", "{document}");
        document["cycles"].as_u64().expect("a number")
    };
    let least = text.len() as u64 * 10 * 40_000_000;
    for rate in [9600, 115_200] {
        let took = cycles(&rate.to_string());
        assert!((least / rate..least / rate + 100).contains(&took), "{took}");
    }
}

#[test]
fn a_run_stops_where_it_is_told_and_goes_on_from_there() {
    let place = place(&COUNTS);
    let (code, whole) = place.json(&["leon3", "run", "image.elf"]);
    assert_eq!(code, 0);

    // The third time that it stores, 1 is left.
    let stop = ["leon3", "run", "image.elf", "--stop", "w:0x80000100=0x31"];
    let output = place.metes(&[&stop[..], &["--snapshot", "there", "--watch", "c:%g1"]].concat());
    let said = stderr(&output);
    assert_eq!((status(&output), &*stdout(&output)), (0, "321"), "{said}");
    assert!(said.contains("changes the register: 0x3 -> 0x2"), "{said}");
    assert!(said.contains("writes 4 bytes at 0x80000100"), "{said}");
    assert!(said.contains("stopped before core 0 executes"), "{said}");

    let (code, rest) = place.json(&["leon3", "run", "image.elf", "--resume", "there"]);
    assert_eq!((code, &rest["end"]), (0, &"halt".into()), "{rest}");
    for key in ["instructions", "cycles", "cores"] {
        assert_eq!(rest[key], whole[key], "{key}");
    }
    assert_eq!(rest["uart"].to_string(), "[\"\"]");
    let (code, document) = place.json(&stop);
    assert_eq!((code, &document["end"]), (0, &"stop".into()), "{document}");
    assert_eq!(document["hits_in_all"], 1);

    // A snapshot replaces a snapshot, and nothing else.
    put(&place, "mine", b"my own words");
    let snapshot = |name| place.metes(&["leon3", "run", "image.elf", "--snapshot", name]);
    assert_eq!(status(&snapshot("there")), 0);
    assert_eq!(status(&snapshot("mine")), 2);
}

#[test]
fn snapshots_that_are_none_are_refused() {
    let place = place(&COUNTS);
    let output = place.metes(&["leon3", "run", "image.elf", "--snapshot", "good"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let good = std::fs::read(place.path("good")).expect("it was written");
    put(&place, "cut", &good[..good.len() - 1]);
    let mut bad = good.clone();
    bad[100] ^= 1;
    put(&place, "bad", &bad);
    let mut other = good.clone();
    other[11] ^= 0x40;
    put(&place, "other", &other);
    for (name, says) in [
        ("cut", "ends too early"),
        ("bad", "damaged"),
        ("other", "format"),
        ("image.elf", "no snapshot"),
        ("missing", "cannot read"),
    ] {
        let output = place.metes(&["leon3", "run", "image.elf", "--resume", name]);
        let said = stderr(&output);
        assert_eq!(status(&output), 2, "{name}: {said}");
        assert!(said.contains(says), "{name}: {said}");
    }
}

/// The image `heap`, whose functions have names.
fn heap() -> Place {
    let place = Place::new();
    let build = concat!(env!("CARGO_MANIFEST_DIR"), "/../../sim/leon3/images/build");
    let built = Command::new(build).arg(place.path("")).arg("heap").status();
    assert!(built.expect("a shell").success(), "scripts/setup");
    place
}

#[test]
fn functions_and_stacks_of_an_image_are_told() {
    let place = heap();
    let image = ["--max-instructions", "2000000", "heap.elf"];
    let (code, profile) = place.json(&[&["leon3", "profile"], &image[..]].concat());
    assert_eq!(code, 0, "{profile}");
    let rows = profile["cores"][0].as_array().expect("rows");
    let sum = |key: &str| -> u64 { rows.iter().filter_map(|row| row[key].as_u64()).sum() };
    assert_eq!(profile["instructions"], sum("own_instructions"));
    assert_eq!(profile["cycles"], sum("own_cycles"));
    let folded = [&["leon3", "profile", "--folded"], &image[..]].concat();
    let folded = place.metes(&folded);
    assert_eq!(status(&folded), 0);
    let text = stdout(&folded);
    let weights = text.lines().filter_map(|line| line.rsplit_once(' '));
    let weights = weights.map(|(_, weight)| weight.parse::<u64>().expect("a number"));
    assert_eq!(profile["cycles"], weights.sum::<u64>());
    assert!(text.contains("\nboot;main;malloc "), "{text}");
    let table = place.metes(&[&["leon3", "profile"], &image[..]].concat());
    assert!(stdout(&table).contains("malloc"), "{}", stdout(&table));

    let (code, stack) = place.json(&[&["leon3", "stack"], &image[..]].concat());
    assert_eq!(code, 0, "{stack}");
    let deepest = &stack["functions"][0]["bytes"];
    let stacks = stack["stacks"].as_array().expect("stacks");
    assert!(stacks.iter().any(|one| &one["bytes"] == deepest), "{stack}");
    let table = place.metes(&[&["leon3", "stack"], &image[..]].concat());
    assert!(stdout(&table).contains("boot > main"), "{}", stdout(&table));
}

#[test]
fn what_was_executed_is_a_tracefile() {
    let place = heap();
    let output = place.metes(&["leon3", "cover", "heap.elf"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let tracefile = stdout(&output);
    assert!(
        tracefile.starts_with("TN:\nSF:heap.elf\nFN:"),
        "{tracefile}"
    );
    assert!(
        stderr(&output).contains("without -g"),
        "{}",
        stderr(&output)
    );
    let (code, document) = place.json(&["leon3", "cover", "heap.elf"]);
    assert_eq!((code, &document["tracefile"]), (0, &tracefile.into()));
    let hit = document["functions"]["executed"]
        .as_u64()
        .expect("a number");
    assert!(
        hit > 0 && document["functions"]["all"].as_u64() > Some(hit),
        "{document}"
    );
}

/// mov 3, %o1; as long as %o1 is not 0, one less; back.
const LOOP: [u32; 6] = [
    0x9210_2003,
    0x92a2_6001,
    0x12bf_ffff,
    0x0100_0000,
    0x81c3_e008,
    0x0100_0000,
];

#[test]
fn a_function_is_bounded_if_its_loops_are() {
    let place = place(&LOOP);
    let bound = ["leon3", "bound", "image.elf", "0x40000000"];
    let output = place.metes(&bound);
    assert_eq!(status(&output), 2);
    assert!(stderr(&output).contains("--loop"), "{}", stderr(&output));
    let with = [&bound[..], &["--loop", "0x40000004=3"]].concat();
    let (code, document) = place.json(&with);
    assert_eq!(code, 0, "{document}");
    assert_eq!(document["untrapped"]["instructions"], 1 + 3 * 3 + 2);
    // `retl` takes three cycles.
    assert_eq!(document["untrapped"]["cycles"], 1 + 3 * 3 + 4);
    let output = place.metes(&with);
    assert!(stdout(&output).contains("12"), "{}", stdout(&output));
}

#[test]
fn gdb_runs_an_image() {
    let place = place(&COUNTS);
    let mut metes = place
        .command(&["leon3", "gdb", "image.elf", "--listen", "127.0.0.1:0"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("metes runs");
    let mut line = String::new();
    let mut said = BufReader::new(metes.stderr.take().expect("it is piped"));
    said.read_line(&mut line).expect("it waits");
    let address = line.trim().rsplit(' ').next().expect("an address");
    let target = format!("target remote {address}");
    let commands = [
        "set architecture sparc",
        "set endian big",
        &target,
        "break *0x40000010",
        "continue",
        "info registers g1",
        "delete",
        "continue",
    ];
    let mut gdb = Command::new("gdb-multiarch");
    gdb.args(["-nx", "-batch", "-iex", "set debuginfod enabled off"]);
    for command in commands {
        gdb.args(["-ex", command]);
    }
    let gdb = gdb.output().expect("gdb-multiarch runs; see scripts/setup");
    let told = stdout(&gdb);
    assert!(
        told.contains("g1             0x3"),
        "{told}\n{}",
        stderr(&gdb)
    );
    assert!(told.contains("exited normally"), "{told}");
    let ended = metes.wait_with_output().expect("it ends");
    assert_eq!((status(&ended), &*stdout(&ended)), (0, "321"));
}
