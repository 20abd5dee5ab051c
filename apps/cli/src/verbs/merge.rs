//! `metes merge`.

use std::time::Instant;

use metes_explore::engine::{
    EngineError, Explorer, Folder, ObjectiveSet, Plan, Source, Work, finish,
};
use metes_explore::report::{DemandFigures, ProfileFigures};
use metes_explore::{Arena, Hierarchy, Space, write_json};

use super::explore::described::{KIND, PROFILE, Shown, show};
use crate::arguments::Merge;
use crate::error::Failure;
use crate::results::Results;
use crate::space::{self, Text};
use crate::tracefile;

pub(crate) fn run(arguments: &Merge, json: bool) -> Result<u8, Failure> {
    let start = Instant::now();
    let mut parts = Vec::with_capacity(arguments.directories.len());
    for directory in &arguments.directories {
        parts.push(Folder::read(directory)?);
    }
    let Some((first, manifest)) = parts.first() else {
        return Err(Failure::input("give the directories of the parts"));
    };
    if manifest.space == Space::SUGGESTED {
        return Err(Failure::input(format!(
            "{} holds a search among suggested heaps, which has no parts to join: explore a described \
             space with --space and --shard",
            first.directory().display()
        )));
    }
    let origin = first.origin()?;
    let path = arguments.trace.as_ref().unwrap_or(&origin.trace);
    let trace = tracefile::read(path)?;
    let events = tracefile::events(&trace)?;
    let profile = metes_trace::profile(&trace);
    drop(trace);
    let terms = match &origin.guarantee {
        Some(wanted) => Some(wanted.of(&DemandFigures::of(&profile), &Arena::HOST)?),
        None => None,
    };
    let profile = ProfileFigures::of(&profile);
    let text = Text {
        name: origin.space_name.clone(),
        text: origin.space.clone(),
    };
    let space = space::read(&text, &events)?;
    let objectives: ObjectiveSet = (manifest.objectives.parse()).map_err(Failure::input)?;
    let plan = Plan {
        objectives,
        end_early: manifest.end_early,
        ..Plan::default()
    };
    let hierarchy = match &origin.levels {
        Some(levels) => Some(Hierarchy::resolve(levels)?),
        None => None,
    };
    let mut explorer = Explorer::new(&space, &events, plan, 0);
    if let Some(hierarchy) = &hierarchy {
        explorer = explorer.on(hierarchy)?;
    }
    if let Some(terms) = terms {
        explorer = explorer.guaranteeing(terms);
    }
    let own = explorer.manifest(metes_explore::engine::Method::Exhaustive, 0, 0);
    let results = Results::open(&arguments.output, KIND)?;
    let folder = Folder::open(&arguments.output, &own, arguments.fresh)?;
    folder.note_origin(&origin).map_err(EngineError::from)?;
    for (part, manifest) in &parts {
        folder.take_over(part, &own, manifest, explorer.units())?;
    }
    folder.all_there(explorer.units())?;
    let source = Source::Units(&folder);
    let (summary, found) = finish(results.gathered(), &own, explorer.evaluator(), source)?;
    write_json(&results.gathered().join(PROFILE), &profile)?;
    results.replace()?;
    let shown = Shown {
        directory: &arguments.output,
        summary: &summary,
        found: &found,
        space: &space,
        explorer: &explorer,
        why: "joined from parts",
        work: Work {
            found: summary.configurations,
            ..Work::default()
        },
        seconds: start.elapsed().as_secs_f64(),
    };
    show(&shown, json)
}
