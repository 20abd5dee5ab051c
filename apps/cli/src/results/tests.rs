//! Directories before and after, with processes that end in between.

use super::*;

const KIND: Kind<'_> = Kind {
    verb: "one",
    files: &["a", "sub/b", "pareto/NNN.toml"],
};
const OTHER: Kind<'_> = Kind {
    verb: "two",
    files: &["a", "c"],
};

fn gather(results: &Results, files: &[(&str, &str)]) {
    for (file, text) in files {
        let path = results.gathered().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

fn leave(place: &Path, kind: Kind<'_>, files: &[(&str, &str)]) {
    let results = Results::open(place, kind).unwrap();
    gather(&results, files);
    results.replace().unwrap();
}

/// What is there, but for the list.
fn there(place: &Path) -> Vec<(String, String)> {
    let files = below(place).unwrap().into_iter();
    let read = |file: String| {
        let text = fs::read_to_string(place.join(&file)).unwrap();
        (file, text)
    };
    files.map(read).collect()
}

fn refused(place: &Path, kind: Kind<'_>) -> String {
    Results::open(place, kind).unwrap_err().to_string()
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    let owned = |(file, text): &(&str, &str)| ((*file).to_owned(), (*text).to_owned());
    expected.iter().map(owned).collect()
}

#[test]
fn a_result_replaces_the_earlier_one_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("out");
    leave(
        &place,
        KIND,
        &[
            ("a", "1"),
            ("pareto/001.toml", "1"),
            ("pareto/002.toml", "1"),
        ],
    );
    fs::write(place.join("notes"), "mine").unwrap();
    fs::write(place.join("pareto/mine"), "mine").unwrap();
    leave(&place, KIND, &[("pareto/001.toml", "2"), ("sub/b", "2")]);
    let expected = [
        ("notes", "mine"),
        ("pareto/001.toml", "2"),
        ("pareto/mine", "mine"),
        ("sub/b", "2"),
    ];
    assert_eq!(there(&place), pairs(&expected));
    leave(&place, KIND, &[("a", "3")]);
    let expected = [("a", "3"), ("notes", "mine"), ("pareto/mine", "mine")];
    assert_eq!(there(&place), pairs(&expected));
    assert!(!place.join("sub").exists(), "no empty directory is left");
}

#[test]
fn what_others_wrote_or_changed_is_refused_before_any_work() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    fs::write(place.join("a"), "mine").unwrap();
    assert!(refused(place, KIND).contains("not written by Metes"));
    fs::remove_file(place.join("a")).unwrap();
    leave(place, KIND, &[("a", "1"), ("pareto/001.toml", "1")]);
    fs::write(place.join("a"), "changed").unwrap();
    assert!(refused(place, KIND).contains("was changed since Metes wrote it"));
    fs::write(place.join("a"), "1").unwrap();
    assert!(refused(place, OTHER).contains("belongs to a result of `metes one`"));
    fs::write(place.join("pareto/002.toml"), "mine").unwrap();
    assert!(refused(place, KIND).contains("pareto/002.toml is there"));
    fs::remove_file(place.join("pareto/002.toml")).unwrap();
    leave(place, KIND, &[("a", "2")]);
    assert_eq!(there(place), pairs(&[("a", "2")]));
}

#[test]
fn links_are_not_followed() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("out");
    fs::create_dir(&place).unwrap();
    fs::create_dir(directory.path().join("far")).unwrap();
    fs::write(directory.path().join("far/a"), "mine").unwrap();
    std::os::unix::fs::symlink("../far/a", place.join("a")).unwrap();
    assert!(refused(&place, KIND).contains("no file that Metes wrote"));
    fs::remove_file(place.join("a")).unwrap();
    for name in ["sub", "pareto"] {
        std::os::unix::fs::symlink("../far", place.join(name)).unwrap();
        assert!(
            refused(&place, KIND).contains("no directory of Metes"),
            "{name}"
        );
        fs::remove_file(place.join(name)).unwrap();
    }
    // The directory itself may be one: it was named.
    std::os::unix::fs::symlink("out", directory.path().join("link")).unwrap();
    leave(&directory.path().join("link"), KIND, &[("a", "1")]);
    assert_eq!(there(&place), pairs(&[("a", "1")]));
}

#[test]
fn one_at_a_time() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("out");
    let first = Results::open(&place, KIND).unwrap();
    for kind in [KIND, OTHER] {
        assert!(refused(&place, kind).contains("another Metes is writing"));
    }
    drop(first);
    assert!(!place.exists(), "nothing is left of one that wrote nothing");
    leave(&place, KIND, &[("a", "1")]);
}

#[test]
fn one_that_is_killed_leaves_the_earlier_result_or_the_new_one() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    leave(place, KIND, &[("a", "1"), ("pareto/001.toml", "1")]);
    // Killed while it gathers: as a process that is gone leaves it.
    let dead = place.join(".metes.abcdef");
    fs::create_dir(&dead).unwrap();
    fs::write(dead.join("a"), "2").unwrap();
    settle(place);
    assert!(!dead.exists());
    assert_eq!(there(place), pairs(&[("a", "1"), ("pareto/001.toml", "1")]));
    // Killed after it had decided, at every point of putting files in place.
    for done in 0..=2 {
        leave(place, KIND, &[("a", "1"), ("pareto/001.toml", "1")]);
        fs::create_dir(&dead).unwrap();
        let files = [("a", "2"), ("sub/b", "2")];
        let mut new = List::new();
        for (file, text) in files {
            fs::create_dir_all(dead.join(file).parent().unwrap()).unwrap();
            fs::write(dead.join(file), text).unwrap();
            let entry = Entry::of(&dead.join(file), "one".to_owned()).unwrap();
            new.files.insert(file.to_owned(), entry);
        }
        new.keep_of(&List::read(place), place, Some("one"));
        new.write(&dead).unwrap();
        for (file, _) in &files[..done] {
            fs::create_dir_all(place.join(file).parent().unwrap()).unwrap();
            fs::rename(dead.join(file), place.join(file)).unwrap();
        }
        settle(place);
        assert!(!dead.exists());
        assert_eq!(there(place), pairs(&files), "{done} files were in place");
        leave(place, KIND, &files);
    }
}

