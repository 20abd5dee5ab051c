//! Traces in CSV: `op,block,size[,align[,thread]]`, op being a, f or r.
//!
//! A first line that names the columns is skipped; threads are ignored, since
//! space does not depend on who asks.

use std::path::Path;

use crate::Error;
use crate::workload::{Row, Workload, from_rows};

/// Reads a trace as a workload named after the file.
pub(crate) fn read(path: &Path) -> Result<Workload, Error> {
    let bad = |line: usize, why: String| Error::Trace {
        path: path.to_owned(),
        line,
        why,
    };
    let text = std::fs::read_to_string(path).map_err(|error| bad(0, error.to_string()))?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let mut rows: Vec<Row> = Vec::new();
    // Row n of the workload came from this line of the file.
    let mut lines: Vec<usize> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || (index == 0 && line.starts_with("op")) {
            continue;
        }
        rows.push(row(line).map_err(|why| bad(index + 1, why))?);
        lines.push(index + 1);
    }
    from_rows(&name, rows.into_iter())
        .map_err(|(row, why)| bad(lines.get(row).copied().unwrap_or(0), why))
}

fn row(line: &str) -> Result<Row, String> {
    let mut fields = line.split(',').map(str::trim);
    let operation = fields.next().unwrap_or_default();
    let mut letters = operation.chars();
    let (Some(letter), None) = (letters.next(), letters.next()) else {
        return Err(format!("operation '{operation}' is not a, f or r"));
    };
    let mut number = |what: &str| -> Result<Option<u64>, String> {
        match fields.next() {
            None | Some("") => Ok(None),
            Some(text) => text
                .parse()
                .map(Some)
                .map_err(|_| format!("{what} '{text}' is not a whole number")),
        }
    };
    let block = number("block")?.ok_or("no block")?;
    let size = number("size")?.unwrap_or(0);
    let align = number("alignment")?.unwrap_or(0);
    if size >= 1 << 40 {
        return Err(format!("size {size} is beyond what is replayed (2^40)"));
    }
    if align > 1 << 20 || (align != 0 && !align.is_power_of_two()) {
        return Err(format!(
            "alignment {align} is not a power of two up to 2^20"
        ));
    }
    Ok((letter, block, size as usize, align as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_and_without_optional_fields() {
        assert_eq!(row("a,7,100"), Ok(('a', 7, 100, 0)));
        assert_eq!(row("r, 7, 100, 64, 3"), Ok(('r', 7, 100, 64)));
        assert_eq!(row("f,7"), Ok(('f', 7, 0, 0)));
        assert!(row("a,7,100,48").is_err());
        assert!(row("alloc,7,100").is_err());
        assert!(row("a,x,100").is_err());
    }
}
