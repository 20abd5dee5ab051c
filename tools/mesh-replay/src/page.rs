//! A recorded run as a page: one HTML file that opens from disk and asks the network for nothing.
//!
//! *Invariant:* the page's counts add up to those of the recording, and each of its looks is one of the recording's.

use metes_platform::Recording;
use metes_platform::recording::{Look, NodeLook};
use metes_ui::columns::{Columns, Place};
use serde_json::json;

/// Most looks times nodes that a page holds: of a recording of more, some looks are left out.
const MOST: usize = 1 << 19;

/// The page of a recorded run, under a title. O(looks and their nodes and links).
///
/// Of a long run of many nodes every so manyth look is kept; counts of those between go to the next that is kept.
#[must_use]
pub fn page(recording: &Recording, title: &str) -> String {
    let nodes = recording.columns * recording.rows;
    let together = (nodes * recording.looks.len()).div_ceil(MOST).max(1);
    let groups: Vec<&[Look]> = recording.looks.chunks(together).collect();
    let mut columns = Columns::default();
    let cycles = groups
        .iter()
        .map(|group| group.last().map(|look| look.cycle));
    let cycles = columns.add(cycles);
    let mut state = |of: fn(NodeLook) -> u64| -> Place {
        columns.add(by_row(&groups, nodes, move |group, node| {
            group.last().map_or(0, |look| of(at(look, node)))
        }))
    };
    let states = json!({
        "live": state(|node| node.live),
        "used": state(|node| node.used),
        "free": state(|node| node.free),
        "parked": state(|node| node.parked),
        "held": state(|node| node.held.into()),
        "dead": state(|node| node.dead.into()),
    });
    let mut count = |of: fn(NodeLook) -> u64| -> Place {
        columns.add(by_row(&groups, nodes, move |group, node| {
            group.iter().map(|look| of(at(look, node))).sum()
        }))
    };
    let counts = json!({
        "home": count(|node| node.home),
        "away": count(|node| node.away),
        "refused": count(|node| node.refused),
        "skips": count(|node| node.skips),
        "lock_wait": count(|node| node.lock_wait),
    });
    let packets = columns.add(by_row(&groups, recording.links.len(), |group, link| {
        let packets = |look: &Look| look.links.get(link).copied().unwrap_or(0);
        group.iter().map(packets).sum()
    }));
    let document = json!({
        "version": 1,
        "title": title,
        "columns": recording.columns,
        "rows": recording.rows,
        "heap": recording.heap,
        "manager": recording.manager,
        "every": recording.every,
        "together": together,
        "looks": groups.len(),
        "links": recording.links,
        "cycles": cycles,
        "states": states,
        "counts": counts,
        "packets": packets,
    });
    metes_ui::MESH.fill_with(false, &columns.packed(), &document.to_string())
}

/// A node in a look.
fn at(look: &Look, node: usize) -> NodeLook {
    look.nodes.get(node).copied().unwrap_or_default()
}

/// A value for each row and group of looks, row by row: what changes little from look to look lies side by side.
fn by_row<'a>(
    groups: &'a [&'a [Look]],
    rows: usize,
    of: impl Fn(&[Look], usize) -> u64 + Copy + 'a,
) -> impl Iterator<Item = Option<u64>> + Clone + 'a {
    (0..rows).flat_map(move |row| groups.iter().map(move |group| Some(of(group, row))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(nodes: usize, looks: usize) -> Recording {
        let look = |number: usize| Look {
            cycle: 100 * number as u64,
            nodes: vec![
                NodeLook {
                    used: number as u64,
                    home: 1,
                    ..NodeLook::default()
                };
                nodes
            ],
            links: vec![2],
        };
        Recording {
            columns: nodes,
            rows: 1,
            links: vec![(0, 1)],
            looks: (1..=looks).map(look).collect(),
            ..Recording::default()
        }
    }

    fn document(page: &str) -> serde_json::Value {
        let from = "type=\"application/json\">";
        let from = page.find(from).expect("the data") + from.len();
        let to = from + page[from..].find("</script>").expect("its end");
        serde_json::from_str(&page[from..to]).expect("JSON")
    }

    #[test]
    fn a_short_run_is_kept_whole() {
        let said = document(&page(&recording(64, 2000), "a </script> of a title"));
        assert_eq!(said["looks"], 2000);
        assert_eq!(said["together"], 1);
        assert_eq!(said["title"], "a </script> of a title");
    }

    #[test]
    fn of_a_long_run_looks_are_left_out_and_no_count() {
        let looks = 2 * MOST / 64 + 1;
        let recording = recording(64, looks);
        assert_eq!(document(&page(&recording, ""))["together"], 3);
        assert_eq!(
            document(&page(&recording, ""))["looks"],
            looks.div_ceil(3) as u64
        );
        let groups: Vec<&[Look]> = recording.looks.chunks(3).collect();
        let home = by_row(&groups, 64, |group, node| {
            group.iter().map(|look| at(look, node).home).sum()
        });
        assert_eq!(home.flatten().sum::<u64>(), 64 * looks as u64);
    }

    #[test]
    fn a_run_without_a_look_has_a_page() {
        assert_eq!(document(&page(&recording(4, 0), "none"))["looks"], 0);
        assert_eq!(
            document(&page(&Recording::default(), "nothing"))["looks"],
            0
        );
    }

    #[test]
    fn the_same_recording_gives_the_same_page() {
        let recording = recording(9, 30);
        assert_eq!(page(&recording, "twice"), page(&recording, "twice"));
    }
}
