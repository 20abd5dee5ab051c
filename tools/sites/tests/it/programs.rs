//! Stacks of programs in C, compiled in many ways.

use std::process::Command;

use metes_sites::{Sites, Unnamed, calls, interpreted, name, remove_python};
use metes_trace::stacks::Ending;

use crate::support::{Place, named, one, recorded, run, under};

/// Ways to compile that leave different traces of callers: frame pointers, none, other optimisers' frames.
const WAYS: [&[&str]; 6] = [
    &["-O2", "-g", "-fomit-frame-pointer"],
    &["-O2", "-g", "-fno-omit-frame-pointer"],
    &["-O0", "-g"],
    &["-O2", "-g", "-no-pie"],
    // Segments with addresses between them that are nobody's.
    &[
        "-O2",
        "-g",
        "-no-pie",
        "-Wl,-z,max-page-size=0x200000",
        "-Wl,-z,separate-code",
    ],
    &["-Os", "-g", "-fcf-protection=none", "-Wl,-z,separate-code"],
];

#[test]
fn every_way_to_compile_gives_the_same_sites() {
    let place = Place::new();
    for (number, way) in WAYS.iter().enumerate() {
        let program = place.compile("tree", &format!("tree{number}"), way);
        let trace = named(&program, &[]);
        let figures = |names: &[&str]| {
            let found = one(&trace, names);
            assert_eq!(found.ending, Ending::Whole, "{way:?}: {:?}", found.calls);
            assert!(
                found.calls.last().is_some_and(|last| last == "_start"),
                "{way:?}"
            );
            found.figures
        };
        let own = figures(&["leaf", "path_one", "main"]);
        assert_eq!(
            (own.allocations, own.bytes, own.leaked_bytes),
            (10, 1000, 0),
            "{way:?}"
        );
        assert!(own.lifetime.is_some());
        let own = figures(&["leaf", "path_two", "main"]);
        assert_eq!((own.allocations, own.bytes), (5, 1000), "{way:?}");
        assert_eq!((own.leaked_blocks, own.leaked_bytes), (5, 1000), "{way:?}");
        let own = figures(&["leaf", "path_three", "main"]);
        assert_eq!(
            (own.allocations, own.resizes, own.peak_bytes),
            (1, 0, 0),
            "{way:?}"
        );
        let own = figures(&["path_three", "main"]);
        assert_eq!(
            (own.allocations, own.resizes, own.bytes),
            (0, 1, 1000),
            "{way:?}"
        );
        assert_eq!(own.peak_bytes, 1000, "{way:?}");
        let own = figures(&["inlined", "around", "main"]);
        assert_eq!((own.allocations, own.leaked_bytes), (3, 150), "{way:?}");
        let own = figures(&["leaf", "varying", "main"]);
        assert_eq!((own.allocations, own.bytes), (1, 30), "{way:?}");
        let own = figures(&["leaf", "aligned", "main"]);
        assert_eq!((own.allocations, own.bytes), (1, 40), "{way:?}");
    }
}

#[test]
fn what_is_inlined_has_its_own_line() {
    let place = Place::new();
    let trace = named(&place.compile("tree", "tree", &["-O2", "-g"]), &[]);
    let sites = 1..=trace.stacks.len() as u64;
    let mut stacks = sites.map(|site| calls(&trace.stacks, site));
    let own = stacks
        .find(|calls| calls[0].function == "inlined")
        .expect("there");
    assert!(own[0].inlined && !own[1].inlined);
    assert_eq!(own[1].function, "around");
    assert!(own[0].file.ends_with("tree.c") && own[0].line > 0 && own[1].line > own[0].line);
    assert!(own[0].module.ends_with("/tree"));
}

