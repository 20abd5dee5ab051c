//! The pages of Metes: report, explorer, device watch, experiment. Each is a skeleton with markers, styles
//! and scripts that pages share; what a page shows is JSON that goes in last. `README.md` beside this crate
//! says what each page does.
//!
//! Invariant: each marker of a skeleton occurs once in it and in no part, and data goes in last with every
//! `<` escaped, so that no string of it is taken for a marker or ends an element.

/// Defines the pages: a skeleton, styles and scripts, in their order.
macro_rules! pages {
    ($($(#[$about:meta])* $name:ident = $skeleton:literal, [$($style:literal)*], [$($script:literal)*];)*) => {
        $($(#[$about])*
        pub const $name: Page = Page {
            skeleton: include_str!(concat!("../", $skeleton)),
            styles: &[$(include_str!(concat!("../", $style))),*],
            scripts: &[$(include_str!(concat!("../", $script))),*],
        };)*
        #[cfg(test)]
        const ALL: &[(&str, Page)] = &[$((stringify!($name), $name)),*];
    };
}

pages! {
    /// The report of one exploration or tuning; its data: `report.schema.json`.
    REPORT = "report.html", ["report.css"], [
        "report-base.js" "report-scale.js" "report-data.js" "report-scatter.js" "report-filter.js"
        "report-table.js" "report-curves.js" "report-verdict.js" "report-profile.js" "report-export.js"
        "report-main.js"
    ];
    /// The explorer of a whole space. Marks: `CONNECT` (what it may ask), `PLOTLY` and `BYTES` (the plotting
    /// library and the columns, compressed, as base64).
    EXPLORER = "explorer.html", ["report.css" "explorer.css"], [
        "report-base.js" "report-scale.js" "report-table.js" "report-profile.js" "explorer-data.js"
        "explorer-filter.js" "explorer-scatter.js" "explorer-parallel.js" "explorer-table.js"
        "explorer-charts.js" "explorer-compare.js" "explorer-emit.js" "explorer-export.js"
        "explorer-main.js"
    ];
    /// The live view of a device heap. Mark: `CONNECT`.
    WATCH = "watch.html", ["report.css" "watch.css"], ["experiment.js" "watch.js"];
    /// What an experiment found, written as HTML into `<!--METES_BODY-->`; its title in `METES_TITLE`.
    EXPERIMENT = "experiment.html", ["report.css" "experiment.css"], ["experiment.js"];
}

/// A page without its data.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    skeleton: &'static str,
    styles: &'static [&'static str],
    scripts: &'static [&'static str],
}

impl Page {
    /// The page with styles and scripts in place, then each of `marks` (`("CONNECT", "'none'")` takes the
    /// place of `/*METES_CONNECT*/`), then `json`, a JSON text. Pages that have no data leave it empty.
    /// O(bytes of the page).
    #[must_use]
    pub fn fill(&self, marks: &[(&str, &str)], json: &str) -> String {
        let mut page = self
            .skeleton
            .replacen(STYLE, &self.styles.join("\n"), 1)
            .replacen(SCRIPT, &self.scripts.join("\n"), 1);
        for (mark, text) in marks {
            page = page.replacen(&format!("/*METES_{mark}*/"), text, 1);
        }
        page.replacen(DATA, &json.replace('<', "\\u003c"), 1)
    }
}

const STYLE: &str = "/*METES_STYLE*/";
const SCRIPT: &str = "/*METES_SCRIPT*/";
const DATA: &str = "/*METES_DATA*/null";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_marker_stands_once_in_the_skeleton_and_in_no_part() {
        for (name, page) in ALL {
            let own: Vec<&str> = page
                .skeleton
                .match_indices("/*METES_")
                .map(|(at, _)| &page.skeleton[at..][..page.skeleton[at..].find("*/").unwrap() + 2])
                .collect();
            assert!(own.contains(&STYLE) && own.contains(&SCRIPT), "{name}");
            for marker in own {
                assert_eq!(page.skeleton.matches(marker).count(), 1, "{name}: {marker}");
                let mut parts = page.styles.iter().chain(page.scripts);
                assert!(!parts.any(|part| part.contains(marker)), "{name}: {marker}");
            }
        }
    }

    #[test]
    fn no_part_ends_its_element() {
        for (name, page) in ALL {
            for part in page.styles.iter().chain(page.scripts) {
                let part = part.to_lowercase();
                assert!(
                    !part.contains("</script") && !part.contains("</style"),
                    "{name}"
                );
            }
        }
    }

    #[test]
    fn data_cannot_end_its_element_or_stand_for_a_marker() {
        let page = REPORT.fill(&[], r#"{"a":"</script>/*METES_STYLE*/"}"#);
        assert!(page.contains(r#"{"a":"\u003c/script>/*METES_STYLE*/"}"#));
        assert_eq!(
            page.matches("</script").count(),
            REPORT.skeleton.matches("</script").count()
        );
        let page = EXPLORER.fill(
            &[("CONNECT", "'none'"), ("PLOTLY", "p"), ("BYTES", "b")],
            "1",
        );
        assert!(!page.contains("METES_"), "{page}");
    }
}
