//! A machine whose cores sleep, under a device of which nobody knows whether it will wake one: a run ends when it was
//! to, and the same one in parts does the same.

use metes_leon3::devices::{Access, Device, Identity};
use metes_leon3::{Configuration, Image, Machine, Stop};

/// Sleep, for ever.
const PROGRAM: [u32; 3] = [
    0xa780_0000, // wr %g0, %asr19
    0x10bf_ffff, // back to it
    0x0100_0000, // nop
];

/// Acts every 400 cycles, and to no effect.
pub(crate) struct Ticker(pub(crate) u64);

impl Device for Ticker {
    fn name(&self) -> &'static str {
        "ticker"
    }

    fn identity(&self) -> Option<Identity> {
        None
    }

    fn read(&mut self, _offset: u32, _access: &mut Access) -> u32 {
        0
    }

    fn write(&mut self, _offset: u32, _value: u32, _access: &mut Access) {}

    fn next(&self) -> u64 {
        self.0
    }

    fn advance(&mut self, access: &mut Access) {
        self.0 = access.now + 400;
    }

    fn save(&self) -> Vec<u8> {
        self.0.to_le_bytes().to_vec()
    }

    fn restore(&mut self, state: &[u8]) -> Result<(), String> {
        let state = state.try_into().map_err(|_| "it has 8 bytes".to_owned())?;
        self.0 = u64::from_le_bytes(state);
        Ok(())
    }
}

fn machine(cores: usize) -> Machine {
    let configuration = Configuration {
        cores,
        ..Configuration::default()
    };
    let image = Image::of_words(0x4000_0000, &PROGRAM);
    let mut machine = Machine::with_image(&configuration, &image).expect("it fits");
    machine
        .bus
        .attach(0x8000_0800, 0x100, Box::new(Ticker(400)));
    machine
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
