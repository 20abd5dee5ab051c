//! Bad input: exit status 2, one clear message, and nothing lost.

use std::os::unix::fs::PermissionsExt;

use crate::support::{Place, recorded, refused, status, stderr};

#[test]
fn programs_that_cannot_be_run() {
    let place = Place::new();
    for verb in ["tune", "record"] {
        refused(
            &place.metes(&[verb, "--", "no-such-program"]),
            &["no-such-program", "not found"],
        );
        refused(
            &place.metes(&[verb, "--", "/etc/passwd"]),
            &["/etc/passwd", "chmod +x"],
        );
        refused(&place.metes(&[verb, "--"]), &["CMD"]);
    }
    refused(
        &place.metes(&["run", "--heap", "tlsf", "--", "no-such-program"]),
        &["not found"],
    );
    assert!(
        !place.path("metes-out").exists(),
        "nothing is left of the attempt"
    );
}

#[test]
fn programs_that_cannot_be_recorded() {
    let place = Place::new();
    place.compile("static", "int main(void) { return 0; }", &["-static"]);
    for verb in ["tune", "record"] {
        let wanted = ["statically linked", "no library can be loaded before it"];
        refused(&place.metes(&[verb, "--", "./static"]), &wanted);
    }
    let program = place.compile("privileged", "int main(void) { return 0; }", &[]);
    let name = std::ffi::CString::new(program.to_string_lossy().into_owned()).expect("a name");
    // SAFETY: a C string; 65534 is the user nobody.
    if unsafe { libc::chown(name.as_ptr(), 65534, 65534) } == 0 {
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o4755))
            .expect("rights of an own file");
        let wanted = ["rights of another user", "setuid"];
        refused(&place.metes(&["record", "--", "./privileged"]), &wanted);
    }
}

#[test]
fn a_program_that_dies_leaves_its_trace() {
    let place = Place::new();
    let source =
        "#include <stdlib.h>\nint main(void) { free(malloc(50)); if (malloc(70)) abort(); }";
    place.compile("dies", source, &["-O0"]);
    let output = place.metes(&["record", "-o", "t.trace.parquet", "--", "./dies"]);
    refused(&output, &["./dies", "SIGABRT (6)", "t.trace.parquet"]);
    let (_, profile) = place.json(&["profile", "t.trace.parquet"]);
    assert_eq!(
        (profile["allocations"].as_u64(), profile["frees"].as_u64()),
        (Some(2), Some(1))
    );
    let output = place.metes(&["tune", "-o", "out", "--", "./dies"]);
    refused(&output, &["SIGABRT (6)", "out/program.trace.parquet"]);
    assert!(place.path("out/program.trace.parquet").exists());
}

/// That a script fits is tested with a framework, in `python/tests_torch`.
#[test]
fn a_script_that_cannot_run_on_a_device_is_refused() {
    let place = Place::new();
    let fit = |arguments: &[&str]| place.metes(&[&["device", "fit"], arguments].concat());
    let output = fit(&["--memory", "1GiB", "--python", "./no-python", "--", "x.py"]);
    refused(&output, &["./no-python", "--python"]);
    // A Python without the package, and one that ends on its own: the command has become it.
    place.write("python", "#!/bin/sh\necho 'no such module' >&2\nexit 1\n");
    let runnable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.path("python"), runnable).expect("it is ours");
    let output = fit(&["--memory", "1GiB", "--python", "./python", "--", "x.py"]);
    refused(&output, &["no such module", "pip install"]);
    place.write("python", "#!/bin/sh\n[ \"$1\" = -c ] && exit 0\nexit 9\n");
    let output = fit(&["--memory", "1GiB", "--python", "./python", "--", "x.py"]);
    assert_eq!(status(&output), 9, "{}", stderr(&output));
    // What it is asked is what it was given, in bytes.
    place.write(
        "python",
        "#!/bin/sh\n[ \"$1\" = -c ] && exit 0\necho \"$@\" > asked\nexit 1\n",
    );
    let output = fit(&[
        "--memory",
        "1GiB",
        "--smallest",
        "1MiB",
        "--reads",
        "0*19,1",
        "--most-reads",
        "50",
        "--report",
        "fit.html",
        "--python",
        "./python",
        "--",
        "x.py",
        "--a",
    ]);
    assert_eq!(status(&output), 1, "{}", stderr(&output));
    assert_eq!(
        place.read("asked").trim(),
        "-m metes.dry --memory 1073741824 --smallest 1048576 --report fit.html --reads 0*19,1 --most-reads 50 -- x.py --a"
    );
    refused(&fit(&["--memory", "0", "--", "x.py"]), &["--memory"]);
    refused(
        &fit(&["--memory", "1GiB", "--", "no-such-script.py"]),
        &["no-such-script.py", "check the path"],
    );
}