#[test]
fn what_comes_in_between_is_kept_and_so_is_the_new_result() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    let results = Results::open(place, KIND).unwrap();
    gather(&results, &[("a", "1")]);
    fs::write(place.join("a"), "mine").unwrap();
    let said = results.replace().unwrap_err().to_string();
    assert_eq!(fs::read_to_string(place.join("a")).unwrap(), "mine");
    let kept = fs::read_dir(place).unwrap().map(|entry| entry.unwrap());
    let mut kept = kept.filter(|entry| entry.file_name().to_string_lossy().starts_with(UNSAVED));
    let kept = kept.next().expect("the new result").path();
    assert!(said.contains(&kept.display().to_string()), "{said}");
    assert_eq!(fs::read_to_string(kept.join("a")).unwrap(), "1");
}

#[test]
fn what_is_added_belongs_to_the_result_that_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path();
    leave(place, KIND, &[("a", "1"), ("sub/b", "1")]);
    let adds = Kind {
        verb: "adds",
        files: &[],
    };
    let results = Results::open_to_add(place, adds).unwrap();
    gather(&results, &[("a", "2"), ("d", "2")]);
    results.add().unwrap();
    let expected = [("a", "2"), ("d", "2"), ("sub/b", "1")];
    assert_eq!(there(place), pairs(&expected));
    // The rest of the result goes with its next one, what was added stays.
    leave(place, KIND, &[("sub/b", "3")]);
    assert_eq!(there(place), pairs(&[("d", "2"), ("sub/b", "3")]));
}

#[test]
fn a_list_from_elsewhere_removes_nothing_outside() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("out");
    leave(&place, KIND, &[("a", "1")]);
    let far = directory.path().join("far");
    fs::write(&far, "mine").unwrap();
    let mut list = List::read(&place);
    let entry = Entry::of(&far, "one".to_owned()).unwrap();
    list.files.insert("../far".to_owned(), entry.clone());
    list.files.insert(far.display().to_string(), entry);
    list.stale = vec!["../far".to_owned()];
    list.write(&place).unwrap();
    leave(&place, KIND, &[("a", "2")]);
    assert_eq!(fs::read_to_string(&far).unwrap(), "mine");
}

/// A directory from elsewhere may hold what looks like a decision to be carried out.
#[test]
fn a_decision_from_elsewhere_leads_to_nothing_outside() {
    let directory = tempfile::tempdir().unwrap();
    let (outside, place) = (directory.path().join("home"), directory.path().join("out"));
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("letter"), "mine").unwrap();
    let gathered = place.join(".metes.abcdef");
    fs::create_dir_all(gathered.join("link")).unwrap();
    std::os::unix::fs::symlink(&outside, place.join("link")).unwrap();
    let list = r#"{"metes": "1", "files": {}, "stale": ["link/letter"]}"#;
    fs::write(gathered.join(".metes.json"), list).unwrap();
    settle(&place);
    assert_eq!(fs::read_to_string(outside.join("letter")).unwrap(), "mine");
    fs::create_dir_all(gathered.join("link")).unwrap();
    fs::write(gathered.join("link/letter"), "another").unwrap();
    fs::write(gathered.join(".metes.json"), list).unwrap();
    settle(&place);
    assert_eq!(fs::read_to_string(outside.join("letter")).unwrap(), "mine");
}

/// Lists changed in every way name files of their directory alone, and protect what is there.
#[test]
fn lists_of_any_bytes_name_nothing_outside() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().join("out");
    leave(&place, KIND, &[("a", "1"), ("sub/b", "1")]);
    let path = place.join(".metes.json");
    let sound = fs::read_to_string(&path).unwrap();
    let stale = sound.replacen(
        "\"files\"",
        "\"stale\": [\"a\", \"../x\", \"/etc/x\"], \"files\"",
        1,
    );
    let seeds = [sound.clone().into_bytes(), stale.into_bytes()];
    let mut listed = 0;
    for number in 0..3000 {
        let bytes = metes_attack::Mutator::new(number).input(&seeds);
        fs::write(&path, &bytes).unwrap();
        let list = List::read(&place);
        let names = list.files.keys().chain(&list.stale);
        listed += names.clone().count();
        for name in names {
            let mut parts = Path::new(name).components();
            assert!(
                parts.all(|part| matches!(part, std::path::Component::Normal(_))),
                "{name}"
            );
        }
        let _ = list.may_replace(&place, "a", Some("one"));
    }
    assert!(listed > 100, "{listed}");
    fs::write(&path, sound).unwrap();
    assert_eq!(there(&place), pairs(&[("a", "1"), ("sub/b", "1")]));
}

#[test]
fn directories_made_in_vain_are_gone() {
    let directory = tempfile::tempdir().unwrap();
    fs::create_dir(directory.path().join("mine")).unwrap();
    for place in ["one/two/three", "mine/one", "mine"] {
        drop(Results::open(&directory.path().join(place), KIND).unwrap());
    }
    let entries = fs::read_dir(directory.path()).unwrap();
    let names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["mine"]);
}
