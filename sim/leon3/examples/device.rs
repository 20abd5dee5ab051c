//! A device of one's own: an A/D converter that samples each so many cycles and interrupts.
//!
//! `cargo run -p metes-leon3 --example device`; `docs/leon3-devices.md` tells about it.

// ANCHOR: device
use metes_leon3::devices::{Access, Device, Identity, NEVER};

/// Samples every `period` cycles. Registers: 0 the period, 4 the latest sample, 8 how many there were.
struct Converter {
    period: u64,
    next: u64,
    sample: u32,
    samples: u32,
}

impl Device for Converter {
    fn name(&self) -> &'static str {
        "A/D converter"
    }

    /// What software finds it by. Vendors and devices of GRLIB are in its `devices` package; 0xff is nobody's.
    fn identity(&self) -> Option<Identity> {
        Some(Identity {
            vendor: 0xff,
            device: 0xadc,
            version: 0,
            interrupt: 5,
        })
    }

    fn read(&mut self, offset: u32, _access: &mut Access) -> u32 {
        match offset {
            0 => self.period as u32,
            4 => self.sample,
            8 => self.samples,
            _ => 0,
        }
    }

    fn write(&mut self, offset: u32, value: u32, access: &mut Access) {
        if offset == 0 {
            self.period = value.into();
            self.next = if value == 0 {
                NEVER
            } else {
                access.now + self.period
            };
        }
    }

    /// When it wants to act; nobody asks in between.
    fn next(&self) -> u64 {
        self.next
    }

    /// Called at that cycle, or a little later. What it does follows from the cycle it wanted, so that nothing drifts.
    fn advance(&mut self, access: &mut Access) {
        self.sample = (self.next / 10) as u32;
        self.samples += 1;
        self.next += self.period;
        access.interrupt(5);
    }

    fn save(&self) -> Vec<u8> {
        let words = [
            self.period,
            self.next,
            self.sample.into(),
            self.samples.into(),
        ];
        words.iter().flat_map(|word| word.to_be_bytes()).collect()
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        let word = |at: usize| {
            bytes
                .get(8 * at..8 * at + 8)?
                .try_into()
                .ok()
                .map(u64::from_be_bytes)
        };
        let words = || Some((word(0)?, word(1)?, word(2)? as u32, word(3)? as u32));
        (self.period, self.next, self.sample, self.samples) = words().ok_or("not four words")?;
        Ok(())
    }
}
// ANCHOR_END: device

// ANCHOR: machine
use metes_leon3::{Configuration, End, Image, Machine, Stop};

pub(crate) fn main() {
    let image = Image::of_words(
        0x4000_0000,
        &[
            0x0320_0200, // sethi %hi(0x80080000), %g1
            0x8410_23e8, // mov 1000, %g2
            0xc420_6000, // st %g2, [%g1]              sample each 1000 cycles
            0x0720_0000, // sethi %hi(0x80000000), %g3
            0x8810_2020, // mov 1 << 5, %g4
            0xc820_e240, // st %g4, [%g3 + 0x240]      let interrupt 5 through
            0xa780_0000, // wr %g0, %asr19             sleep until it comes
            0xca00_6004, // ld [%g1 + 4], %g5          the sample
            0x91d0_2000, // ta 0
        ],
    );
    let mut machine = Machine::with_image(&Configuration::default(), &image).unwrap();
    let converter = Converter {
        period: 0,
        next: NEVER,
        sample: 0,
        samples: 0,
    };
    machine.bus.attach(0x8008_0000, 0x100, Box::new(converter));

    assert_eq!(machine.run(1000, &mut ()), Stop::End(End::Halt { core: 0 }));
    let sample = machine.cores()[0].registers.get(5);
    println!(
        "at cycle {} the core had read sample {sample}",
        machine.cycles()
    );

    // The device again, to look at or to change.
    let converter: &mut Converter = machine.bus.device(0).unwrap();
    assert_eq!((converter.samples, converter.sample), (1, sample));
}
// ANCHOR_END: machine
