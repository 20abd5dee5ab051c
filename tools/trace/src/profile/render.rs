//! The profile as text, for a terminal.
//!
//! Invariant: every figure is one of the profile; nothing wider than 90 columns.

use std::fmt;

use metes_quantity::{bytes, duration, grouped};

use super::{Histogram, Profile, SizeProfile};

/// Sizes listed in the table.
const ROWS: usize = 20;
/// Width of the live-memory line, in characters.
const LINE: usize = 64;
/// Width of the longest bar of a histogram.
const BAR: usize = 32;

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.summary(f)?;
        self.live_line(f)?;
        self.size_table(f)?;
        self.access_table(f)?;
        self.align_line(f)?;
        histogram(f, "lifespans in events", &self.lifespan_events, grouped)?;
        histogram(f, "lifespans in time", &self.lifespan_ns, duration)?;
        histogram(f, "allocations in a row", &self.allocation_bursts, grouped)?;
        histogram(f, "frees in a row", &self.free_bursts, grouped)
    }
}

impl Profile {
    fn summary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = |name: &str, text: String| writeln!(f, "{name:<18} {text}");
        let over = if self.duration_ns > 0 {
            format!(" in {}", duration(self.duration_ns))
        } else {
            String::new()
        };
        line("events", format!("{}{over}", grouped(self.events)))?;
        line(
            "allocations",
            format!(
                "{}, together {}",
                grouped(self.allocations),
                bytes(self.allocated_bytes)
            ),
        )?;
        line("frees", grouped(self.frees))?;
        line(
            "resizes",
            format!(
                "{}, of which {} grow",
                grouped(self.resizes),
                grouped(self.grows)
            ),
        )?;
        line(
            "peak live",
            format!(
                "{} = {} B, after event {}; at most {} blocks",
                bytes(self.peak_live),
                grouped(self.peak_live),
                grouped(self.peak_live_seq),
                grouped(self.peak_blocks)
            ),
        )?;
        line(
            "live at the end",
            format!(
                "{} in {} blocks",
                bytes(self.final_live),
                grouped(self.final_blocks)
            ),
        )?;
        let dominant: Vec<_> = self.dominant.iter().map(u64::to_string).collect();
        line(
            "sizes",
            format!(
                "{} different, largest {} B",
                grouped(self.sizes.len() as u64),
                grouped(self.largest)
            ),
        )?;
        line("dominant sizes", dominant.join(", "))?;
        line(
            "threads",
            format!(
                "{}, {} frees of another's block",
                self.threads,
                grouped(self.cross_thread_frees)
            ),
        )?;
        if self.accesses > 0 || self.reads | self.writes > 0 {
            line(
                "accesses",
                format!(
                    "{} words read, {} written{}; {} and {}",
                    grouped(self.reads),
                    grouped(self.writes),
                    match self.access_word {
                        0 => String::new(),
                        word => format!(", of {word} B"),
                    },
                    bytes(self.read_bytes),
                    bytes(self.write_bytes)
                ),
            )?;
        }
        if let Some(size) = self.most_accessed {
            line("most accessed", format!("blocks of {} B", grouped(size)))?;
        }
        if self.instructions > 0 {
            line(
                "instructions",
                format!("{} outside malloc", grouped(self.instructions)),
            )?;
        }
        Ok(())
    }

    fn live_line(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        let columns = LINE.min(self.curve.len());
        let line: String = (0..columns)
            .map(|column| {
                let from = column * self.curve.len() / columns;
                let to = (column + 1) * self.curve.len() / columns;
                let most = self.curve[from..to]
                    .iter()
                    .map(|point| point.live)
                    .max()
                    .unwrap_or(0);
                let level = u128::from(most) * 7 / u128::from(self.peak_live.max(1));
                LEVELS[level as usize]
            })
            .collect();
        writeln!(f, "{:<18} {line}", "live, by event")
    }

    fn size_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows: Vec<_> = self.sizes.iter().collect();
        rows.sort_by_key(|row| {
            (
                std::cmp::Reverse(row.allocations + row.resizes_to),
                row.size,
            )
        });
        writeln!(
            f,
            "\n{:>12} {:>11} {:>6} {:>11} {:>10} {:>9} {:>11} {:>9}",
            "size", "allocations", "share", "frees", "resized to", "peak live", "life, ev.", "life"
        )?;
        for row in rows.iter().take(ROWS) {
            let share = 100.0 * row.allocations as f64 / self.allocations.max(1) as f64;
            let events = row
                .mean_lifespan_events
                .map_or("-".to_owned(), |mean| grouped(mean as u64));
            let time = row
                .mean_lifespan_ns
                .map_or("-".to_owned(), |mean| duration(mean as u64));
            writeln!(
                f,
                "{:>12} {:>11} {share:>5.1}% {:>11} {:>10} {:>9} {events:>11} {time:>9}",
                grouped(row.size),
                grouped(row.allocations),
                grouped(row.frees),
                grouped(row.resizes_to),
                grouped(row.peak_live),
            )?;
        }
        if rows.len() > ROWS {
            let rest: u64 = rows.iter().skip(ROWS).map(|row| row.allocations).sum();
            let share = 100.0 * rest as f64 / self.allocations.max(1) as f64;
            let more = format!("{} more", grouped((rows.len() - ROWS) as u64));
            writeln!(f, "{more:>12} {:>11} {share:>5.1}%", grouped(rest))?;
        }
        Ok(())
    }

    /// The sizes that were accessed most, if accesses were recorded.
    fn access_table(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = |row: &SizeProfile| row.reads.saturating_add(row.writes);
        let all = self.reads.saturating_add(self.writes);
        if all == 0 {
            return Ok(());
        }
        let mut rows: Vec<_> = self.sizes.iter().filter(|row| words(row) > 0).collect();
        rows.sort_by_key(|row| (std::cmp::Reverse(words(row)), row.size));
        writeln!(
            f,
            "\n{:>12} {:>14} {:>6} {:>14} {:>14} {:>16}",
            "size", "words accessed", "share", "read", "written", "per allocation"
        )?;
        for row in rows.iter().take(ROWS) {
            let share = 100.0 * words(row) as f64 / all as f64;
            let made = row.allocations + row.resizes_to;
            let each = words(row) as f64 / made.max(1) as f64;
            writeln!(
                f,
                "{:>12} {:>14} {share:>5.1}% {:>14} {:>14} {each:>16.1}",
                grouped(row.size),
                grouped(words(row)),
                grouped(row.reads),
                grouped(row.writes),
            )?;
        }
        if rows.len() > ROWS {
            let rest = rows.iter().skip(ROWS).map(|row| words(row));
            let rest = rest.fold(0, u64::saturating_add);
            let share = 100.0 * rest as f64 / all as f64;
            let more = format!("{} more", grouped((rows.len() - ROWS) as u64));
            writeln!(f, "{more:>12} {:>14} {share:>5.1}%", grouped(rest))?;
        }
        Ok(())
    }

    fn align_line(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let aligns: Vec<_> = self
            .aligns
            .iter()
            .map(|entry| format!("{} B × {}", entry.align, grouped(entry.count)))
            .collect();
        writeln!(f, "\n{:<18} {}", "alignments", aligns.join(", "))
    }
}

fn histogram(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    histogram: &Histogram,
    unit: impl Fn(u64) -> String,
) -> fmt::Result {
    let Some(mean) = histogram.mean() else {
        return Ok(());
    };
    writeln!(
        f,
        "\n{title}: mean {}, longest {}",
        unit(mean as u64),
        unit(histogram.longest)
    )?;
    let most = histogram
        .buckets
        .iter()
        .map(|bucket| bucket.count)
        .max()
        .unwrap_or(1);
    let first = histogram
        .buckets
        .iter()
        .position(|bucket| bucket.count > 0)
        .unwrap_or(0);
    for bucket in &histogram.buckets[first..] {
        let width = (u128::from(bucket.count) * BAR as u128).div_ceil(u128::from(most.max(1)));
        writeln!(
            f,
            "{:>12} {:>11} {}",
            format!("≥ {}", unit(bucket.from)),
            grouped(bucket.count),
            "■".repeat(width as usize)
        )?;
    }
    Ok(())
}