#[test]
fn a_stripped_program_has_the_same_sites_without_names() {
    let place = Place::new();
    let program = place.compile("tree", "tree", &["-O2"]);
    run(Command::new("strip").arg(&program));
    let mut trace = recorded(&program, &[]).main;
    let named = name(&mut trace.stacks, &[]);
    assert!(named.unnamed[&Unnamed::NoSymbol] >= 7, "{named:?}");
    let remark = named.remark().expect("something has no name");
    assert!(remark.contains("without symbols"), "{remark}");
    let sites = Sites::of(&trace);
    let mut found: Vec<(u64, u64)> = sites
        .figures
        .iter()
        .map(|own| (own.allocations, own.bytes))
        .collect();
    found.retain(|own| [(10, 1000), (5, 1000), (3, 150)].contains(own));
    found.sort_unstable();
    assert_eq!(found, [(3, 150), (5, 1000), (10, 1000)]);
    let kept = (1..)
        .zip(&sites.figures[1..])
        .find(|(_, own)| own.leaked_bytes == 1000);
    let (site, _) = kept.expect("path_two");
    let calls = calls(&trace.stacks, site);
    assert!(calls[0].function.starts_with("tree+0x"), "{:?}", calls[0]);
}

#[test]
fn symbols_name_what_they_cover_and_nothing_else() {
    let place = Place::new();
    // Without debug information, and with the functions that are not static as symbols for the loader.
    let program = place.compile("tree", "tree", &["-O2", "-rdynamic"]);
    run(Command::new("strip").arg(&program));
    let trace = named(&program, &[]);
    assert_eq!(
        one(&trace, &["leaf", "path_two", "main"])
            .figures
            .allocations,
        5
    );
    assert_eq!(one(&trace, &["around", "main"]).figures.allocations, 3);
}

#[test]
fn a_program_that_has_changed_names_nothing() {
    let place = Place::new();
    let program = place.compile("tree", "tree", &["-O2", "-g"]);
    let mut trace = recorded(&program, &[]).main;
    place.compile("deep", "tree", &["-O2", "-g"]);
    let named = name(&mut trace.stacks, &[]);
    assert!(named.unnamed[&Unnamed::OtherFile] >= 7, "{named:?}");
    std::fs::remove_file(&program).expect("it is there");
    let named = name(&mut trace.stacks, &[]);
    assert!(named.unnamed[&Unnamed::NoFile] >= 7, "{named:?}");
}

#[test]
fn deep_recursion_is_cut_and_said_to_be() {
    let place = Place::new();
    let trace = named(&place.compile("deep", "deep", &["-O1", "-g"]), &[]);
    let found = under(&trace, &["deep"]);
    let mut found: Vec<_> = found
        .into_iter()
        .filter(|found| found.figures.bytes == 77)
        .map(|found| {
            (
                found.calls.iter().filter(|name| *name == "deep").count(),
                found.ending,
            )
        })
        .collect();
    found.sort_by_key(|(deep, _)| *deep);
    assert_eq!(found, [(20, Ending::Whole), (64, Ending::Cut)]);
}

#[test]
fn threads_that_do_the_same_share_a_stack() {
    let place = Place::new();
    let trace = named(&place.compile("threads", "threads", &["-O1", "-g"]), &[]);
    let found = one(&trace, &["in_thread"]);
    assert_eq!(
        (found.figures.allocations, found.figures.bytes),
        (400, 400 * 123)
    );
    assert_eq!(found.ending, Ending::Whole, "{:?}", found.calls);
}

#[test]
fn a_forked_child_names_its_own_stacks() {
    let place = Place::new();
    let recording = recorded(&place.compile("forks", "forks", &["-O1", "-g"]), &[]);
    let child = recording.children.first().expect("a child");
    let mut child = child.load().expect("a whole recording").trace;
    name(&mut child.stacks, &[]);
    let mut parent = recording.main.clone();
    name(&mut parent.stacks, &[]);
    assert_eq!(one(&parent, &["ask", "main"]).figures.allocations, 2);
    assert_eq!(
        one(&parent, &["ask", "of_parent", "main"])
            .figures
            .allocations,
        4
    );
    assert!(under(&parent, &["ask", "of_child"]).is_empty());
    assert_eq!(one(&child, &["ask", "main"]).figures.allocations, 1);
    assert_eq!(
        one(&child, &["ask", "of_child", "main"])
            .figures
            .allocations,
        3
    );
    assert!(under(&child, &["ask", "of_parent"]).is_empty());
}

