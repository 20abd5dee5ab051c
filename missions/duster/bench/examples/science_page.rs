//! An invented mission: `science_page DIR [SECONDS [SEED]]` writes its telemetry (`telemetry.bin`), what it should tell
//! (`truth.json`), its page (`science.html`) and the page's document (`view.json`); and of a page that is served, what it
//! is when half of it has come (`served.html`), and what it is told when all has (`later.json`).

use std::path::PathBuf;

use metes_duster::page::invented::Mission;
use metes_duster::page::{PLACES, PLACES_SERVED, Science};

fn main() -> std::io::Result<()> {
    let mut words = std::env::args().skip(1);
    let Some(place) = words.next().map(PathBuf::from) else {
        eprintln!("usage: science_page DIR [SECONDS [SEED]]");
        std::process::exit(2);
    };
    let number = |word: Option<String>| word.and_then(|word| word.parse::<u64>().ok());
    let seconds = number(words.next()).unwrap_or(10).clamp(1, 3600);
    let mission = Mission::new(number(words.next()).unwrap_or(19), seconds as u32);
    let mut science = Science::new(PLACES);
    science.take_bytes(&mission.bytes());
    science.end();
    let (early, late) = mission.packets.split_at(mission.packets.len() / 2);
    let mut served = Science::new(PLACES_SERVED);
    early.iter().for_each(|packet| served.take(packet));
    let half = served.page("DUSTER", Some(50));
    late.iter().for_each(|packet| served.take(packet));
    served.end();
    std::fs::create_dir_all(&place)?;
    std::fs::write(place.join("served.html"), half)?;
    std::fs::write(
        place.join("later.json"),
        served.view(early.len() as u64).to_string(),
    )?;
    std::fs::write(place.join("telemetry.bin"), mission.bytes())?;
    std::fs::write(
        place.join("truth.json"),
        serde_json::to_vec(&mission.truth)?,
    )?;
    std::fs::write(place.join("science.html"), science.page("DUSTER", None))?;
    std::fs::write(place.join("view.json"), science.view(0).to_string())
}
