//! The science of the mission as a page: telemetry in, one HTML file or the JSON that a served page asks for out.
//!
//! ```
//! use metes_duster::page::Science;
//! let mut science = Science::new(1024);
//! science.take_bytes(&[]);
//! assert!(science.page("DUSTER", None).contains("\"packets\":0"));
//! ```
//!
//! *Invariant:* the page knows what the telemetry says and nothing else: no truth of the instrument reaches it.

pub mod invented;
pub mod langmuir;
pub mod ranges;
pub mod record;
mod science;
pub mod serve;
mod text;
pub mod windows;

use metes_duster_instrument::physics;
use metes_duster_protocol::Probe;
use metes_duster_protocol::definitions::{EVENTS, REPORTS};
use serde_json::{Value, json};

pub use science::{Scale, Science};

/// Version of the page's document.
const VERSION: u64 = 1;
/// Places of a picture over time, on a page that is a file.
pub const PLACES: usize = 4096;
/// Places of a picture over time, on a page that asks again and again.
pub const PLACES_SERVED: usize = 1024;

/// Probes as the page names them, in the order of their numbers.
const NAMES: [(Probe, &str); 3] = [
    (Probe::Langmuir, "Langmuir"),
    (Probe::Efield, "E-field"),
    (Probe::Dust, "DUST"),
];

impl Science {
    /// The page of all that has come, under a title; `every` milliseconds it asks its server for more.
    #[must_use]
    pub fn page(&self, title: &str, every: Option<u64>) -> String {
        let mut document = self.view(0);
        document["version"] = json!(VERSION);
        document["title"] = json!(title);
        document["every"] = json!(every);
        metes_ui::MISSION.fill_with(every.is_some(), "", &document.to_string())
    }

    /// What is new after so many packets: sweeps, impacts and reports of later ones, pictures over time whole.
    #[must_use]
    pub fn view(&self, after: u64) -> Value {
        // Who knows more packets than there are knows those of a unit that ran before.
        let after = if after > self.packets { 0 } else { after };
        let scales = Scales::of_instrument();
        let probes = NAMES.map(|(probe, name)| {
            let known = &self.probes[probe as usize];
            let mut document = json!(known.record.columns());
            let scale = &scales.probes[probe as usize];
            document["name"] = json!(name);
            document["unit"] = json!(scale.unit);
            document["scale"] = json!(scale.scale);
            document["rate"] = json!(known.rate);
            document["samples"] = json!(known.samples);
            document["missing"] = json!(known.missing());
            document
        });
        let sweeps = self.sweeps.iter().filter(|one| one.packet > after);
        json!({
            "version": VERSION,
            "packets": self.packets,
            "bytes": self.bytes,
            "lost": self.lost,
            "unread": self.unread,
            "now": self.now,
            "mode": self.mode.map(metes_duster_protocol::Mode::name),
            "ended": self.ended,
            "bias": scales.bias,
            "probes": probes,
            "windows": self.windows.columns(),
            "sweeps": sweeps.map(|one| {
                let mut document = json!(one);
                match one.fit() {
                    Ok(fit) => document["fit"] = json!(fit),
                    Err(why) => document["unfit"] = json!(why),
                }
                document
            }).collect::<Vec<_>>(),
            "dust": self.dust.iter().filter(|one| one.packet > after).collect::<Vec<_>>(),
            "reports": self.reports.iter().filter(|one| one.packet > after).collect::<Vec<_>>(),
            "services": self.services.iter().map(|(&(service, subtype), count)| {
                json!([service, subtype, name(service, subtype), count])
            }).collect::<Vec<_>>(),
            "counts": {
                "windows": self.windows.count,
                "sweeps": self.swept,
                "dust": self.impacts,
                "slowest": self.slowest,
            },
        })
    }
}

/// How codes become values: what the instrument's converters are made for.
struct Scales {
    probes: [Scale; 3],
    bias: Scale,
}

impl Scales {
    fn of_instrument() -> Self {
        let of = |unit, scale| Scale { unit, scale };
        let most = f64::from(physics::MOST);
        // A grain of 1 fC draws 1 fC / tau at first.
        let ampere = 1e-15 / physics::TAU / physics::CODES_A_FEMTOCOULOMB;
        Scales {
            probes: [
                of("A", physics::FULL_CURRENT / most),
                of("V/m", physics::FULL_FIELD / most),
                of("A", ampere),
            ],
            bias: of("V", physics::FULL_BIAS / 32_768.0),
        }
    }
}

/// What a kind of report is called.
fn name(service: u8, subtype: u8) -> String {
    let report = REPORTS.iter().find(|one| one.key == (service, subtype));
    let called = match (service, subtype) {
        (3, 25) => "housekeeping",
        (5, 1..=4) if EVENTS.iter().any(|one| one.extra as u8 == subtype) => "events",
        _ => report.map_or("unknown", |one| one.name),
    };
    called.to_lowercase().replace('_', " ")
}