#[test]
fn a_file_that_is_not_there_has_a_remedy_in_every_verb() {
    let place = recorded();
    for arguments in [
        vec!["profile", "no"],
        vec!["replay", "no", "--heap", "tlsf"],
        vec!["replay", "t.trace.parquet", "--heap", "no.toml"],
        vec![
            "replay",
            "t.trace.parquet",
            "--heap",
            "tlsf",
            "--levels",
            "no.toml",
        ],
        vec!["explore", "no"],
        vec!["explore", "no", "--space", "paper"],
        vec!["explore", "t.trace.parquet", "--space", "no.toml"],
        vec!["evaluate", "no", "--space", "paper"],
        vec!["merge", "no"],
        vec![
            "bounds",
            "--heap",
            "no.toml",
            "--live",
            "1MiB",
            "--max-block",
            "1k",
        ],
        vec!["emit", "--heap", "no.toml", "-o", "out"],
        vec!["run", "--heap", "no.toml", "--", "true"],
        vec!["report", "no"],
        vec!["serve", "no"],
        vec!["trace", "export", "no"],
        vec!["trace", "import", "no", "-o", "a.trace.parquet"],
    ] {
        let output = place.metes(&arguments);
        let text = stderr(&output);
        assert_eq!(status(&output), 2, "{arguments:?}: {text}");
        let remedy = ["; check the path", "give a directory"];
        assert!(
            remedy.iter().any(|remedy| text.contains(remedy)),
            "{arguments:?}: {text}"
        );
    }
}

#[test]
fn traces_that_are_none() {
    let place = recorded();
    let whole = std::fs::read(place.path("t.trace.parquet")).expect("a trace");
    std::fs::write(place.path("cut.trace.parquet"), &whole[..whole.len() / 2]).expect("written");
    place.write("text", "this is no trace\n");
    for verb in [
        vec!["profile"],
        vec!["replay", "--heap", "tlsf"],
        vec!["explore"],
    ] {
        for (file, wanted) in [
            ("cut.trace.parquet", "cut off"),
            ("text", "text"),
            ("no", "no"),
        ] {
            let mut arguments = verb.clone();
            arguments.push(file);
            refused(&place.metes(&arguments), &[wanted]);
        }
    }
    place.write("bad.csv", "op,block,size\na,1,100\nf,2\n");
    let output = place.metes(&["trace", "import", "bad.csv", "-o", "bad.trace.parquet"]);
    refused(&output, &["bad.csv, line 3", "block 2", "never allocated"]);
    assert!(!place.path("bad.trace.parquet").exists());
    place.write(
        "log.csv",
        "Thread,Time,Action,Pointer,Size,Stream\n1,2,grow,0,1,0\n",
    );
    let output = place.metes(&["trace", "import", "log.csv", "-o", "bad.trace.parquet"]);
    refused(&output, &["log.csv, line 2", "grow", "allocate"]);
    let output = place.metes(&[
        "trace",
        "import",
        "--format",
        "pytorch",
        "log.csv",
        "-o",
        "bad.trace.parquet",
    ]);
    refused(&output, &["log.csv, byte 0", "no pickle"]);
    // An import that fails leaves an earlier trace as it was.
    let output = place.metes(&["trace", "import", "bad.csv", "-o", "t.trace.parquet"]);
    refused(&output, &["line 3"]);
    assert_eq!(
        std::fs::read(place.path("t.trace.parquet")).expect("a trace"),
        whole
    );
}

#[test]
fn heaps_that_are_none() {
    let place = recorded();
    let replay = |heap: &str| place.metes(&["replay", "t.trace.parquet", "--heap", heap]);
    refused(
        &replay("tslf"),
        &["no heap named `tslf`", "did you mean `tlsf`?"],
    );
    refused(
        &replay("tlsf:second_level=24"),
        &["second_level", "power of two"],
    );
    refused(&replay("no.toml"), &["no.toml", "cannot read"]);
    place.write("bad.toml", "[heap]\nname = \"tlsf\"\nsecond_levle = 8\n");
    let wanted = [
        "bad.toml:3:1",
        "`second_levle`",
        "did you mean `second_level`?",
    ];
    refused(&replay("bad.toml"), &wanted);
    refused(
        &place.metes(&["run", "--heap", "bad.toml", "--", "ls"]),
        &wanted,
    );
    refused(
        &place.metes(&["emit", "--heap", "bad.toml", "-o", "out"]),
        &wanted,
    );
    assert!(!place.path("out").exists());
    let ledger = "tlsf:store=ledger";
    refused(
        &place.metes(&["run", "--heap", ledger, "--", "ls"]),
        &["malloc", "`store`"],
    );
    refused(
        &place.metes(&["emit", "--heap", ledger, "-o", "out"]),
        &["boundary tags", "`store`"],
    );
}

