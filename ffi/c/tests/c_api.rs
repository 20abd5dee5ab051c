//! `metes.h` from C and C++, with the static and with the shared library.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use metes_libraries::released;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

#[track_caller]
fn succeed(command: &mut Command) -> Output {
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => panic!("{command:?} cannot be run: {error} (is it installed?)"),
    };
    assert!(
        output.status.success(),
        "{command:?}: {}\n{}{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

fn binary(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}", std::process::id()))
}

#[track_caller]
fn exercise(name: &str, source: &str, compiler: &[&str], link: &[String]) {
    let binary = binary(name);
    succeed(
        Command::new(compiler[0])
            .args(&compiler[1..])
            .args([
                "-O1",
                "-Wall",
                "-Wextra",
                "-Werror",
                "-Wno-use-after-free",
                "-fno-builtin",
            ])
            .arg(format!("-I{HERE}/include"))
            .arg(format!("{HERE}/tests/c/{source}"))
            .args(["-x", "none"])
            .args(link)
            .arg("-o")
            .arg(&binary),
    );
    let done = succeed(Command::new(&binary).env("LD_LIBRARY_PATH", released()));
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    assert_eq!(said, "metes does what its header says\n");
}

fn shared() -> Vec<String> {
    vec![format!("-L{}", released().display()), "-lmetes_c".into()]
}

fn fixed() -> Vec<String> {
    let archive = released().join("libmetes_c.a").display().to_string();
    [&archive, "-lgcc_s", "-lpthread", "-ldl", "-lm"]
        .map(String::from)
        .to_vec()
}

#[test]
fn c99_with_the_shared_library() {
    let compiler = ["cc", "-std=c99", "-pedantic"];
    exercise("c-shared", "api.c", &compiler, &shared());
    exercise("compact-shared", "compact.c", &compiler, &shared());
    exercise("pages-shared", "pages.c", &compiler, &shared());
    exercise("mesh-shared", "mesh.c", &compiler, &shared());
}

#[test]
fn c99_with_the_static_library() {
    let compiler = ["cc", "-std=c99", "-pedantic"];
    exercise("c-static", "api.c", &compiler, &fixed());
    exercise("compact-static", "compact.c", &compiler, &fixed());
    exercise("pages-static", "pages.c", &compiler, &fixed());
    exercise("mesh-static", "mesh.c", &compiler, &fixed());
}

#[test]
fn cplusplus() {
    let compiler = ["c++", "-x", "c++", "-std=c++11"];
    exercise("cplusplus", "api.c", &compiler, &shared());
    exercise("compact-cplusplus", "compact.c", &compiler, &shared());
    exercise("pages-cplusplus", "pages.c", &compiler, &shared());
    exercise("mesh-cplusplus", "mesh.c", &compiler, &shared());
}

#[test]
fn the_header_stands_alone() {
    for compiler in [
        ["cc", "-std=c99", "-xc"],
        ["cc", "-std=c17", "-xc"],
        ["c++", "-std=c++17", "-xc++"],
    ] {
        succeed(
            Command::new(compiler[0])
                .args(&compiler[1..])
                .args(
                    ["-Wall", "-Wextra", "-Wstrict-prototypes"]
                        .iter()
                        .take(if compiler[0] == "cc" { 3 } else { 2 }),
                )
                .args(["-Werror", "-fsyntax-only"])
                .arg(format!("{HERE}/include/metes.h"))
                .stdin(Stdio::null()),
        );
    }
}

/// The names that the shared library exports.
fn exported() -> Vec<String> {
    let library = released().join("libmetes_c.so");
    let listed = succeed(
        Command::new("nm")
            .args(["-D", "--defined-only"])
            .arg(library),
    );
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    let name = |line: &str| line.split_whitespace().last().map(str::to_owned);
    listed.lines().filter_map(name).collect()
}

#[test]
fn header_and_library_have_the_same_functions() {
    let header = std::fs::read_to_string(format!("{HERE}/include/metes.h")).unwrap();
    let mut declared: Vec<&str> = header
        .lines()
        .filter(|line| !line.starts_with([' ', '/']))
        .filter_map(|line| line.split_once('('))
        .filter_map(|(before, _)| before.rsplit([' ', '*']).next())
        .filter(|name| name.starts_with("metes_"))
        .collect();
    declared.sort_unstable();
    let mut exported = exported();
    exported.sort_unstable();
    assert_eq!(exported, declared);
}

/// Builds an example with the static library.
#[track_caller]
fn example(name: &str) -> (PathBuf, PathBuf) {
    let source = Path::new(HERE).join(format!("../../examples/c/{name}.c"));
    let built = binary(name);
    succeed(
        Command::new("cc")
            .args(["-std=c99", "-Wall", "-Wextra", "-Werror"])
            .arg(format!("-I{HERE}/include"))
            .arg(&source)
            .args(fixed())
            .arg("-o")
            .arg(&built),
    );
    (source, built)
}

#[test]
fn the_example_keeps_a_list_whole_while_its_nodes_move() {
    let (_, list) = example("list");
    let held = |argument: &[&str]| -> usize {
        let done = succeed(Command::new(&list).args(argument));
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(
            said.ends_with("the list is whole in both directions\n"),
            "{said}"
        );
        let (_, thinned) = said.split_once("thinned: 200 nodes, ").expect("a line");
        let words: Vec<&str> = thinned.split_whitespace().collect();
        words[3].parse().expect("bytes held")
    };
    let (moving, never) = (held(&[]), held(&["never"]));
    assert!(2 * moving < never, "{moving} of {never}");
}

#[test]
fn the_example_counts_words_on_every_heap() {
    let (source, binary) = example("words");
    for (spec, _) in metes_config::named() {
        let input = std::fs::File::open(&source).unwrap();
        let done = succeed(Command::new(&binary).arg(spec).stdin(input));
        let said = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(said.starts_with("most frequent: word, 3"), "{spec}: {said}");
        assert!(said.contains(&format!("\n{spec}: live ")), "{spec}: {said}");
    }
    let done = Command::new(&binary).arg("tslf").output().unwrap();
    assert_eq!(done.status.code(), Some(2));
}
