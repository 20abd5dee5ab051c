//! External meters: samples between markers, held to the host's runs.

use metes_power::machine::meter::{MeterError, Samples, align, markers};

#[test]
fn energy_is_that_between_the_markers() {
    // 2 W, and 4 W from 1 s to 2 s, as steps of a microsecond.
    let samples = Samples::parse(
        "time_ms,power_mw\n0,2000\n999.999,2000\n1000,4000\n2000,4000\n2000.001,2000\n3000,2000\n",
    );
    let samples = samples.expect("samples");
    let spans = markers("# log\nbegin 0.5\nend 1.5\n\nbegin 1.5\nend 2.5\n").expect("markers");
    assert_eq!(spans, [(0.5, 1.5), (1.5, 2.5)]);
    for energy in samples.energies(&spans).expect("covered") {
        assert!((energy - 3.0).abs() < 1e-5, "{energy}");
    }
    let between_two = samples.energies(&[(0.25, 0.75)]).expect("covered");
    assert!((between_two[0] - 1.0).abs() < 1e-12);
    assert!(matches!(
        samples.energies(&[(0.0, 3.5)]),
        Err(MeterError::Outside { run: 1, .. })
    ));
    let by_current =
        Samples::parse("time_s,current_ma,voltage_v\n0,500,5\n1,500,5\n").expect("samples");
    assert_eq!(by_current.energies(&[(0.0, 1.0)]).expect("covered"), [2.5]);
}

#[test]
fn wrong_samples_and_markers_are_refused() {
    for (text, says) in [
        ("", "no time"),
        ("time_s,x\n", "no power"),
        ("time_s,current_a\n", "no voltage"),
        ("time_s,power_w\n0,1\n0,1\n", "line 3"),
        ("time_s,power_w\n0,x\n", "'x'"),
        ("time_s,power_w\n0,inf\n", "'inf'"),
        ("time_s,power_w\n0\n", "no CSV"),
    ] {
        let error = Samples::parse(text).expect_err(text).to_string();
        assert!(error.contains(says), "{text:?}: {error}");
    }
    for text in [
        "begin",
        "begin x",
        "end 1",
        "begin 1\nbegin 2",
        "begin 2\nend 1",
        "begin 1\nend 1",
        "begin 1",
        "stop 1",
        "begin nan",
    ] {
        assert!(markers(text).is_err(), "{text:?}");
    }
    let none = Samples::parse("time_s,power_w\n").expect("no samples");
    assert!(none.energies(&[(0.0, 1.0)]).is_err());
}

#[test]
fn markers_of_other_runs_are_told_by_their_lengths() {
    let host = [(100.0, 101.0), (102.0, 104.0)];
    assert_eq!(align(&host, &[(0.0, 1.0015), (2.0, 4.0)]), Ok(()));
    assert!(matches!(
        align(&host, &[(0.0, 1.0)]),
        Err(MeterError::Count {
            markers: 1,
            runs: 2
        })
    ));
    assert!(matches!(
        align(&host, &[(0.0, 1.0), (2.0, 3.0)]),
        Err(MeterError::Apart { run: 2, .. })
    ));
}