#[test]
fn sizes_that_are_none() {
    let place = recorded();
    let arena = |size: &str| {
        place.metes(&[
            "replay",
            "t.trace.parquet",
            "--heap",
            "tlsf",
            "--arena",
            size,
        ])
    };
    refused(&arena("0"), &["zero", "at least 1"]);
    refused(&arena("-5"), &["-5"]);
    refused(&arena("12parsecs"), &["4096", "64 KiB"]);
    refused(&arena("99999999999999999999"), &["machine word"]);
    refused(&arena("7EiB"), &["beyond", "give less"]);
    let bounds = |live: &str, largest: &str| {
        place.metes(&[
            "bounds",
            "--heap",
            "tlsf",
            "--live",
            live,
            "--max-block",
            largest,
        ])
    };
    refused(&bounds("0", "1"), &["zero"]);
    refused(&bounds("16", "64"), &["below the largest block"]);
    refused(&bounds("15EiB", "2EiB"), &["too large"]);
    refused(
        &place.metes(&["bounds"]),
        &["--heap", "--live", "--max-block"],
    );
    refused(
        &place.metes(&["bounds", "--tables", "--heap", "tlsf"]),
        &["--tables"],
    );
    let tiny = arena("1");
    assert_eq!(status(&tiny), 1);
    assert!(
        stderr(&tiny).contains("arena too small by"),
        "{}",
        stderr(&tiny)
    );
}

