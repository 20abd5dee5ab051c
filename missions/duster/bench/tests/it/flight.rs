//! The flight software flies: a short mission on the simulated unit, its science computed again, its memory looked at.

use metes_duster::heaps::Trace;
use metes_duster::report::Asked;
use metes_duster::{Bench, Report, Unit, scenario};
use metes_duster_system::System;
use metes_leon3::Model;

#[test]
fn a_short_mission_is_as_it_should_be() {
    let system = System::of_mission();
    let (image, _) = metes_duster::image(None).expect("the flight software is built");
    let mut unit = Unit::new(&system, image, Model::Flat, 5).expect("the image fits");
    assert!(unit.write_requests(&system));
    let mut bench = Bench::new(unit, Vec::new());
    let flown = scenario::fly(&mut bench, 3, &[]);
    let asked = Asked {
        seed: 5,
        seconds: 3,
        model: "flat",
        faults: false,
    };
    let report = Report::of(&bench, &system, asked, &flown.sweeps);
    assert_eq!(flown.troubles, Vec::<String>::new());
    assert_eq!(report.violations, Vec::<String>::new());
    let samples = &report.samples;
    assert!(samples.langmuir >= 15_000 && samples.efield >= 3_000 && samples.dust >= 30_000);
    assert_eq!(
        (report.lost, report.wrong, report.packets_missing),
        (0, 0, 0)
    );
    assert!(report.dust.injected > 0 && report.dust.detected == report.dust.injected);

    // What was seen of the partitions from outside is what they say of themselves.
    let requests = bench.unit.requests.as_ref().expect("written down");
    assert_eq!(requests.refused, 0);
    let text = requests.text();
    Trace::read(text).expect("a trace");
    for partition in &report.partitions {
        let mut live = std::collections::HashMap::new();
        let (mut used, mut peak) = (0u64, 0);
        for line in text.lines() {
            let fields: Vec<&str> = line.split(',').collect();
            if fields[1] != partition.name {
                continue;
            }
            let block: u32 = fields[2].parse().expect("a number");
            if fields[0] == "a" {
                let size: u64 = fields[3].parse().expect("a number");
                assert_eq!(live.insert(block, size), None, "{line}");
                used += size;
                peak = peak.max(used);
            } else {
                used -= live.remove(&block).expect("it is live");
            }
        }
        // The last housekeeping was a little before the end.
        assert!(
            peak >= partition.peak,
            "{}: {peak} {}",
            partition.name,
            partition.peak
        );
        assert!(peak <= partition.size);
    }
}
