//! The heaps of the front on the platform, against those of operating systems.

use metes_config::Config;
use metes_explore::{EnergyError, Replayer};

use super::change;
use super::placed::{self, Placed};
use crate::platform::{Cost, Platform, in_main};
use crate::statistics::mean;
use metes_lab::Figure;

/// A rival: the name of its heap, and what the paper calls it.
const RIVALS: [(&str, &str); 3] = [
    ("kingsley", "Kingsley (Windows CE)"),
    ("lea", "Lea (Linux)"),
    ("ose", "OSE-style"),
];

/// Placed heaps and rivals with their costs.
pub(super) struct Contest {
    placed: Vec<Placed>,
    /// Size classes at the same places, which the paper's space does not have.
    classes: Vec<Placed>,
    /// None for a heap that this build does not have.
    rivals: Vec<(&'static str, Option<Cost>)>,
}

/// A metric.
type Of = fn(&Cost) -> f64;

impl Contest {
    /// Prices every heap of the front at every place, and the rivals in main memory.
    pub(super) fn hold(platform: &Platform<'_>, front: &[Config]) -> Result<Self, EnergyError> {
        let mut replayer = Replayer::new();
        let placed = placed::all(platform, &mut replayer, front)?;
        let classes = placed::all(platform, &mut replayer, &placed::size_classes())?;
        let mut rivals = Vec::new();
        for (name, title) in RIVALS {
            let cost = match metes_config::spec(name) {
                Ok(config) => {
                    let heap = in_main(&config.heap);
                    Some(platform.cost(&mut replayer, &heap, None)?)
                }
                Err(_) => None,
            };
            rivals.push((title, cost));
        }
        Ok(Contest {
            placed,
            classes,
            rivals,
        })
    }

    /// The placed heap of least energy.
    fn best(&self) -> Option<&Placed> {
        least(&self.placed)
    }

    fn measured(&self) -> impl Iterator<Item = (&'static str, &Cost)> {
        let rivals = self.rivals.iter();
        rivals.filter_map(|(title, cost)| Some((*title, cost.as_ref()?)))
    }

    /// A heap's change of a metric against each rival: mean, and lowest.
    fn over(&self, heap: Option<&Placed>, of: Of) -> (Option<f64>, Option<f64>) {
        let changes: Vec<f64> = self
            .measured()
            .filter_map(|(_, rival)| Some(change(of(&heap?.cost), of(rival))))
            .collect();
        (mean(&changes), changes.into_iter().min_by(f64::total_cmp))
    }

    /// The paper's five figures, each named after `what`.
    pub(super) fn summary(&self, what: &str) -> Vec<Figure> {
        let (energy, most_energy) = self.over(self.best(), |cost| cost.energy);
        let (time, most_time) = self.over(self.best(), |cost| cost.time);
        let (footprint, _) = self.over(self.best(), |cost| cost.footprint as f64);
        let who = self.best().map_or_else(String::new, named);
        let figure = |text: &str, paper: f64, ours| {
            Figure::new(format!("{what}{text}"), "%")
                .paper(paper)
                .ours(ours)
        };
        vec![
            figure("energy of the best, mean over rivals", -72.82, energy).note(who),
            figure("time of the same, mean over rivals", -39.74, time),
            figure("footprint of the same, mean over rivals", 14.32, footprint),
            figure("energy, against the worst rival", -82.02, most_energy),
            figure("time, against the worst rival", -64.92, most_time),
        ]
    }

    /// The summary, each rival, and another reading.
    pub(super) fn rows(&self) -> Vec<Figure> {
        let mut rows = self.summary("");
        for (title, rival) in &self.rivals {
            let row = Figure::new(format!("energy, against {title}"), "%");
            rows.push(match rival {
                None => row.note("this heap is not built yet, and in no mean above"),
                Some(rival) => {
                    let best = self.best();
                    let against = best.map(|best| change(best.cost.energy, rival.energy));
                    row.ours(against).note(described(rival))
                }
            });
        }
        rows.extend(self.class_rows());
        let all: Vec<f64> = self.placed.iter().map(|own| own.cost.energy).collect();
        let rivals: Vec<f64> = self.measured().map(|(_, cost)| cost.energy).collect();
        let other = mean(&all).zip(mean(&rivals));
        rows.push(
            Figure::new(
                "energy, mean of all placed heaps against mean of rivals",
                "%",
            )
            .paper(-72.82)
            .ours(other.map(|(all, rivals)| change(all, rivals)))
            .note("another reading of \"on average\""),
        );
        let leakage = self
            .best()
            .map(|best| 100.0 * best.cost.leakage / best.cost.energy);
        rows.push(
            Figure::new("leakage of the best, of its dynamic energy", "%")
                .ours(leakage)
                .note("not in the figures above"),
        );
        rows
    }

    /// What size classes reach at the same places.
    fn class_rows(&self) -> [Figure; 2] {
        let best = least(&self.classes);
        let figure = |what: &str, of: Of| {
            let what = format!("{what} of the best size classes so placed, mean over rivals");
            Figure::new(what, "%").ours(self.over(best, of).0)
        };
        [
            figure("energy", |cost| cost.energy)
                .note(best.map_or_else(String::new, named) + "; not in the paper's space"),
            figure("time", |cost| cost.time),
        ]
    }

    /// Rivals that no placed heap beats in energy.
    pub(super) fn contradicted(&self) -> Vec<String> {
        let beaten = |rival: &Cost| {
            self.best()
                .is_some_and(|best| best.cost.energy < rival.energy)
        };
        self.measured()
            .filter(|(_, rival)| !beaten(rival))
            .map(|(title, _)| format!("no heap takes less energy than {title}"))
            .collect()
    }
}

/// The heap of least energy.
fn least(placed: &[Placed]) -> Option<&Placed> {
    let energy = |placed: &&Placed| placed.cost.energy;
    let placed = placed.iter();
    placed.min_by(|a, b| energy(a).total_cmp(&energy(b)))
}

/// A placed heap in words.
fn named(placed: &Placed) -> String {
    format!(
        "{}; {}; {} B, {:.3} mJ, {:.1} ms; {:.0} % of these accesses near",
        placed.heap,
        placed.place,
        placed.cost.footprint,
        1e3 * placed.cost.energy,
        1e3 * placed.cost.time,
        100.0 * placed.cost.near
    )
}

fn described(cost: &Cost) -> String {
    format!(
        "{:.3} mJ, {:.1} ms, {} B, {} words of its own{}",
        1e3 * cost.energy,
        1e3 * cost.time,
        cost.footprint,
        cost.own_accesses,
        if cost.beyond {
            "; charged for 8 MiB"
        } else {
            ""
        }
    )
}