#[test]
fn a_request_that_no_memory_can_serve() {
    let place = Place::new();
    place.write("big.csv", "a,1,0\na,2,9000000000000000000\nf,1,0\n");
    place.metes(&["trace", "import", "big.csv", "-o", "big.trace.parquet"]);
    let output = place.metes(&["replay", "big.trace.parquet", "--heap", "tlsf"]);
    assert_eq!(status(&output), 1);
    assert!(
        stderr(&output).contains("1 request failed"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn places_that_cannot_be_written() {
    let place = recorded();
    place.write("file", "");
    let nowhere = "/proc/metes/t.trace.parquet";
    refused(
        &place.metes(&["record", "-o", nowhere, "--", "./steady"]),
        &[nowhere],
    );
    refused(
        &place.metes(&["tune", "-o", "file", "--", "./steady"]),
        &["file"],
    );
    refused(
        &place.metes(&["explore", "t.trace.parquet", "-o", "file"]),
        &["file"],
    );
    refused(
        &place.metes(&["emit", "--heap", "tlsf", "-o", "file"]),
        &["file"],
    );
    let export = place.metes(&["trace", "export", "t.trace.parquet", "-o", nowhere]);
    refused(&export, &[nowhere]);
    refused(&place.metes(&["report", "file"]), &["report.json"]);
    place.write("report.json", "{}");
    refused(
        &place.metes(&["report", "."]),
        &["report.json", "run `metes"],
    );
}

#[test]
fn a_compiler_that_is_missing_is_told_before_any_work() {
    let place = Place::new();
    place.compile("steady", crate::support::STEADY, &[]);
    let mut command = place.command(&["tune", "--budget", "0.5", "-o", "out", "--", "./steady"]);
    let output = command
        .env("CC", "no-such-compiler")
        .output()
        .expect("metes runs");
    let said = stderr(&output);
    assert_eq!(status(&output), 2, "{said}");
    assert!(
        said.contains("no-such-compiler") && said.contains("apt install gcc"),
        "{said}"
    );
    assert!(!said.contains("sum "), "the program was not run");
    assert!(!place.path("out").exists());
}

#[test]
fn names_that_do_not_exist() {
    let place = Place::new();
    refused(
        &place.metes(&["reproduce", "cold-fusion"]),
        &["cold-fusion", "small-heaps"],
    );
    refused(&place.metes(&["tnue"]), &["tnue"]);
    place.compile("steady", crate::support::STEADY, &[]);
    let output = place.metes(&["tune", "--process", "nobody", "-o", "out", "--", "./steady"]);
    let said = stderr(&output);
    assert_eq!(status(&output), 2, "{said}");
    assert!(said.contains("0 is steady"), "{said}");
}

#[test]
fn heaps_of_threads_are_for_programs_that_run() {
    let place = Place::new();
    let run = |heap| place.metes(&["run", "--heap", heap, "--", "true"]);
    refused(
        &run("per-thread:threads=0"),
        &["`threads`", "from 1 to 1024"],
    );
    refused(&run("per-thread:heaps=2"), &["no key `heaps`", "threads"]);
    let bounds = [
        "bounds",
        "--heap",
        "per-thread",
        "--live",
        "1MiB",
        "--max-block",
        "1k",
    ];
    let emit = ["emit", "--heap", "per-thread", "-o", "out"];
    for arguments in [&bounds[..], &emit[..]] {
        refused(
            &place.metes(arguments),
            &["scheduling", "metes run --heap per-thread"],
        );
    }
}

#[test]
fn heaps_that_move_blocks_do_not_serve_programs() {
    let place = Place::new();
    for spec in ["compact-fit", "compact-fit:kappa=2,page=4096,largest=1000"] {
        let wanted = ["moves blocks", "moving=no", "handles", "metes replay"];
        refused(
            &place.metes(&["run", "--heap", spec, "--", "true"]),
            &wanted,
        );
        refused(
            &place.metes(&["emit", "--heap", spec, "-o", "out"]),
            &wanted,
        );
    }
    refused(
        &place.metes(&[
            "bounds",
            "--heap",
            "compact-fit:kappa=1",
            "--live",
            "1000000",
            "--max-block",
            "100000",
        ]),
        &["largest block", "larger page"],
    );
}

/// Requests that no memory has room for are refused by the heap, not by the replay of it.
#[test]
fn traces_of_impossible_sizes_are_replayed() {
    let place = Place::new();
    for size in [
        "1099511627776",
        "4611686018427387904",
        "9223372036854775807",
    ] {
        place.write("one.csv", &format!("a,1,{size}\na,2,64\n"));
        let output = place.metes(&["trace", "import", "one.csv", "-o", "one.parquet"]);
        assert_eq!(status(&output), 0, "{}", stderr(&output));
        for moving in ["table", "yes", "no"] {
            let heap = format!("compact-fit:moving={moving}");
            let output = place.metes(&["replay", "one.parquet", "--heap", &heap]);
            let said = stderr(&output);
            assert!(!said.contains("panicked"), "{size} {moving}: {said}");
            assert!(
                [0, 1, 2].contains(&status(&output)),
                "{size} {moving}: {said}"
            );
        }
        let output = place.metes(&[
            "replay",
            "one.parquet",
            "--heap",
            "compact-fit:moving=table",
        ]);
        assert_eq!(status(&output), 1);
        assert!(
            stderr(&output).contains("1 request failed"),
            "{}",
            stderr(&output)
        );
    }
}

/// A page whose only block is the page itself, as size classes in front of a heap may have.
#[test]
fn classes_as_large_as_their_page_have_bounds() {
    let place = Place::new();
    let heap = "compact-fit:moving=no,page=1024,largest=1024";
    let output = place.metes(&[
        "bounds",
        "--heap",
        heap,
        "--live",
        "1MiB",
        "--max-block",
        "4096",
    ]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let moving = "compact-fit:page=1024,largest=1024";
    let output = place.metes(&[
        "bounds",
        "--heap",
        moving,
        "--live",
        "1MiB",
        "--max-block",
        "512",
    ]);
    refused(&output, &["1024"]);
}

/// Small files of many events are refused with what allows them; more workers than are of use are
/// not made.
#[test]
fn work_is_bounded_unless_it_is_asked_for() {
    let place = Place::new();
    place.write("few.csv", &"a,1,64\nf,1\n".repeat(50));
    let output = place.metes(&["trace", "import", "few.csv", "-o", "few.parquet"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let read = |most: &str| {
        let mut command = place.command(&["profile", "few.parquet"]);
        command
            .env("METES_MOST_EVENTS", most)
            .output()
            .expect("metes runs")
    };
    refused(&read("99"), &["holds 100 events", "METES_MOST_EVENTS=100"]);
    assert_eq!(status(&read("100")), 0);
    let output = place.metes(&[
        "explore",
        "few.parquet",
        "--budget",
        "1",
        "--workers",
        "20000",
        "-o",
        "out",
    ]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
}

/// What a file says of itself moves no cursor and sets no title.
#[test]
fn foreign_text_controls_no_terminal() {
    let place = Place::new();
    let script = "f := zero\nplot(f, main=\"a\u{1b}]0;owned\u{7}b\")\n";
    place.write("title.mppg", script);
    let output = place.metes(&["curve", "run", "title.mppg"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    place.write("heap.toml", "[heap]\nname = \"tl\u{9b}2Jsf\"\n");
    let refused = place.metes(&["bounds", "--heap", "heap.toml", "--live", "1MiB"]);
    assert_eq!(status(&refused), 2);
    place.write("one.csv", "a\u{1b}[2J,1,64\n");
    let line = place.metes(&["trace", "import", "one.csv", "-o", "one.parquet"]);
    assert_eq!(status(&line), 2);
    for output in [&output, &refused, &line] {
        for stream in [&output.stdout, &output.stderr] {
            let text = String::from_utf8_lossy(stream);
            let controls = |character: char| character.is_control() && character != '\n';
            assert!(!text.contains(controls), "{text:?}");
        }
    }
}
