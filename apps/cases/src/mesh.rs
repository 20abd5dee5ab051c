//! A heap over the nodes of a many-core platform (`mesh-fig-4`, `mesh-fig-5`): Koutras, Anagnostopoulos, Bartzas and Soudris,
//! IEEE Embedded Systems Letters 2016, section III.
//!
//! The platform is simulated (`metes-platform`), with one set of parameters for all kernels and sizes, each with its source or
//! marked as an assumption; [`fig_5`] runs again with each of the decisive ones changed. Neither the paper nor what it cites
//! has cycle tables of the controller, sizes of heaps or of tiles: signs can be compared, values cannot.
//!
//! Invariant: a figure of two managers is of the same programs on the same platform.

mod fig_4;
mod fig_5;
mod sweep;

use std::path::PathBuf;
use std::rc::Rc;

use metes_heap::{IndexKind, Limits};
use metes_kernels::{NAMES, NotTiled, Picture, record_named};
use metes_platform::managers::FIRST_FIT;
use metes_platform::programs::{NoSlaves, Storm, master_and_slaves, storms};
use metes_platform::{
    Faults, HeapKind, ManagerKind, NotRun, Parameters, Run, Setup, Workload, run,
};
use rayon::prelude::*;

pub use fig_4::fig_4;
pub use fig_5::fig_5;