#[test]
fn libraries_that_lie_where_others_lay_are_told_apart() {
    let place = Place::new();
    let program = place.compile("loads", "loads", &["-O1", "-g"]);
    let shared = |name: &str| {
        let define = format!("-DNAME={name}");
        let file = format!("{name}.so");
        let path = place.compile(
            "library",
            &file,
            &["-O1", "-g", "-shared", "-fPIC", &define],
        );
        path.to_str().expect("text").to_owned()
    };
    let (first, second) = (shared("first_of_all"), shared("second_to_none"));
    let words = [
        &*first,
        "first_of_all",
        &second,
        "second_to_none",
        &first,
        "first_of_all",
    ];
    let trace = named(&program, &words);
    let figures = one(&trace, &["first_of_all", "use", "main"]).figures;
    assert_eq!((figures.allocations, figures.bytes), (2, 1001 + 1003));
    let figures = one(&trace, &["second_to_none", "use", "main"]).figures;
    assert_eq!((figures.allocations, figures.bytes), (1, 1002));
}

#[test]
fn handlers_of_signals_lie_on_what_they_interrupted() {
    let place = Place::new();
    let trace = named(&place.compile("signals", "signals", &["-O1", "-g"]), &[]);
    let found = under(&trace, &["handler"]);
    let mut bytes: Vec<u64> = found.iter().map(|found| found.figures.bytes).collect();
    bytes.sort_unstable();
    assert_eq!(bytes.iter().sum::<u64>(), 900 + 901 + 902);
    for found in &found {
        assert_eq!(found.ending, Ending::Whole, "{:?}", found.calls);
        assert!(
            found.calls.iter().any(|name| name == "raiser"),
            "{:?}",
            found.calls
        );
        assert!(
            found.calls.iter().any(|name| name == "main"),
            "{:?}",
            found.calls
        );
    }
    let busy = one(&trace, &["busy", "main"]);
    assert_eq!(busy.figures.allocations, 200_000);
    assert_eq!(busy.ending, Ending::Whole);
}

#[cfg(target_arch = "x86_64")]
#[test]
fn code_made_at_run_time_is_called_as_it_is_told() {
    let place = Place::new();
    for way in [
        ["-O2", "-g", "-fomit-frame-pointer"],
        ["-O0", "-g", "-fno-omit-frame-pointer"],
    ] {
        let recording = recorded(&place.compile("made", "made", &way), &[]);
        let process = recording.main_process.as_ref().expect("it allocates").pid;
        let mut trace = recording.main;
        let before = name(&mut trace.stacks, &[]);
        assert_eq!(before.unnamed[&Unnamed::NoModule], 3, "{before:?}");
        let named = name(&mut trace.stacks, &[process]);
        assert!(!named.unnamed.contains_key(&Unnamed::NoModule), "{named:?}");
        remove_python(process);
        assert!(!std::path::Path::new(&format!("/tmp/perf-{process}.map")).exists());
        let whole = [
            "evaluate",
            "inner",
            "evaluate_middle",
            "Outer.run",
            "evaluate_outer",
            "main",
            "main",
        ];
        let both = under(&trace, &whole);
        assert_eq!(both.len(), 2, "two calls of malloc");
        assert!(both.iter().all(|own| own.ending == Ending::Whole
            && own.calls.last().is_some_and(|last| last == "_start")));
        // Of the functions alone, they are one.
        interpreted(&mut trace);
        let own = one(&trace, &["inner", "Outer.run", "main"]);
        assert_eq!(
            (own.figures.allocations, own.figures.bytes, own.calls.len()),
            (2, 1010, 3)
        );
        assert_eq!(one(&trace, &["Outer.run", "main"]).figures.bytes, 20);
        let sites = 1..=trace.stacks.len() as u64;
        let mut files = sites.filter_map(|site| calls(&trace.stacks, site).into_iter().next());
        assert!(files.any(|call| call.function == "inner"
            && call.file == "/a/b.py"
            && call.module.is_empty()));
    }
}
