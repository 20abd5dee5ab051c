//! Any words as programs, which branch, trap, sleep and overwrite themselves as it comes.
//!
//! Invariant: no machine panics or hangs, no count goes wrong, and a run in one piece is the run in many.

use metes_leon3::{Configuration, Image, Machine, Model, Observer, Stop, bus::Bus, core::Core};
use metes_random::Random;

/// Looks, so that no rows are executed.
struct Looks;

impl Observer for Looks {
    fn before(&mut self, _core: &Core, _bus: &Bus) -> bool {
        false
    }
}

/// Words of instructions that exist more often than not, over registers that are mostly addresses. They are the trap
/// table, too.
fn words(random: &mut Random) -> Vec<u32> {
    let mut words = vec![
        0x0310_0000,
        0x8210_6800,
        0x8188_30e0,
        0x8190_0000,
        0x8198_4000,
    ];
    words.extend((words.len()..1024).map(|index| {
        let word = random.next() as u32;
        // Where a trap leads to, traps and floats are turned on, so that the next trap is not the end.
        if index % 4 == 0 {
            return 0x8188_30e0;
        }
        match random.next() % 8 {
            0 => word,
            1 => 0x0080_0000 | word & 0x3e00_0007 | 0x1000_0000,
            2 | 3 => 0xc000_0000 | word & 0x3f87_ffff | 0x4000 | 0x2000,
            4 => 0x8000_0000 | word & 0x3fff_ffff,
            _ => 0x8000_0000 | word & 0x3e07_e01f | (word >> 3 & 0x1f) << 14 | (word & 0x1f) << 19,
        }
    }));
    words
}

/// State that tells runs apart: of each core, memory, and what was printed.
fn state(machine: &mut Machine) -> (Vec<Vec<u8>>, Vec<u8>, Vec<u8>) {
    let cores = machine.cores().iter();
    let cores = cores.map(|core| postcard::to_stdvec(core).expect("plain data"));
    let cores = cores.collect();
    let printed = machine.printed(0);
    (cores, machine.bus.ram().to_vec(), printed)
}

#[test]
fn any_words_run_alike_however_they_are_run() {
    let rounds = if cfg!(debug_assertions) { 2000 } else { 20_000 };
    let mut executed = 0;
    for round in 0..rounds {
        let mut random = Random::new(round);
        let image = Image::of_words(0x4000_0000, &words(&mut random));
        let configuration = Configuration {
            cores: [1, 1, 3][round as usize % 3],
            model: [Model::Flat, Model::Uniform, Model::Flat, Model::Caches][round as usize % 4],
            memory: 1 << 16,
            mac: true,
            windows: [2, 8, 32][round as usize / 3 % 3],
            ..Configuration::default()
        };
        let mut whole = Machine::with_image(&configuration, &image).expect("a machine");
        let mut parts = Machine::with_image(&configuration, &image).expect("a machine");
        let end = whole.run(5000, &mut ());
        let mut left = 5000;
        let mut stop = Stop::Limit;
        while left > 0 && stop == Stop::Limit {
            let most = (1 + random.next() % 50).min(left);
            stop = parts.run(most, &mut Looks);
            left -= most;
        }
        assert_eq!(end, stop, "round {round}");
        assert_eq!(state(&mut whole), state(&mut parts), "round {round}");
        executed += whole.instructions();
    }
    assert!(
        executed > 100 * rounds,
        "{executed} instructions in {rounds} rounds"
    );
}
