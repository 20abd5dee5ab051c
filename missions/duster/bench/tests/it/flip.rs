//! A bit that flips in the code of core 1 in the midst of an acquisition: the unit finds it and begins anew, and nothing is
//! wrong from then on.

use metes_duster::judge::Verdicts;
use metes_duster::{Bench, Outcome, Unit};
use metes_duster_protocol::Mode;
use metes_duster_protocol::definitions::{Command, Event, Rates};
use metes_duster_system::System;
use metes_leon3::{Image, Model};

/// Where core 1 extends the sign of a sample: an arithmetic shift to the right by twelve, in the function that takes frames.
fn sign_extension(image: &Image) -> u32 {
    let symbol = image
        .symbols()
        .iter()
        .find(|it| it.name.contains("11Acquisition6follow"))
        .expect("the function has its name");
    let words = (symbol.address..symbol.address + symbol.size).step_by(4);
    let shifts = |word: u32| word & 0xc1f8_3fff == 0x8138_200c;
    { words }
        .find(|&address| image.word(address).is_some_and(shifts))
        .expect("it shifts")
}

fn acquire(bench: &mut Bench) {
    for mode in [Mode::Safe, Mode::Standby, Mode::AcqEnv] {
        let done = bench.execute(&Command::SetMode { mode }, 10_000);
        assert_eq!(done, Outcome::Completed, "{mode:?}");
    }
    let command = Command::StartAcquisition {
        probes: 3,
        rates: Rates::Objective,
        duration: 60,
    };
    bench.begin(&command).expect("it is accepted");
    let began = |event: &Event| matches!(event, Event::AcquisitionStarted { .. }).then_some(());
    assert!(bench.wait(5_000, began).is_some());
    bench.pass(3_000);
}

#[test]
fn a_flip_in_code_is_found_and_ends_with_a_reset() {
    let system = System::of_mission();
    let (image, _) = metes_duster::image(None).expect("the flight software is built");
    let shift = sign_extension(&image);
    let unit = Unit::new(&system, image, Model::Flat, 5).expect("the image fits");
    let mut bench = Bench::new(unit, Vec::new());
    bench.pass(3_000);
    acquire(&mut bench);
    assert_eq!(
        (bench.ground.science.wrong, bench.unit.resets.len()),
        (0, 0)
    );

    // Shifted by thirteen, each sample is half of what it was.
    let flipped = bench.unit.now();
    assert!(bench.unit.flip(shift + 3, 0));
    while bench.unit.resets.is_empty() {
        bench.pass(100);
        assert!(bench.unit.now() - flipped <= bench.unit.map.recovery);
    }
    assert_eq!(bench.unit.resets[0].why, "watchdog");
    assert_eq!(bench.ground.counts.get(&25), Some(&1));
    let wrong = bench.ground.science.wrong;
    assert!(wrong > 10, "{wrong}");
    let image = Verdicts {
        image: wrong,
        ..Verdicts::default()
    };
    assert_eq!(bench.judge.verdicts, image);

    bench.pass(3_000);
    let right = bench.ground.science.packets;
    acquire(&mut bench);
    assert!(bench.ground.science.packets > right + 10);
    assert_eq!(bench.ground.science.wrong, wrong);
}
