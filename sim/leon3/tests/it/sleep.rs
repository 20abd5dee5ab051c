//! A machine whose cores sleep, under a timer that wakes none: a run ends when it was to, and the same one in parts
//! does the same.

use metes_leon3::{Configuration, Image, Machine, Stop};

/// A timer of 10 microseconds that restarts, and an interrupt that nobody takes; then sleep, for ever.
const PROGRAM: [u32; 8] = [
    0x0320_0000, // sethi %hi(0x80000000), %g1
    0x8410_2009, // mov 9, %g2
    0xc420_6314, // st %g2, [%g1 + 0x314]
    0x8410_200f, // mov 15, %g2
    0xc420_6318, // st %g2, [%g1 + 0x318]
    0xa780_0000, // wr %g0, %asr19
    0x10bf_ffff, // back to it
    0x0100_0000, // nop
];

fn machine(cores: usize) -> Machine {
    let configuration = Configuration {
        cores,
        ..Configuration::default()
    };
    Machine::with_image(&configuration, &Image::of_words(0x4000_0000, &PROGRAM)).expect("it fits")
}

#[test]
fn a_run_ends_though_nobody_wakes() {
    for cores in [1, 2] {
        let mut whole = machine(cores);
        assert_eq!(whole.run(1000, &mut ()), Stop::Limit);
        let mut parts = machine(cores);
        for part in [1, 2, 3, 4, 5, 6, 79, 400, 500] {
            assert_eq!(parts.run(part, &mut ()), Stop::Limit);
        }
        assert!(whole.cycles() > 400 * 400, "{}", whole.cycles());
        assert_eq!(whole.cycles(), parts.cycles());
        assert_eq!(whole.instructions(), parts.instructions());
    }
}
