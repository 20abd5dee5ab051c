//! Campaigns as small as can be: what is counted, and what is written of it.

use metes_edge_lab::reproduce::{Effort, Place, fig_1};
use metes_edge_lab::{
    CSV_BEGINNING, Findings, LabError, Measured, NOTHING, Options, Own, Size, Subject, Workshop,
    all, csv, document, measure, page, parquet,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parquet::file::reader::{FileReader, SerializedFileReader};

use super::runner;

/// `atax`, of 400 rows: an array of 1.28 MB and four small ones.
fn measured(names: &[&str], options: &Options) -> Measured {
    told(names, options, &|_| {}).expect("native code runs here")
}

/// The same, with who is told what is done.
fn told(names: &[&str], options: &Options, tell: &dyn Fn(&str)) -> Result<Measured, LabError> {
    let directory = tempfile::tempdir().expect("a directory");
    let workshop = Workshop {
        suite: &Own,
        runner: runner(),
        directory: directory.path(),
    };
    let subjects: Vec<Subject> = all(None)
        .into_iter()
        .filter(|subject| names.contains(&subject.name))
        .collect();
    measure(&workshop, subjects, options, tell)
}

fn options() -> Options {
    Options {
        kernels: vec!["atax".to_owned()],
        size: Size::Medium,
        runs: 2,
        repeats: 6,
        instances: 3,
        count_calls: true,
        stop: Arc::default(),
    }
}

#[test]
fn page_faults_and_system_calls_are_those_of_the_allocator() {
    let names = [
        "native",
        "native-retained",
        "native-metes",
        "cranelift",
        "ahead",
        "native-static",
    ];
    let measured = measured(&names, &options());
    assert_eq!(measured.differences, Vec::<String>::new());
    let findings = Findings::of(&measured);
    let steady = &findings.steady[0];
    let of = |name: &str| {
        steady
            .by
            .iter()
            .find(|by| by.subject == name)
            .expect("it was measured")
    };
    // 1.28 MB are 313 pages, mapped anew for each run and unmapped behind it; a machine with larger pages faults fewer.
    let (default, retained) = (of("native"), of("native-retained"));
    assert!(
        default.faults > retained.faults + 10.0,
        "{} {}",
        default.faults,
        retained.faults
    );
    assert!(of("cranelift").faults < default.faults);
    assert!(default.calls >= Some(2.0), "{:?}", default.calls);
    assert_eq!(retained.calls, Some(0.0));
    assert_eq!(of("cranelift").calls, Some(0.0));
    let puzzle = findings.puzzle.as_ref().expect("all that it takes");
    assert_eq!(puzzle.kernels, 1);
    assert!(puzzle.faults[0] > puzzle.faults[1]);
    // What only its start is looked at runs no kernel; what cannot be had says why.
    assert!(measured.cell("native-static", NOTHING).is_some());
    assert!(measured.cell("native-static", "atax").is_none());
    let absent = measured
        .subjects
        .iter()
        .find(|subject| subject.name == "native-metes")
        .expect("it is told");
    assert!(
        absent
            .absent
            .as_deref()
            .is_some_and(|why| why.contains("libmetes_preload.so"))
    );
    assert_eq!(findings.starts.len(), 5);
    written(&measured, &findings);
}

/// CSV, Parquet and page of what was measured.
fn written(measured: &Measured, findings: &Findings) {
    let text = csv(measured);
    assert!(text.starts_with(CSV_BEGINNING));
    let columns = text.lines().next().expect("a head").split(',').count();
    // Starts of five subjects and kernels of four, twice each; of these six runs and their sum; instances.
    let rows = 5 * 2
        + 4 * (2 + 6 + 1)
        + measured
            .warm
            .iter()
            .map(|warm| warm.times.len())
            .sum::<usize>();
    assert_eq!(text.lines().count(), 1 + rows);
    assert_eq!(measured.warm.len(), 2 * 4);
    let bytes = parquet(measured).expect("a file");
    let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).expect("it is Parquet");
    let described = reader.metadata().file_metadata();
    assert_eq!(described.num_rows(), rows as i64);
    assert_eq!(described.schema_descr().num_columns(), columns);
    let document = document(measured, findings, "metes edge lab");
    assert_eq!(document["holds"], true);
    assert_eq!(document["cells"].as_array().map(Vec::len), Some(5 + 4));
    assert_eq!(document["cells"][0]["cold"]["runs"], 2);
    assert!(page(&document).contains("\"subject\":\"native-retained\""));
}

#[test]
fn a_campaign_that_is_stopped_keeps_what_was_measured() {
    let names = ["native", "cranelift"];
    let asked = options();
    let stopped_at = |word: &'static str| {
        asked.stop.store(false, Ordering::Relaxed);
        told(&names, &asked, &|what| {
            if what == word {
                asked.stop.store(true, Ordering::Relaxed);
            }
        })
    };
    let found = stopped_at("atax").expect("the first kernel was measured");
    assert!(found.interrupted);
    assert_eq!(found.cells.len(), 2);
    let whole = |cell: &metes_edge_lab::Cell| cell.kernel == NOTHING && cell.cold.costs.len() == 2;
    assert!(found.cells.iter().all(whole), "{:?}", found.cells);
    assert!(found.warm.is_empty() && found.differences.is_empty());
    // What there is can be written and drawn.
    let findings = Findings::of(&found);
    assert_eq!(findings.starts.len(), 2);
    assert_eq!(csv(&found).lines().count(), 1 + 4);
    parquet(&found).expect("a file");
    let document = document(&found, &findings, "metes edge lab");
    assert_eq!(document["interrupted"], true);
    assert!(page(&document).contains("\"interrupted\":true"));
    // Stopped before its first run, it has nothing.
    for word in ["trying native", NOTHING] {
        assert!(matches!(stopped_at(word), Err(LabError::Stopped)));
    }
}

#[test]
fn the_first_figure_has_a_row_for_every_layer_had_or_not() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = Place {
        runner: runner(),
        preload: None,
        directory: directory.path(),
    };
    let report = fig_1(Effort::Quick, &place, &|_| {}).expect("native code runs here");
    assert!(report.holds());
    for (name, paper) in [
        ("native:", None),
        ("crun:", None),
        ("docker:", Some(268.0)),
        ("cranelift:", Some(46.0)),
        ("wamr-fast:", Some(26.0)),
        ("wamr-llvm:", Some(315.0)),
    ] {
        let row = report
            .rows
            .iter()
            .find(|row| row.what.starts_with(name))
            .expect(name);
        assert_eq!(row.paper, paper, "{name}");
        assert!(
            row.ours.is_some() || row.note.starts_with("cannot be had here: "),
            "{name} {}",
            row.note
        );
    }
    let ours = |name: &str| {
        report
            .rows
            .iter()
            .find(|row| row.what.starts_with(name))
            .and_then(|row| row.ours)
    };
    assert!(ours("native:").is_some() && ours("cranelift:").is_some());
}
