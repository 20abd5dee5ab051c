//! Tables on standard output: aligned text or Markdown.

use std::fmt::Write;

/// One cell: text, right-aligned unless first in its row.
#[derive(Clone, Debug)]
pub(crate) struct Cell(String);

impl Cell {
    /// A cell with this text.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Cell(text.into())
    }

    /// No value.
    pub(crate) fn none() -> Self {
        Cell("-".to_owned())
    }
}

/// A titled table with remarks below it.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    /// What is shown, with units.
    pub(crate) title: String,
    /// Heads of the columns; the first is left-aligned.
    pub(crate) columns: Vec<String>,
    /// Rows of as many cells.
    pub(crate) rows: Vec<Vec<Cell>>,
    /// What a reader must know.
    pub(crate) remarks: Vec<String>,
}

impl Table {
    /// The table in Markdown with padded columns, readable as plain text.
    pub(crate) fn render(&self) -> String {
        let width = |column: usize| {
            self.rows
                .iter()
                .map(|row| row[column].0.chars().count())
                .chain([self.columns[column].chars().count(), 3])
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let line = |cells: &[String]| {
            let mut text = String::from("|");
            for (index, (cell, width)) in cells.iter().zip(&widths).enumerate() {
                let _ = if index == 0 {
                    write!(text, " {cell:<width$} |")
                } else {
                    write!(text, " {cell:>width$} |")
                };
            }
            text.push('\n');
            text
        };
        let mut text = format!("{}\n\n", self.title);
        text.push_str(&line(&self.columns));
        let rule: Vec<String> = widths
            .iter()
            .enumerate()
            .map(|(index, &width)| match index {
                0 => "-".repeat(width),
                _ => format!("{}:", "-".repeat(width - 1)),
            })
            .collect();
        text.push_str(&line(&rule));
        for row in &self.rows {
            let cells: Vec<String> = row.iter().map(|cell| cell.0.clone()).collect();
            text.push_str(&line(&cells));
        }
        for remark in &self.remarks {
            let _ = write!(text, "\n{remark}\n");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let table = Table {
            title: "t".to_owned(),
            columns: vec!["heap".to_owned(), "n".to_owned()],
            rows: vec![vec![Cell::text("a"), Cell::text("12345")]],
            remarks: Vec::new(),
        };
        assert_eq!(
            table.render(),
            "t\n\n| heap |     n |\n| ---- | ----: |\n| a    | 12345 |\n"
        );
    }
}
