//! Requests over HTTP with faults, clients that go away and secrets: `faults [REQUESTS] [SEED]`, by default 10⁶. Ends with
//! status 1 if anything leaked, was answered wrongly, or was not given back.

#[allow(dead_code, reason = "the campaign asks by the Unix socket alone")]
#[path = "../tests/it/served.rs"]
mod served;

#[path = "../tests/it/service/campaign.rs"]
mod campaign;

fn main() {
    let mut numbers = std::env::args().skip(1).map(|word| {
        word.parse::<u64>().unwrap_or_else(|_| {
            eprintln!("faults: `{word}` is no number: give REQUESTS and SEED");
            std::process::exit(2);
        })
    });
    let requests = numbers.next().unwrap_or(1_000_000);
    let found = campaign::campaign(requests, numbers.next().unwrap_or(1));
    println!("{found:#?}");
    let campaign::Found {
        unexpected,
        leaked,
        missed,
        slots,
        ..
    } = found;
    if [unexpected, leaked, missed, slots] != [0; 4] {
        std::process::exit(1);
    }
}
