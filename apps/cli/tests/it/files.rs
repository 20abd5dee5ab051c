//! The user's files before and after: what Metes did not write stays.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::ffi::OsStrExt;
use std::process::Stdio;

use crate::support::{Place, STEADY, recorded, refused, status, stderr, stdout};

const TUNE: [&str; 7] = ["tune", "--budget", "0.3", "-o", "out", "--", "./steady"];

fn tuned() -> Place {
    let place = Place::new();
    place.compile("steady", STEADY, &[]);
    let output = place.metes(&TUNE);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    place
}

#[test]
fn results_never_replace_what_metes_did_not_write() {
    let place = recorded();
    for file in ["README.md", "c/heap.c", "rust/src/lib.rs", "report.html"] {
        let path = place.path("out").join(file);
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        std::fs::write(&path, "mine").expect("written");
        let wanted = [file, "--replace", "-o"];
        refused(&place.metes(&TUNE), &wanted);
        if file != "report.html" {
            refused(
                &place.metes(&["emit", "--heap", "tlsf", "-o", "out"]),
                &wanted,
            );
        } else {
            refused(
                &place.metes(&["explore", "t.trace.parquet", "-o", "out"]),
                &wanted,
            );
        }
        assert_eq!(std::fs::read_to_string(&path).expect("there"), "mine");
        std::fs::remove_dir_all(place.path("out")).expect("ours");
    }
}

#[test]
fn code_that_was_changed_is_not_lost_unless_that_is_asked_for() {
    let place = tuned();
    place.write("out/notes", "mine");
    place.write("out/c/heap.c", "changed");
    refused(&place.metes(&TUNE), &["out/c/heap.c", "changed since"]);
    assert_eq!(place.read("out/c/heap.c"), "changed");
    let output = place.metes(&[&["--replace"], &TUNE[..]].concat());
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    assert_ne!(place.read("out/c/heap.c"), "changed");
    assert_eq!(place.read("out/notes"), "mine");
    // And again without being asked.
    assert_eq!(status(&place.metes(&TUNE)), 0);
}

#[test]
fn a_result_is_not_mixed_with_that_of_another_verb() {
    let place = tuned();
    let fronts = place.read("out/pareto/001.toml");
    let trace = "out/program.trace.parquet";
    for arguments in [
        &["explore", trace, "--space", "paper", "-o", "out"][..],
        &["explore", trace, "--budget", "0.1", "-o", "out"],
        &["emit", "--heap", "tlsf", "-o", "out"],
    ] {
        refused(
            &place.metes(arguments),
            &["belongs to a result of `metes tune`"],
        );
    }
    assert_eq!(place.read("out/pareto/001.toml"), fronts);
}

#[test]
fn what_tune_left_is_served_and_exported() {
    let place = tuned();
    for (form, name) in [("xlsx", "results.xlsx"), ("csv", "results.csv")] {
        for _ in 0..2 {
            let (code, document) = place.json(&["report", "out", "--export", form]);
            assert_eq!(code, 0, "{document}");
            assert!(document["configurations"].as_u64() > Some(10), "{document}");
        }
        assert!(place.path("out").join(name).exists());
    }
    let named = place.read("out/results.csv");
    assert!(named.contains("\n0,tlsf,complete,"), "{named}");
    let (code, _) = place.json(&["report", "out", "--explorer"]);
    assert_eq!(code, 0);
    // The report is rendered again, and a later tuning replaces it all the same.
    assert_eq!(status(&place.metes(&["report", "out"])), 0);
    assert_eq!(status(&place.metes(&TUNE)), 0);
    served(&place, "out");
}

/// Serves a directory, with a client that never ends its request, and ends it.
fn served(place: &Place, directory: &str) {
    let mut command = place.command(&["serve", directory, "--port", "0"]);
    let mut server = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("metes runs");
    let mut line = String::new();
    let mut said = BufReader::new(server.stdout.take().expect("a pipe"));
    said.read_line(&mut line).expect("its address");
    let host = line
        .trim()
        .trim_start_matches("http://")
        .trim_end_matches('/');
    let ask = |text: &str| {
        let mut client = TcpStream::connect(host).expect("it answers");
        client.write_all(text.as_bytes()).expect("it reads");
        client
    };
    let mut answer = String::new();
    let whole = "GET /heap/0 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    ask(whole).read_to_string(&mut answer).expect("an answer");
    for part in [
        "200 OK",
        "name = \"tlsf\"",
        "nosniff",
        "frame-ancestors 'none'",
    ] {
        assert!(answer.contains(part), "{part}: {answer}");
    }
    let half = ask("GET / HTTP/1.1\r\nHost: localhost\r\nX");
    // SAFETY: a child that was not waited for.
    unsafe { libc::kill(server.id() as i32, libc::SIGINT) };
    // For ever, if it waited for the rest.
    assert_eq!(server.wait().expect("it ends").code(), Some(0));
    drop(half);
}

