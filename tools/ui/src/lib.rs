//! The pages of Metes: report, explorer, device watch, experiment, mesh, mission, laboratory. All are one skeleton with one style and
//! one set of scripts, to which each adds its own; what a page shows is JSON that goes in last. `README.md`
//! beside this crate says what each page does.
//!
//! Invariant: each marker of the skeleton occurs once in it and in no part, and data goes in last with every
//! `<` escaped, so that no string of it is taken for a marker or ends an element.

pub mod columns;

/// Defines the pages: what each adds to the style and the scripts of all, in order.
macro_rules! pages {
    ($($(#[$about:meta])* $name:ident = [$($style:literal)*], [$($script:literal)*];)*) => {
        $($(#[$about])*
        pub const $name: Page = Page {
            styles: &[$(include_str!(concat!("../", $style))),*],
            scripts: &[$(include_str!(concat!("../", $script))),*],
        };)*
        #[cfg(test)]
        const ALL: &[(&str, Page)] = &[$((stringify!($name), $name)),*];
    };
}

/// The skeleton of every page.
const SKELETON: &str = include_str!("../page.html");
/// The style of every page.
const PAGE_STYLE: &str = include_str!("../page.css");
/// The scripts of every page, in their order.
const PAGE_SCRIPTS: [&str; 7] = [
    include_str!("../page-base.js"),
    include_str!("../page-frame.js"),
    include_str!("../page-scale.js"),
    include_str!("../page-table.js"),
    include_str!("../page-svg.js"),
    include_str!("../page-plot.js"),
    include_str!("../page-points.js"),
];

pages! {
    /// The report of one exploration or tuning; its data: `report.schema.json`.
    REPORT = ["report.css"], [
        "page-profile.js" "interleaved-view.js" "report-data.js" "report-scatter.js" "report-filter.js" "report-table.js"
        "report-curves.js" "report-guarantee.js" "report-beside.js" "report-verdict.js" "report-provenance.js" "report-export.js" "report-main.js"
    ];
    /// The explorer of a whole space; its columns are the bytes beside its data.
    EXPLORER = ["report.css" "explorer.css"], [
        "page-profile.js" "page-columns.js" "explorer-data.js" "explorer-filter.js"
        "explorer-scatter.js" "explorer-parallel.js" "explorer-table.js" "explorer-compare.js" "explorer-advice.js"
        "explorer-emit.js" "explorer-export.js" "explorer-main.js"
    ];
    /// The live view of a device heap.
    WATCH = ["watch.css"], ["watch.js"];
    /// What an experiment or a benchmark found.
    EXPERIMENT = ["experiment.css"], ["experiment-categories.js" "experiment.js"];
    /// One heap for many runs; its data: `docs/runs.md`.
    RUNS = ["experiment.css"], ["runs.js"];
    /// Two traces or two results beside each other.
    COMPARE = ["experiment.css" "compare.css"], ["experiment-categories.js" "compare.js"];
    /// A program's threads in other orders.
    INTERLEAVED = ["experiment.css"], ["interleaved-view.js" "interleaved.js"];
    /// A mesh as it ran; its looks are the bytes beside its data.
    MESH = ["mesh.css"], [
        "page-columns.js" "mesh-data.js" "mesh-picture.js" "mesh-charts.js" "mesh-player.js" "mesh-node.js" "mesh-main.js"
    ];
    /// WebAssembly beside native code and containers, as a laboratory measured them.
    EDGE_LAB = ["edge-lab.css"], ["edge-lab-data.js" "edge-lab-start.js" "edge-lab-kernels.js" "edge-lab-main.js"];
    /// The science of a mission, as it came in or comes in.
    MISSION = ["mission.css"], ["mission-data.js" "mission-sweeps.js" "mission-records.js" "mission-dust.js" "mission-main.js"];
}

/// A page without its data.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    styles: &'static [&'static str],
    scripts: &'static [&'static str],
}

impl Page {
    /// The page of a document, a JSON text; it asks nobody for anything. O(bytes of the page).
    #[must_use]
    pub fn fill(&self, json: &str) -> String {
        self.fill_with(false, "", json)
    }

    /// The page of a document, a JSON text, with `bytes` in base64 beside it. A `served` page may ask its
    /// own server, and nobody else. O(bytes of the page).
    #[must_use]
    pub fn fill_with(&self, served: bool, bytes: &str, json: &str) -> String {
        let style = [&[PAGE_STYLE], self.styles].concat().join("\n");
        let script = [&PAGE_SCRIPTS, self.scripts].concat().join("\n");
        let connect = if served { "'self'" } else { "'none'" };
        SKELETON
            .replacen(STYLE, &style, 1)
            .replacen(SCRIPT, &script, 1)
            .replacen(CONNECT, connect, 1)
            .replacen(BYTES, bytes, 1)
            .replacen(DATA, &json.replace('<', "\\u003c"), 1)
    }
}

const STYLE: &str = "/*METES_STYLE*/";
const SCRIPT: &str = "/*METES_SCRIPT*/";
const CONNECT: &str = "/*METES_CONNECT*/";
const BYTES: &str = "/*METES_BYTES*/";
const DATA: &str = "/*METES_DATA*/null";

#[cfg(test)]
mod tests {
    use super::*;

    /// Every part of a page.
    fn parts(page: &Page) -> impl Iterator<Item = &'static str> + use<> {
        let own = page.styles.iter().chain(page.scripts).copied();
        [PAGE_STYLE].into_iter().chain(PAGE_SCRIPTS).chain(own)
    }

    #[test]
    fn each_marker_stands_once_in_the_skeleton_and_in_no_part() {
        for marker in [STYLE, SCRIPT, CONNECT, BYTES, DATA] {
            assert_eq!(SKELETON.matches(marker).count(), 1, "{marker}");
            for (name, page) in ALL {
                assert!(
                    parts(page).all(|part| !part.contains(marker)),
                    "{name}: {marker}"
                );
            }
        }
        assert_eq!(SKELETON.matches("/*METES_").count(), 5);
    }

    #[test]
    fn no_part_ends_its_element() {
        for (name, page) in ALL {
            for part in parts(page) {
                let part = part.to_lowercase();
                assert!(
                    !part.contains("</script") && !part.contains("</style"),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn no_page_names_another_place() {
        for (name, page) in ALL {
            let text = page.fill("1");
            for left in ["http://", "https://", "src=", "METES_"] {
                assert!(!text.contains(left), "{name}: {left}");
            }
        }
    }

    #[test]
    fn a_page_asks_its_own_server_or_nobody() {
        assert!(WATCH.fill("1").contains("connect-src 'none'"));
        assert!(
            WATCH
                .fill_with(true, "", "1")
                .contains("connect-src 'self'")
        );
    }

    #[test]
    fn data_cannot_end_its_element_or_stand_for_a_marker() {
        let page = REPORT.fill(r#"{"a":"</script>/*METES_STYLE*/"}"#);
        assert!(page.contains(r#"{"a":"\u003c/script>/*METES_STYLE*/"}"#));
        assert_eq!(
            page.matches("</script").count(),
            SKELETON.matches("</script").count()
        );
    }
}
