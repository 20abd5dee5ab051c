//! `metes power plan`: the pair of frequencies, or the schedule of speeds, of least energy.

use anstyle::Style;
use metes_power::checker::Planned;
use metes_power::gantt;
use metes_power::plan::{Effort, Plan, plan};
use metes_power::rational::Rational;
use serde::Serialize;

use crate::arguments::PowerPlan;
use crate::error::{DOES_NOT_HOLD, Failure};
use crate::output::{self, GOOD, POOR, Table};
use crate::own::Form;

use super::check::{Late, Pair, said};
use super::{about, system};

/// The answer as JSON: rationals are strings.
#[derive(Serialize)]
struct Answer {
    feasible: bool,
    pair: Option<Pair>,
    energy: Option<String>,
    /// To 15 digits.
    energy_nearly: f64,
    /// No plan takes less.
    bound_nearly: f64,
    optimal: bool,
    /// What the energy is over.
    length: String,
    speeds: Vec<Stretch>,
    task_pairs: Vec<Own>,
    pairs: Vec<Candidate>,
    miss: Option<Late>,
}

#[derive(Serialize)]
struct Stretch {
    job: String,
    core: u32,
    from: String,
    to: String,
    speed: String,
}

#[derive(Serialize)]
struct Own {
    name: String,
    #[serde(flatten)]
    pair: Pair,
}

#[derive(Serialize)]
struct Candidate {
    #[serde(flatten)]
    pair: Pair,
    energy: String,
    feasible: bool,
}

pub(super) fn run(arguments: &PowerPlan, json: bool) -> Result<u8, Failure> {
    let system = system(&arguments.system)?;
    if let Some(path) = &arguments.gantt {
        output::writable(path, Form::Plain)?;
    }
    let effort = Effort {
        per_task: arguments.per_task,
        ..Effort::default()
    };
    let plan = plan(&system, effort).map_err(|error| about(&arguments.system, error))?;
    if let Some(path) = &arguments.gantt {
        let svg = gantt::svg(&drawn(&system, &plan), &system.processor);
        output::export(path, Form::Plain, svg.as_bytes())?;
    }
    if json {
        output::json(&answer(&plan))?;
    } else {
        output::text(&text(&system, &plan))?;
    }
    Ok(if plan.feasible { 0 } else { DOES_NOT_HOLD })
}

/// The schedule, or what a pair makes of the tasks.
fn drawn(system: &metes_power::System, plan: &Plan) -> Vec<Planned> {
    match &plan.pair {
        Some(pair) => gantt::run_at(system, pair),
        None => plan.speeds.clone(),
    }
}

fn answer(plan: &Plan) -> Answer {
    let speeds = plan.speeds.iter().map(|stretch| Stretch {
        job: stretch.job.clone(),
        core: stretch.core,
        from: stretch.from.to_string(),
        to: stretch.to.to_string(),
        speed: stretch.speed.to_string(),
    });
    let own = plan.pairs.iter().map(|(name, pair)| Own {
        name: name.clone(),
        pair: Pair::of(pair),
    });
    let pairs = plan.candidates.iter().map(|candidate| Candidate {
        pair: Pair::of(&candidate.pair),
        energy: candidate.energy.to_string(),
        feasible: candidate.feasible,
    });
    Answer {
        feasible: plan.feasible,
        pair: plan.pair.as_ref().map(Pair::of),
        energy: plan
            .energy
            .as_ref()
            .filter(|_| plan.feasible)
            .map(Rational::to_string),
        energy_nearly: plan.energy_nearly,
        bound_nearly: plan.bound_nearly,
        optimal: plan.optimal,
        length: plan.length.to_string(),
        speeds: speeds.collect(),
        task_pairs: own.collect(),
        pairs: pairs.collect(),
        miss: plan.miss.clone().map(Late::of),
    }
}

/// Most stretches that are listed for people.
const MOST_LISTED: usize = 40;

fn text(system: &metes_power::System, plan: &Plan) -> String {
    if !plan.feasible {
        let late = plan.miss.as_ref().map_or_else(String::new, said);
        return format!("{POOR}not feasible{POOR:#} even at the highest frequencies: {late}\n");
    }
    let energy = plan.energy.as_ref().map(Rational::to_string);
    let energy = energy.filter(|digits| digits.len() <= 40);
    let energy = energy.unwrap_or_else(|| format!("about {}", plan.energy_nearly));
    let proof = if plan.optimal {
        "nothing takes less".to_owned()
    } else {
        format!("nothing takes less than {}", plan.bound_nearly)
    };
    let mut end = format!(
        "{GOOD}feasible{GOOD:#}: energy {energy} in a time of {}; {proof}; checked apart\n",
        plan.length
    );
    if let Some(pair) = &plan.pair {
        let feasible = plan
            .candidates
            .iter()
            .filter(|candidate| candidate.feasible);
        end = format!(
            "cpu {}, memory {}, of {} pairs of which {} meet all deadlines\n{end}",
            pair.cpu,
            pair.memory,
            plan.candidates.len(),
            feasible.count()
        );
    }
    let mut table = Table::new(&["", "cpu", "memory"]);
    for (name, pair) in &plan.pairs {
        table.row(
            Style::new(),
            vec![name.clone(), pair.cpu.to_string(), pair.memory.to_string()],
        );
    }
    let mut said = String::new();
    if !plan.pairs.is_empty() {
        said += &format!("{table}\n");
    }
    if !plan.speeds.is_empty() {
        let mut table = Table::new(&["job", "core", "from", "to", "speed"]);
        for stretch in plan.speeds.iter().take(MOST_LISTED) {
            table.row(
                Style::new(),
                vec![
                    stretch.job.clone(),
                    stretch.core.to_string(),
                    stretch.from.to_string(),
                    stretch.to.to_string(),
                    stretch.speed.to_string(),
                ],
            );
        }
        said += &format!("{table}\n");
        let more = plan.speeds.len().saturating_sub(MOST_LISTED);
        if more > 0 {
            said += &format!("and {more} more: --json lists all\n");
        }
    }
    format!("{said}{}{end}", gantt::text(&drawn(system, plan), 72))
}
