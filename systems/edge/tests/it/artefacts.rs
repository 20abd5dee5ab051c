//! Compiled code on disk is believed only with its seal.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use metes_edge::{Engine, Limits, Options, Outcome, Tiers, Worker};

use crate::guests::{LONG, binary};

const TEXT: &str = r#"(module (memory 1) (func (export "f") (result i32) (i32.const 42)))"#;

fn run(directory: &Path) -> Outcome {
    let options = Options {
        artefacts: Some(directory.to_owned()),
        lock: false,
        ..Options::default()
    };
    let engine = Engine::new(options).expect("an engine");
    let limits = Limits {
        entry: "f".to_owned(),
        tiers: Tiers::Optimised,
        ..Limits::default()
    };
    let module = engine
        .compile(&binary(TEXT), &limits)
        .expect("a guest of ours");
    Worker::new(&engine)
        .invoke(&module, &[], &mut Vec::new(), LONG)
        .outcome
}

fn artefact(directory: &Path) -> std::path::PathBuf {
    let mut found: Vec<_> = fs::read_dir(directory)
        .expect("it is there")
        .map(|entry| entry.expect("it is there").path())
        .filter(|path| !path.ends_with("key"))
        .collect();
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

#[test]
fn code_is_kept_and_code_that_was_changed_is_compiled_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().join("code");
    assert_eq!(run(&place), Outcome::Done { exit: 42 });
    let file = artefact(&place);
    let whole = fs::read(&file).expect("it is there");
    // A sealed one is used: it is not written again.
    let before = fs::metadata(&file)
        .expect("it is there")
        .modified()
        .expect("Linux");
    assert_eq!(run(&place), Outcome::Done { exit: 42 });
    assert_eq!(
        fs::metadata(&file)
            .expect("it is there")
            .modified()
            .expect("Linux"),
        before
    );
    // Any other is not: one bit is enough, wherever it is.
    for at in [0, 31, 32, 100, whole.len() / 2, whole.len() - 1] {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        fs::write(&file, &changed).expect("it is ours");
        assert_eq!(run(&place), Outcome::Done { exit: 42 });
        assert_ne!(fs::read(&file).expect("it is there"), changed, "{at}");
    }
    for short in [0, 10, 32, 33] {
        fs::write(&file, &whole[..short]).expect("it is ours");
        assert_eq!(run(&place), Outcome::Done { exit: 42 });
    }
    // One of another key: sealed, but not by us.
    fs::write(&file, &whole).expect("it is ours");
    fs::write(place.join("key"), [7; 32]).expect("it is ours");
    assert_eq!(run(&place), Outcome::Done { exit: 42 });
    assert_ne!(fs::read(&file).expect("it is there"), whole);
}

#[test]
fn a_directory_that_others_can_reach_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = directory.path().join("code");
    fs::create_dir(&place).expect("a directory");
    for mode in [0o777, 0o750, 0o701] {
        fs::set_permissions(&place, fs::Permissions::from_mode(mode)).expect("it is ours");
        let options = Options {
            artefacts: Some(place.clone()),
            lock: false,
            ..Options::default()
        };
        let error = Engine::new(options).err().expect("it must be refused");
        assert!(error.to_string().contains("0700"), "{error}");
    }
    fs::set_permissions(&place, fs::Permissions::from_mode(0o700)).expect("it is ours");
    assert_eq!(run(&place), Outcome::Done { exit: 42 });
    fs::set_permissions(place.join("key"), fs::Permissions::from_mode(0o644)).expect("it is ours");
    assert!(
        Engine::new(Options {
            artefacts: Some(place),
            lock: false,
            ..Options::default()
        })
        .is_err()
    );
}
