//! A machine that is resumed goes on as the one that it was taken of; a file that is not whole is refused.

use metes_leon3::devices::{Access, Device, Identity};
use metes_leon3::tools::Trace;
use metes_leon3::{Bus, Configuration, Image, Machine, Model, NoSnapshot, Stop};
use metes_random::Random;
use proptest::prelude::*;

/// Images of windows, interrupts, several cores, floating point, and how many cores each is for.
const IMAGES: [(&str, usize); 6] = [
    ("traps", 1),
    ("interrupts", 1),
    ("casa", 4),
    ("floats", 1),
    ("deep-short", 1),
    ("heap", 1),
];

fn taken(machine: &Machine) -> Vec<u8> {
    let mut bytes = Vec::new();
    machine.snapshot(&mut bytes).unwrap();
    bytes
}

/// Runs on, and gives all there is to see of it.
fn go_on(machine: &mut Machine, most: u64) -> (Stop, Vec<u8>) {
    let mut trace = Trace::new(Vec::new(), true);
    let stop = machine.run(most, &mut trace);
    (stop, trace.finish().unwrap())
}

fn goes_on_the_same(configuration: &Configuration, image: &Image, first: u64, then: u64) {
    let mut whole = Machine::with_image(configuration, image).unwrap();
    whole.run(first, &mut ());
    let mut resumed = Machine::resume(taken(&whole).as_slice()).unwrap();
    assert_eq!(taken(&resumed), taken(&whole), "a copy of a copy");
    assert_eq!(go_on(&mut resumed, then), go_on(&mut whole, then));
    assert!(resumed.bus.ram() == whole.bus.ram());
    assert_eq!(resumed.cycles(), whole.cycles());
    assert_eq!(
        format!("{:?}", resumed.cores()),
        format!("{:?}", whole.cores())
    );
    assert_eq!(taken(&resumed), taken(&whole));
    assert_eq!(resumed.printed(0), whole.printed(0));
    assert_eq!(resumed.bus.notes(), whole.bus.notes());
}

#[test]
fn a_resumed_machine_goes_on_as_the_one_it_was_taken_of() {
    let mut random = Random::new(41);
    for (name, cores) in IMAGES {
        let image = image(name);
        for model in [Model::Uniform, Model::Flat, Model::Caches] {
            let configuration = Configuration {
                cores,
                model,
                memory: 16 << 20,
                ..Configuration::default()
            };
            let mut machine = Machine::with_image(&configuration, &image).unwrap();
            machine.run(3_000_000, &mut ());
            let all = machine.instructions();
            for _ in 0..4 {
                let first = random.below(all);
                goes_on_the_same(&configuration, &image, first, random.below(200_000));
            }
        }
    }
}

use super::image;

/// A machine at work in 8 KiB, and its snapshot.
fn small() -> Vec<u8> {
    // sethi %hi(0x40000000), %g1; add %g2, 1, %g2; st %g2, [%g1 + 0x800]; ba -2; nop
    let words = [
        0x0310_0000,
        0x8400_a001,
        0xc420_6800,
        0x10bf_fffe,
        0x0100_0000,
    ];
    let configuration = Configuration {
        memory: 8192,
        uarts: 2,
        model: Model::Caches,
        ..Configuration::default()
    };
    let image = Image::of_words(0x4000_0000, &words);
    let mut machine = Machine::with_image(&configuration, &image).unwrap();
    machine.bus.set_rom(vec![1, 2, 3, 4]);
    machine.run(100, &mut ());
    taken(&machine)
}

/// The same bytes with the checksums that they should have, so that what is behind them is met.
fn summed_anew(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = bytes
        .get(12..16)
        .map_or(0, |field| u32::from_be_bytes(field.try_into().unwrap()));
    let ends = [16 + length as usize, bytes.len().saturating_sub(4)];
    for end in ends {
        if end + 4 <= bytes.len() {
            let sum = crc32fast::hash(&bytes[..end]);
            bytes[end..end + 4].copy_from_slice(&sum.to_be_bytes());
        }
    }
    bytes
}

#[test]
fn sums_are_found_where_the_format_has_them() {
    assert_eq!(summed_anew(small()), small());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn damaged_files_are_refused(at: prop::sample::Index, flip in 1u8.., cut: prop::sample::Index, kind in 0..3) {
        let whole = small();
        let mut bytes = whole.clone();
        match kind {
            0 => *at.get_mut(&mut bytes) ^= flip,
            1 => bytes.truncate(cut.index(whole.len())),
            _ => bytes.insert(at.index(whole.len()), flip),
        }
        prop_assume!(bytes != whole);
        let error = Machine::resume(bytes.as_slice()).err();
        prop_assert!(error.is_some());
    }

    /// Damage with a right checksum gives a machine or an error: no panic, no memory without end.
    #[test]
    fn forged_files_do_no_harm(places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6)) {
        let mut bytes = small();
        let state = 16 + 900;
        for (at, value) in places {
            // Nearly all is of tags and pages: the rest is what may be wrong.
            let index = at.index(state.min(bytes.len()));
            bytes[index] = value;
        }
        let _ = Machine::resume(summed_anew(bytes).as_slice());
    }

    #[test]
    fn what_is_no_snapshot_is_refused(bytes: Vec<u8>) {
        prop_assert!(Machine::resume(bytes.as_slice()).is_err());
    }
}

#[test]
fn another_version_is_told() {
    let mut bytes = small();
    bytes[11] = 99;
    let error = Machine::resume(bytes.as_slice()).err().unwrap();
    assert!(matches!(error, NoSnapshot::Version { is: 99 }), "{error}");
}

/// Counts what is written to it.
struct Counter(u32);

impl Device for Counter {
    fn name(&self) -> &'static str {
        "counter"
    }

    fn identity(&self) -> Option<Identity> {
        None
    }

    fn read(&mut self, _offset: u32, _access: &mut Access) -> u32 {
        self.0
    }

    fn write(&mut self, _offset: u32, _value: u32, _access: &mut Access) {
        self.0 += 1;
    }

    fn save(&self) -> Vec<u8> {
        self.0.to_be_bytes().to_vec()
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), String> {
        let bytes = bytes.try_into().map_err(|_| "not a number".to_owned())?;
        self.0 = u32::from_be_bytes(bytes);
        Ok(())
    }
}

#[test]
fn devices_of_a_user_are_attached_again() {
    const BASE: u32 = 0x8000_5000;
    // sethi %hi(BASE), %g1; st %g0, [%g1]; ba -1; nop
    let image = Image::of_words(
        0x4000_0000,
        &[0x0320_0014, 0xc020_4000, 0x10bf_ffff, 0x0100_0000],
    );
    let mut machine = Machine::with_image(&Configuration::default(), &image).unwrap();
    machine.bus.attach(BASE, 0x100, Box::new(Counter(0)));
    machine.run(31, &mut ());
    let bytes = taken(&machine);
    let error = Machine::resume(bytes.as_slice()).err().unwrap();
    assert!(error.to_string().contains("counter"), "{error}");
    let attach = |_: &Configuration, bus: &mut Bus| bus.attach(BASE, 0x100, Box::new(Counter(0)));
    let resumed = Machine::resume_with(bytes.as_slice(), attach).unwrap();
    assert_eq!(taken(&resumed), bytes);
}
