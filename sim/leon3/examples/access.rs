//! What an access to a device costs the host: loads from a timer, and from memory, one behind the other.
//!
//! `cargo run --release -p metes-leon3 --example access`

use std::time::Instant;

use metes_leon3::{Configuration, Image, Machine, Stop};

/// `sethi %hi(address), %g1`, a loop of `access` 62 times, `ba` back, `nop`.
fn image(address: u32, access: u32) -> Image {
    let mut words = vec![0x0300_0000 | address >> 10];
    words.extend([access; 62]);
    words.extend([0x1080_0000 | 62u32.wrapping_neg() & 0x3f_ffff, 0x0100_0000]);
    Image::of_words(0x4000_0000, &words)
}

fn main() {
    const INSTRUCTIONS: u64 = 20_000_000;
    for (name, address, access) in [
        ("ld from memory", 0x4000_1000, 0xc400_6010),
        ("ld from a timer's counter", 0x8000_0000, 0xc400_6310),
        ("ld from a serial line's status", 0x8000_0000, 0xc400_6104),
        ("ld from the interrupt controller", 0x8000_0000, 0xc400_6204),
        ("st to a timer's reload value", 0x8000_0000, 0xc420_6314),
        ("st to the interrupt controller", 0x8000_0000, 0xc020_6208),
    ] {
        let mut machine = Machine::with_image(&Configuration::default(), &image(address, access))
            .expect("it fits");
        let begin = Instant::now();
        assert_eq!(machine.run(INSTRUCTIONS, &mut ()), Stop::Limit);
        let nanoseconds = begin.elapsed().as_nanos() as f64 / INSTRUCTIONS as f64;
        println!("{name}: {nanoseconds:.1} ns an instruction");
    }
}
