//! Random sets against the simulation: `sets [SETS] [SEED]`, by default 10⁵ sets. Ends with status 1 if an admitted
//! set misses a deadline, a refused one meets all, or a certificate does not hold.

use metes_admission::campaign::{Deadlines, Tally, campaign};

fn main() {
    let mut numbers = std::env::args().skip(1).map(|word| {
        word.parse::<u64>().unwrap_or_else(|_| {
            eprintln!("campaign: `{word}` is no number: give SETS and SEED");
            std::process::exit(2);
        })
    });
    let sets = numbers.next().unwrap_or(100_000);
    let seed = numbers.next().unwrap_or(1);
    let loads = [50, 60, 70, 75, 80, 85, 90, 95, 100, 105];
    let each = sets.div_ceil(2 * loads.len() as u64);
    let mut all = Tally::default();
    for deadlines in [Deadlines::Constrained, Deadlines::Arbitrary] {
        for load in loads {
            all.add(&campaign(each, seed, load, deadlines));
        }
    }
    println!("{all:#?}");
    if !all.holds() {
        std::process::exit(1);
    }
}
