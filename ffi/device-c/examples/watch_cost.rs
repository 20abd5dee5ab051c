//! What watching a heap costs: instructions of allocate and free through the C functions, call and
//! return included, with and without a board.
//!
//!     cargo run --release -p metes-device-c --example watch_cost target/release/libmetes_device_c.so
//!
//! Several libraries are measured on the same requests, so that two builds can be compared.
//! Single-stepping needs x86-64 under Linux.

use std::process::ExitCode;

use libloading::{Library, Symbol};
use metes_step::{Call, Stepper};

/// `metes_device_options`: cap, addresses, page, granule, moves, blocks; streams and batch, wait
/// and watch, two to a word.
type Options = [u64; 8];

const MIB: u64 = 1 << 20;
const CALLS: usize = 600;

/// Instructions of calls.
#[derive(Default)]
struct Counted {
    sum: u64,
    calls: u64,
    most: u64,
}

impl Counted {
    fn note(&mut self, instructions: u64) {
        self.sum += instructions;
        self.calls += 1;
        self.most = self.most.max(instructions);
    }

    fn show(&self) -> String {
        let mean = self.sum as f64 / self.calls.max(1) as f64;
        format!("{mean:9.1} {:7}", self.most)
    }
}

/// Allocates and frees on a heap that is watched or not: requests of up to so many bytes.
fn measure(
    library: &Library,
    watch: u64,
    largest: u32,
) -> Result<[Counted; 2], Box<dyn std::error::Error>> {
    type Create = unsafe extern "C" fn(u64, u64, *const Options) -> *mut ();
    // SAFETY: the functions of `metes_device.h`, by their types there.
    let (create, allocate, free, destroy): (
        Symbol<Create>,
        Symbol<*const ()>,
        Symbol<*const ()>,
        Symbol<unsafe extern "C" fn(*mut ())>,
    ) = unsafe {
        (
            library.get(b"metes_device_create_offsets\0")?,
            library.get(b"metes_device_allocate\0")?,
            library.get(b"metes_device_free\0")?,
            library.get(b"metes_device_destroy\0")?,
        )
    };
    let options: Options = [4096 * MIB, 0, 0, 0, 0, 4096, 0, watch << 32];
    // SAFETY: options as the header has them.
    let heap = unsafe { create(4096 * MIB, 2 * MIB, &raw const options) };
    if heap.is_null() {
        return Err("no heap was made".into());
    }
    let mut stepper = Stepper::new()?;
    let mut counted = [Counted::default(), Counted::default()];
    let mut live: Vec<u64> = Vec::new();
    let mut state = 1_u64;
    let mut draw = move |end: u64| {
        // A linear congruential generator (Knuth's MMIX).
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % end
    };
    for _ in 0..CALLS {
        let (function, arguments, kind) = if live.len() < 200 && (live.len() < 20 || draw(2) == 0) {
            live.push(0);
            let last = live.len() - 1;
            let address = &raw mut live[last];
            let shift = 10 + draw(u64::from(largest) - 9);
            let bytes = (1 << shift) - draw(1 << (shift - 1));
            let stream = draw(2) * 16;
            let arguments = [
                heap as usize,
                bytes as usize,
                256,
                stream as usize,
                address as usize,
            ];
            (*allocate, arguments, 0)
        } else {
            let place = draw(live.len() as u64) as usize;
            let address = live.swap_remove(place);
            (*free, [heap as usize, address as usize, 0, 0, 0], 1)
        };
        let call = Call {
            function: function as usize,
            arguments,
        };
        // SAFETY: functions of the heap with their arguments; the place for the address lives.
        let (status, instructions) = unsafe { stepper.call(call) };
        if status as u32 != 0 {
            return Err(format!("a call ended with {status}").into());
        }
        counted[kind].note(instructions);
    }
    // SAFETY: made above, and not used any more.
    unsafe { destroy(heap) };
    Ok(counted)
}

fn main() -> ExitCode {
    let libraries: Vec<String> = std::env::args().skip(1).collect();
    if libraries.is_empty() {
        eprintln!("watch_cost: name a libmetes_device_c.so");
        return ExitCode::from(2);
    }
    println!("                                allocate            free");
    println!("bytes up to  watched       mean    most     mean    most  library");
    for name in &libraries {
        // SAFETY: it runs nothing of its own when it is loaded.
        let library = match unsafe { Library::new(name) } {
            Ok(library) => library,
            Err(error) => {
                eprintln!("watch_cost: {error}");
                return ExitCode::from(2);
            }
        };
        for (largest, bytes) in [(16, "64 KiB"), (24, "16 MiB")] {
            for (watch, watched) in [(2, "no"), (1, "yes")] {
                match measure(&library, watch, largest) {
                    Ok([allocate, free]) => println!(
                        "{bytes:>11}  {watched:>7}  {} {}  {name}",
                        allocate.show(),
                        free.show()
                    ),
                    Err(error) => {
                        eprintln!("watch_cost: {name}: {error}");
                        return ExitCode::from(2);
                    }
                }
            }
        }
    }
    ExitCode::SUCCESS
}