/// Why an experiment could not be done.
#[derive(Debug, thiserror::Error)]
pub enum MeshError {
    /// The platform cannot be.
    #[error(transparent)]
    NotRun(#[from] NotRun),
    /// The picture is no whole number of tiles.
    #[error(transparent)]
    NotTiled(#[from] NotTiled),
    /// A platform of one node.
    #[error(transparent)]
    NoSlaves(#[from] NoSlaves),
    /// Programs have not come to their end.
    #[error("{manager} on {side} x {side} nodes: {stuck} programs did not end; report this")]
    Stuck {
        /// Who manages.
        manager: ManagerKind,
        /// Nodes in a row.
        side: usize,
        /// How many.
        stuck: usize,
    },
}

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Few tasks, one seed, no sweep.
    Quick,
    /// All of it.
    Whole,
}

/// The kind of heap for which a request has a bound.
pub const TLSF: HeapKind = HeapKind {
    index: IndexKind::Classes {
        second_level: 8,
        probes: 0,
    },
    limits: Limits::NONE,
};

/// What programs do.
#[derive(Clone, Debug)]
pub(crate) enum Load {
    /// A master and slaves; so many tasks a slave.
    Kernel(Workload, usize),
    /// Nodes that take and free at random.
    Storm(Storm),
}

/// What is run.
#[derive(Clone, Debug)]
pub(crate) struct Conditions {
    pub(crate) parameters: Parameters,
    pub(crate) manager: ManagerKind,
    pub(crate) heaps: HeapKind,
}

impl Conditions {
    /// All by default, `metes` with the papers' kind of heap, so that managers and nothing else differ.
    pub(crate) fn new(side: usize, manager: ManagerKind) -> Conditions {
        Conditions {
            parameters: Parameters::sized(side, side),
            manager,
            heaps: FIRST_FIT,
        }
    }

    pub(crate) fn run(&self, load: &Load) -> Result<Run, MeshError> {
        let setup = Setup {
            parameters: self.parameters.clone(),
            manager: self.manager,
            heaps: self.heaps,
            faults: Faults::default(),
            limit: 1 << 40,
            every: 0,
        };
        let nodes = self.parameters.nodes();
        let programs = match load {
            Load::Kernel(workload, each) => {
                let tasks = each * nodes.saturating_sub(1);
                master_and_slaves(&Rc::new(workload.clone()), nodes, tasks)?
            }
            Load::Storm(storm) => storms(*storm, nodes),
        };
        let run = run(&setup, programs)?;
        if !run.stuck.is_empty() {
            return Err(MeshError::Stuck {
                manager: self.manager,
                side: self.parameters.network.columns,
                stuck: run.stuck.len(),
            });
        }
        Ok(run)
    }
}

/// Runs all of these, side by side, in their order.
pub(crate) fn all(runs: &[(Conditions, &Load)]) -> Result<Vec<Run>, MeshError> {
    runs.par_iter()
        .map(|(conditions, load)| conditions.run(load))
        .collect()
}

/// The kernels on a picture, and what the picture is.
pub(crate) fn kernels(side: usize) -> Result<(Vec<Workload>, String), MeshError> {
    let drawn = || {
        let what = format!("a picture of {side} x {side} that is drawn (none is shipped)");
        (Picture::generated(side, side, 1), what)
    };
    let (picture, what) = picture_of_somebody(side).unwrap_or_else(drawn);
    let kernels = NAMES
        .iter()
        .map(|name| {
            let recorded = record_named(name, &picture)?;
            Ok(recorded.expect("a name of the four"))
        })
        .collect::<Result<_, MeshError>>()?;
    Ok((kernels, what))
}

/// The first picture that `METES_IMAGES` names and that is large enough.
fn picture_of_somebody(side: usize) -> Option<(Picture, String)> {
    let paths = std::env::var_os("METES_IMAGES")?;
    let mut paths = std::env::split_paths(&paths).filter(|path| *path != PathBuf::new());
    paths.find_map(|path| {
        let picture = Picture::read(&path).ok()?;
        let part = picture.cropped(0, 0, side, side).ok()?;
        let name = path.file_name()?.to_string_lossy().into_owned();
        Some((part, format!("{side} x {side} pixels of {name}")))
    })
}

/// The growth a step of what has grown from the first to the last in so many steps.
pub(crate) fn growth(first: f64, last: f64, steps: usize) -> f64 {
    (last / first).powf(1.0 / steps as f64)
}

/// The geometric mean.
pub(crate) fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = values
        .into_iter()
        .fold((0.0, 0), |(sum, count), value: f64| {
            (sum + value.ln(), count + 1)
        });
    (sum / f64::from(count.max(1))).exp()
}

/// Mean cycles of a request or a free.
pub(crate) fn an_event(run: &Run) -> f64 {
    run.cycles_an_event().unwrap_or(f64::NAN)
}

/// What holds of every experiment.
pub(crate) fn assumptions(picture: &str) -> Vec<String> {
    vec![
        "the platform is a model: `metes mesh platform` prints its parameters, each with its source or as an \
         assumption; one set for all kernels and sizes"
            .to_owned(),
        format!("kernels run on {picture}, in tiles of 16 x 16; the paper's tiles are not known"),
        "cycles of a request or a free are those that the core waits for it; a free of another node's block is \
         one message that the papers' managers do not wait for, and ours does, to tell whether it was one"
            .to_owned(),
        "the microcoded manager of 2011 and the C allocator are rebuilt from what the paper says of them; heaps are \
         address-ordered first fit under every manager"
            .to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use metes_lab::Report;

    use super::*;

    fn figure(report: &Report, what: &str) -> f64 {
        let row = report.rows.iter().find(|row| row.what.starts_with(what));
        let row = row.unwrap_or_else(|| panic!("no row {what}"));
        row.ours
            .unwrap_or_else(|| panic!("nothing was found of {what}"))
    }

    #[test]
    fn signs_of_figure_4_emerge() {
        let report = fig_4(Effort::Quick, &|_| {}).expect("it can be done");
        assert_eq!(report.contradicted, Vec::<String>::new());
        // Twice as long a map as the paper's own figure says.
        let proposed = figure(&report, "mean: proposed over microcoded, a request");
        assert!((1.2..2.2).contains(&proposed), "{proposed}");
    }

    #[test]
    fn signs_of_figure_5_emerge() {
        let report = fig_5(Effort::Quick, &|_| {}).expect("it can be done");
        assert_eq!(report.contradicted, Vec::<String>::new());
        for (what, least, most) in [
            ("storm: microcoded, growth", 1.15, 1.5),
            ("storm: proposed, growth", 0.95, 1.2),
            ("storm: metes, growth", 0.97, 1.05),
            ("storm: proposed over microcoded on 2 x 2", 1.05, 2.0),
            ("storm: proposed over microcoded on 8 x 8", 0.1, 0.9),
            ("kernels, mean: microcoded, growth", 1.1, 1.7),
        ] {
            let found = figure(&report, what);
            assert!((least..most).contains(&found), "{what}: {found}");
        }
    }

    #[test]
    fn a_growth_is_one_a_step() {
        assert!((growth(1.0, 8.0, 3) - 2.0).abs() < 1e-12);
        assert!((mean([2.0, 8.0]) - 4.0).abs() < 1e-12);
    }
}
