//! Random telecommands for the host build of core 0, with faults in between:
//! `cargo run --release -p metes-duster-application --example telecommands -- 10000000`.

use std::time::Instant;

use metes_duster_application::testing::campaign::{self, Outcome};

/// Telecommands for one unit.
const PORTION: u64 = 100_000;

fn main() {
    let Some(telecommands) = number() else {
        eprintln!("how many telecommands? For example: telecommands 1000000 [SEED]");
        std::process::exit(2);
    };
    let seed: u64 = std::env::args()
        .nth(2)
        .and_then(|word| word.parse().ok())
        .unwrap_or(1);
    let begun = Instant::now();
    let mut all = Outcome::default();
    let mut left = telecommands;
    for portion in 0.. {
        if left == 0 {
            break;
        }
        let outcome = campaign::run(seed + portion, left.min(PORTION));
        left -= outcome.telecommands;
        all.telecommands += outcome.telecommands;
        all.answered += outcome.answered;
        all.accepted += outcome.accepted;
        all.not_started += outcome.not_started;
        all.not_completed += outcome.not_completed;
        all.completed += outcome.completed;
        all.packets += outcome.packets;
        all.live_at_end += outcome.live_at_end;
    }
    println!("{all:#?}");
    println!(
        "{} telecommands in {:.1} s",
        all.telecommands,
        begun.elapsed().as_secs_f64()
    );
    if all.answered != all.telecommands || all.live_at_end != 0 {
        eprintln!("a telecommand was not answered, or memory was kept");
        std::process::exit(1);
    }
}

fn number() -> Option<u64> {
    std::env::args().nth(1)?.parse().ok()
}
