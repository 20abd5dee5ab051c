use super::*;
use crate::devices::beside::{Do, Plain, compare};
use proptest::prelude::*;

const SECTORS: usize = 2;
/// So slow a clock that operations are over in a few cycles.
const FREQUENCY: u32 = 10_000;

/// Every cell there is, and a count of cycles.
struct Cells {
    cells: Vec<u8>,
    address: u32,
    failed: bool,
    buffer: [u8; PAGE],
    /// What is under way: its number, its address, what was in the buffer.
    doing: Option<(u32, usize, [u8; PAGE])>,
    left: u32,
}

impl Plain for Cells {
    fn tick(&mut self, _now: u64) -> u32 {
        let Some((number, at, bytes)) = self.doing else {
            return 0;
        };
        if self.left > 0 {
            self.left -= 1;
            return 0;
        }
        self.doing = None;
        let page = at / PAGE * PAGE;
        for (offset, byte) in bytes.iter().enumerate() {
            match number {
                1 => self.cells[page + offset] &= byte,
                3 => self.buffer[offset] = self.cells[page + offset],
                _ => {}
            }
        }
        if number == 2 {
            let sector = at / SECTOR * SECTOR;
            self.cells[sector..sector + SECTOR].fill(0xff);
        }
        0
    }

    fn read(&mut self, offset: u32, _now: u64) -> (u32, u32) {
        let value = match offset {
            0 => u32::from(self.doing.is_some()) + 2 * u32::from(self.failed),
            4 => self.address,
            12 => (SECTORS * SECTOR) as u32,
            0x200..0x400 => (0..4).fold(0, |word, byte| {
                word << 8 | u32::from(self.buffer[offset as usize - 0x200 + byte])
            }),
            _ => 0,
        };
        (value, 0)
    }

    fn write(&mut self, offset: u32, value: u32, _now: u64) -> u32 {
        match offset {
            0 if value & 2 != 0 => self.failed = false,
            4 => self.address = value,
            8 if self.doing.is_none() => {
                let at = self.address as usize;
                self.failed = at >= self.cells.len() || !(1..=3).contains(&value);
                if !self.failed {
                    self.doing = Some((value, at, self.buffer));
                    // It is done in the cycle that begins when all of them have passed.
                    self.left = [0, 7, 1500, 1][value as usize] - 1;
                }
            }
            0x200..0x400 => {
                for byte in 0..4 {
                    self.buffer[offset as usize - 0x200 + byte] = (value >> (24 - 8 * byte)) as u8;
                }
            }
            _ => {}
        }
        0
    }
}

fn act() -> impl Strategy<Value = (u64, Do)> {
    // Few pages, so that they are met again; beside them what is beyond the end.
    let address = prop_oneof![
        8 => (0u32..2, 0u32..2, 0u32..600).prop_map(|(s, p, o)| s * 0x1_0000 + p * 512 + o),
        1 => 0x1_ff00u32..0x2_0100,
        1 => any::<u32>(),
    ];
    let act = prop_oneof![
        3 => address.prop_map(|address| Do::Write(4, address)),
        4 => prop_oneof![9 => 1u32..4, 1 => any::<u32>()].prop_map(|number| Do::Write(8, number)),
        4 => (0u32..4, any::<u32>()).prop_map(|(word, value)| Do::Write(0x200 + 4 * word, value)),
        4 => (0u32..5).prop_map(|word| Do::Read(0x200 + 4 * word)),
        3 => Just(Do::Read(0)),
        1 => any::<u32>().prop_map(|value| Do::Write(0, value)),
        1 => (0u32..0x180).prop_map(|word| Do::Read(4 * word)),
        1 => (0u32..0x180, any::<u32>()).prop_map(|(word, value)| Do::Write(4 * word, value)),
    ];
    (
        prop_oneof![6 => 0u64..3, 3 => 2u64..10, 1 => 1_490u64..1_520],
        act,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn it_is_as_if_cell_by_cell(all in proptest::collection::vec(act(), 1..60)) {
        let mut plain = Cells {
            cells: vec![0xff; SECTORS * SECTOR],
            address: 0,
            failed: false,
            buffer: [0xff; PAGE],
            doing: None,
            left: 0,
        };
        let mut flash = Flash::new(SECTORS * SECTOR, FREQUENCY);
        compare(&mut flash, &mut plain, &all, 2000);
        let contents = flash.take();
        for page in 0..SECTORS * SECTOR / PAGE {
            let cells = &plain.cells[page * PAGE..(page + 1) * PAGE];
            prop_assert_eq!(&contents.page((page * PAGE) as u32)[..], cells);
        }
    }
}

/// A reset: the contents go on in another machine's flash, an operation under way included.
#[test]
fn contents_outlive_the_machine() {
    let mut flash = Flash::new(MOST, 100_000_000);
    let mut access = Access::new(1000, 0);
    flash.write(4, 0x3ff_fe00, &mut access);
    flash.write(0x200, 0x1234_5678, &mut access);
    flash.write(8, 1, &mut access);
    assert_eq!(flash.read(0, &mut access), BUSY);
    access.now += 69_999;
    assert_eq!(flash.read(0, &mut access), BUSY);
    let contents = flash.take();
    let mut after = Flash::new(MOST, 100_000_000);
    after.put(contents.clone());
    access.now = 0;
    after.write(4, 0x3ff_fe00, &mut access);
    after.write(8, 3, &mut access);
    access.now = 2000;
    assert_eq!(after.read(0, &mut access), 0);
    assert_eq!(after.read(0x200, &mut access), 0x1234_5678);
    assert_eq!(after.read(0x204, &mut access), 0xffff_ffff);
    let mut small = Flash::new(SECTOR, 100_000_000);
    small.put(contents);
    assert_eq!(
        small.contents(),
        &Contents::default(),
        "it lies beyond its end"
    );
}