#[test]
fn links_are_not_written_through() {
    let place = tuned();
    place.write("far", "mine");
    std::fs::remove_file(place.path("out/report.html")).expect("there was one");
    std::os::unix::fs::symlink("../far", place.path("out/report.html")).expect("a link");
    refused(&place.metes(&["report", "out"]), &["out/report.html"]);
    assert_eq!(place.read("far"), "mine");
}

#[test]
fn files_by_name_are_replaced_only_if_metes_wrote_such() {
    let place = recorded();
    place.write("mine", "mine, and nobody else's");
    for arguments in [
        &["record", "-o", "mine", "--", "./steady"][..],
        &["trace", "export", "t.trace.parquet", "-o", "mine"],
        &["curve", "plot", "delay(1)", "--svg", "mine"],
    ] {
        refused(&place.metes(arguments), &["mine", "--replace"]);
    }
    assert_eq!(place.read("mine"), "mine, and nobody else's");
    for _ in 0..2 {
        for arguments in [
            &["record", "-o", "t.trace.parquet", "--", "./steady"][..],
            &["trace", "export", "t.trace.parquet", "-o", "t.csv"],
            &["curve", "plot", "delay(1)", "--svg", "t.svg"],
        ] {
            let output = place.metes(arguments);
            assert_eq!(status(&output), 0, "{}", stderr(&output));
        }
    }
}

#[test]
fn names_that_are_no_text() {
    let place = recorded();
    let odd = std::ffi::OsStr::from_bytes(b"o\xfe.parquet");
    for json in [false, true] {
        let mut command = place.command(if json { &["--json"] } else { &[] });
        command
            .args(["record", "-o"])
            .arg(odd)
            .args(["--", "sh", "-c", "ls; true"]);
        let output = command.output().expect("metes runs");
        assert_eq!(status(&output), 0, "{}", stderr(&output));
    }
    let child = std::ffi::OsStr::from_bytes(b"o\xfe.1.parquet");
    assert!(std::fs::exists(place.path(".").join(child)).expect("it can be asked"));
}

#[test]
fn a_program_that_replaces_itself_is_compared_with_itself() {
    let place = Place::new();
    let tune = |more: &[&str]| {
        let command = ["--", "bash", "-c", "date +%Y"];
        place.metes(&[&["tune", "--budget", "0.3", "-o", "out"], more, &command].concat())
    };
    let output = tune(&[]);
    let said = stdout(&output);
    assert_eq!(status(&output), 0, "{said}{}", stderr(&output));
    assert!(said.contains("(bash replaced itself by it)"), "{said}");
    assert!(said.contains("predicted = measured"), "{said}");
    let output = tune(&["--process", "bash"]);
    let said = stdout(&output);
    assert_eq!(status(&output), 0, "{said}{}", stderr(&output));
    assert!(said.contains("replaced itself by date"), "{said}");
    assert!(!said.contains("predicted ≠"), "{said}");
}

#[test]
fn a_process_is_called_by_the_name_that_it_was_started_by() {
    let place = Place::new();
    let date = ["/usr/bin/date", "/bin/date"];
    let date = date
        .iter()
        .find(|path| std::fs::exists(path).is_ok_and(|there| there));
    let link = place.path("server");
    std::os::unix::fs::symlink(date.expect("a date"), &link).expect("a link");
    let command = ["--process", "server", "--", "./server", "+%Y"];
    let output = place.metes(&[&["tune", "--budget", "0.3", "-o", "out"], &command[..]].concat());
    let said = stdout(&output);
    assert_eq!(status(&output), 0, "{said}{}", stderr(&output));
    assert!(said.contains("program   server: "), "{said}");
}
