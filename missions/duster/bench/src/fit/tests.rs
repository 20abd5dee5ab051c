//! The figures of the paper's tables, corrected, and what follows from them.

use super::*;

fn usage(report: &Report, device: &str, resource: &str) -> Usage {
    let fit = of(report, device);
    let found = fit
        .resources
        .iter()
        .find(|usage| usage.resource == resource);
    found.unwrap().clone()
}

fn of<'a>(report: &'a Report, device: &str) -> &'a Fit {
    report
        .devices
        .iter()
        .find(|fit| fit.device == device)
        .unwrap()
}

#[test]
fn the_papers_rows_are_corrected() {
    let corrections = report(true).corrections;
    let is = |row: &str| {
        let mut found = corrections.iter().filter(|it| it.row == row);
        found.next().unwrap().is.clone()
    };
    assert_eq!(is("table 4: CLB"), "30.93 % (9373 of 30300)");
    assert_eq!(is("table 4: I/O"), "42.50 % (221 of 520)");
    assert_eq!(is("table 4: LUT Flip Flop"), "3.40 % (15227 of 448000)");
    assert_eq!(is("table 4: DSPs"), "0.57 % (11 of 1920)");
    assert_eq!(is("table 2: Axcelerator, I/O"), "111.62 % (221 of 198)");
    // The figures that the corrections rest on.
    assert_eq!(percent(15_227, 242_400) * 100.0, 628.0);
    assert_eq!(percent(74, 600), 12.33);
    assert_eq!(600 * 36 * 10 / 1024, 210, "600 blocks of 36 Kb are 21.1 Mb");
    assert_eq!(9_373 * 8, 74_984);
}

#[test]
fn the_baseline_alone_is_as_the_notes_have_it() {
    let alone = report(false);
    let percent = |device, resource| usage(&alone, device, resource).percent;
    assert_eq!(percent("XQRKU060", "LUT"), Some(4.60));
    assert_eq!(percent("Axcelerator", "LUT"), Some(72.51));
    assert_eq!(percent("XCKU040", "I/O"), Some(42.50));
    assert_eq!(percent("XCKU040", "block RAM"), Some(12.33));
    // Of other families more than cell for cell: 11.1 % and 10.1 %.
    assert_eq!(usage(&alone, "NG-LARGE", "LUT").baseline, 28_031);
    assert_eq!(usage(&alone, "RTG4", "LUT").baseline, 19_051);
    assert!(
        alone
            .devices
            .iter()
            .all(|fit| fit.resources.iter().all(|it| it.added == 0))
    );
}

#[test]
fn verdicts_name_what_limits() {
    let report = report(true);
    let axcelerator = of(&report, "Axcelerator");
    assert_eq!(
        (axcelerator.verdict, axcelerator.limiting),
        (Verdict::No, "I/O")
    );
    let pins = usage(&report, "Axcelerator", "I/O");
    assert_eq!((pins.percent, pins.estimate), (Some(111.62), false));
    let cells = usage(&report, "Axcelerator", "LUT");
    assert_eq!(
        (cells.verdict, cells.estimate),
        (Some(Verdict::Tight), true)
    );
    for device in ["XQRKU060", "NG-LARGE", "RTG4", "XCKU040", "XCKU060"] {
        let fit = of(&report, device);
        assert_eq!(
            (fit.verdict, fit.limiting),
            (Verdict::Fits, "I/O"),
            "{device}"
        );
    }
    assert_eq!(usage(&report, "NG-LARGE", "block RAM").verdict, None);
    assert_eq!(usage(&report, "XCKU040", "LUT").added, 394);
    assert!(!usage(&report, "XCKU060", "LUT").estimate);
}

#[test]
fn limits_are_sharp() {
    let of = |part| verdict(part, 100);
    assert_eq!(
        [of(70), of(71), of(100), of(101)],
        [Verdict::Fits, Verdict::Tight, Verdict::Tight, Verdict::No]
    );
}
