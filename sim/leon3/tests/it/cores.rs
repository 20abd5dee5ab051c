//! Many cores on one word: no count is lost, whatever the quantum and the model of time, and a run is the same again.
//!
//! Invariant: what is compared of two runs is all of them: cores, memory, devices, and what was printed.

use metes_leon3::devices::Device;
use metes_leon3::{Configuration, End, Image, Machine, Model, Stop};

use crate::images::{image, sized};
use crate::qemu::{Detail, Options, Qemu};

const MODELS: [Model; 3] = [Model::Uniform, Model::Flat, Model::Caches];
const QUANTA: [u64; 4] = [1, 7, 64, 1000];
const MOST: u64 = 200_000_000;

/// A run of the image to its end: what it printed, and a sum of the whole state.
fn run(bytes: &[u8], cores: usize, model: Model, quantum: u64) -> (String, u64) {
    let configuration = Configuration {
        cores,
        model,
        quantum,
        memory: 4 << 20,
        ..Configuration::default()
    };
    let image = Image::read(bytes).expect("an image");
    let mut machine = Machine::with_image(&configuration, &image).expect("a machine");
    let stop = machine.run(MOST, &mut ());
    let name = format!("{cores} cores, {model:?}, a quantum of {quantum}");
    assert_eq!(stop, Stop::End(End::Halt { core: 0 }), "{name}");
    let sum = sum(&mut machine);
    let printed = String::from_utf8(machine.printed(0)).expect("text");
    (printed, sum)
}

/// FNV-1a of everything that the machine is.
fn sum(machine: &mut Machine) -> u64 {
    let mut bytes = Vec::new();
    for core in machine.cores() {
        bytes.extend(postcard::to_stdvec(core).expect("plain data"));
    }
    bytes.extend(machine.bus.interrupts.save());
    for (_, device) in machine.bus.devices() {
        bytes.extend(device.save());
    }
    bytes.extend_from_slice(machine.bus.ram());
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// What `cores` cores print that count up `turns` times each.
fn expected(cores: usize, turns: u32) -> String {
    let total = cores as u32 * turns;
    format!("CPUs {cores}\ncounted {total}\nunder the lock {total}\nequal\n")
}

#[test]
fn no_count_is_lost() {
    for (cores, turns) in [(2, 300), (4, 200), (16, 40)] {
        let bytes = sized("casa", &[("turns", turns)]);
        for model in MODELS {
            for quantum in QUANTA {
                let first = run(&bytes, cores, model, quantum);
                assert_eq!(first.0, expected(cores, turns), "{model:?}, {quantum}");
                assert_eq!(first, run(&bytes, cores, model, quantum));
            }
        }
    }
}

#[test]
fn no_count_is_lost_on_64_cores() {
    let bytes = sized("casa-64", &[("turns", 10)]);
    for (model, quantum) in MODELS.into_iter().zip([1, 64, 1000]) {
        let first = run(&bytes, 64, model, quantum);
        assert_eq!(first.0, expected(64, 10), "{model:?}, {quantum}");
        assert_eq!(first, run(&bytes, 64, model, quantum));
    }
}

#[test]
fn qemu_counts_as_much() {
    let options = Options {
        detail: Detail::Places,
        cpus: 4,
        shift: Some(5),
    };
    let mut qemu = Qemu::ten(&image("casa"), &options);
    let executed = qemu.by_ref().count();
    assert!(executed > 100_000, "{executed} instructions");
    assert_eq!(String::from_utf8_lossy(&qemu.printed()), expected(4, 2000));
    let bytes = sized("casa", &[]);
    assert_eq!(run(&bytes, 4, Model::Uniform, 64).0, expected(4, 2000));
}
