//! A picture of characters: eight dots each, marks at jumps.
//!
//! Invariant: no line is longer than asked for.

use super::{Line, Picture, ticks, written};

/// A character, and which curve it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Character {
    /// What is shown.
    pub character: char,
    /// Which curve, from 0; `None` of axes.
    pub curve: Option<usize>,
}

/// Dots of a character: the bits of Braille from the top left.
const DOTS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];

/// The part within the axes.
struct Canvas {
    columns: usize,
    rows: usize,
    cells: Vec<(u8, Option<char>, Option<usize>)>,
}

impl Canvas {
    fn cell(&mut self, column: usize, row: usize) -> &mut (u8, Option<char>, Option<usize>) {
        &mut self.cells[row * self.columns + column]
    }
}

impl Picture {
    /// As lines of at most `width` characters, about `height` of them.
    #[must_use]
    pub fn terminal(&self, width: usize, height: usize) -> Vec<Vec<Character>> {
        let (width, height) = (width.clamp(24, 400), height.clamp(8, 200));
        let value_ticks = ticks(self.values, height / 4);
        let margin = value_ticks
            .iter()
            .map(|tick| written(*tick).chars().count());
        let margin = margin.max().unwrap_or(0).clamp(1, 12);
        let (columns, rows) = (width - margin - 2, height - 4);
        let mut canvas = Canvas {
            columns,
            rows,
            cells: vec![(0, None, None); columns * rows],
        };
        for (curve, line) in self.lines.iter().enumerate() {
            self.draw(&mut canvas, curve, line);
        }
        let mut lines = Vec::new();
        lines.extend((!self.title.is_empty()).then(|| plain(&self.title, width)));
        let label = &self.labels[1];
        lines.extend((!label.is_empty()).then(|| plain(label, width)));
        let row_of = |tick: &f64| self.row(rows * 4, *tick).map(|dot| dot / 4);
        for row in 0..rows {
            let tick = value_ticks.iter().rfind(|tick| row_of(tick) == Some(row));
            let (name, axis) = match tick {
                Some(tick) => (written(*tick), '┤'),
                None => (String::new(), '│'),
            };
            let mut line = plain(&format!("{name:>margin$} {axis}"), width);
            line.extend((0..columns).map(|column| {
                let (dots, mark, curve) = *canvas.cell(column, row);
                let dots = match dots {
                    0 => ' ',
                    dots => char::from_u32(0x2800 + u32::from(dots)).unwrap_or('?'),
                };
                Character {
                    character: mark.unwrap_or(dots),
                    curve,
                }
            }));
            lines.push(line);
        }
        lines.extend(self.time_axis(margin, columns));
        lines.push(self.legend(width));
        lines
    }

    fn column(&self, dots: usize, time: f64) -> Option<usize> {
        place(dots, time, self.times)
    }

    fn row(&self, dots: usize, value: f64) -> Option<usize> {
        place(dots, value, self.values).map(|dot| dots - 1 - dot)
    }

    fn draw(&self, canvas: &mut Canvas, curve: usize, line: &Line) {
        let (wide, high) = (canvas.columns * 2, canvas.rows * 4);
        for [t0, v0, t1, v1] in &line.strokes {
            let ends = (
                self.column(wide, *t0),
                self.row(high, *v0),
                self.column(wide, *t1),
                self.row(high, *v1),
            );
            let (Some(x0), Some(y0), Some(x1), Some(y1)) = ends else {
                continue;
            };
            let steps = x0.abs_diff(x1).max(y0.abs_diff(y1)).max(1);
            for step in 0..=steps {
                let between = |from: usize, to: usize| {
                    let part = step as f64 / steps as f64;
                    (from as f64 + (to as f64 - from as f64) * part).round() as usize
                };
                let (x, y) = (between(x0, x1), between(y0, y1));
                let cell = canvas.cell(x / 2, y / 4);
                cell.0 |= DOTS[y % 4][x % 2];
                cell.2 = Some(curve);
            }
        }
        let marks = line.open.iter().map(|mark| (mark, '○'));
        for ((time, value), mark) in marks.chain(line.closed.iter().map(|mark| (mark, '●'))) {
            let (x, y) = (self.column(wide, *time), self.row(high, *value));
            if let Some((x, y)) = x.zip(y) {
                let cell = canvas.cell(x / 2, y / 4);
                cell.1 = Some(mark);
                cell.2 = Some(curve);
            }
        }
        let last = canvas.rows - 1;
        for (spans, row) in [(&line.above, 0), (&line.below, last)] {
            for (from, to) in spans {
                let ends = (self.column(wide, *from), self.column(wide, *to));
                let (Some(from), Some(to)) = ends else {
                    continue;
                };
                for column in from / 2..=to / 2 {
                    let cell = canvas.cell(column, row);
                    cell.1 = cell.1.or(Some('∞'));
                    cell.2 = Some(curve);
                }
            }
        }
    }

    /// The axis with its ticks, and the numbers below it.
    fn time_axis(&self, margin: usize, columns: usize) -> [Vec<Character>; 2] {
        let mut axis: Vec<char> = vec!['─'; columns];
        let mut numbers: Vec<char> = vec![' '; columns + margin + 2];
        let mut free = 0;
        for tick in ticks(self.times, columns / 10) {
            let Some(column) = self.column(columns, tick) else {
                continue;
            };
            axis[column] = '┬';
            let name = written(tick);
            let length = name.chars().count();
            let begin = (margin + 2 + column + 1).saturating_sub(length.div_ceil(2));
            let begin = begin.min(numbers.len().saturating_sub(length));
            if begin < free {
                continue;
            }
            for (offset, character) in name.chars().enumerate() {
                if let Some(cell) = numbers.get_mut(begin + offset) {
                    *cell = character;
                }
            }
            free = begin + length + 1;
        }
        let label: Vec<char> = self.labels[0].chars().collect();
        let begin = numbers.len().saturating_sub(label.len());
        if !label.is_empty() && begin > free {
            numbers[begin..].copy_from_slice(&label);
        }
        let axis: String = axis.into_iter().collect();
        let width = margin + 2 + columns;
        [
            plain(&format!("{:>margin$} └{axis}", ""), width),
            plain(&numbers.into_iter().collect::<String>(), width),
        ]
    }

    fn legend(&self, width: usize) -> Vec<Character> {
        let mut line = Vec::new();
        for (curve, drawn) in self.lines.iter().enumerate() {
            let name = format!("  ━ {}", drawn.name);
            line.extend(name.chars().map(|character| Character {
                character,
                curve: Some(curve),
            }));
        }
        line.truncate(width);
        line
    }
}

/// The dot of a number, if it is in the range.
fn place(dots: usize, number: f64, (low, high): (f64, f64)) -> Option<usize> {
    let part = (number - low) / (high - low);
    let slack = 1e-9;
    (-slack..=1.0 + slack)
        .contains(&part)
        .then(|| ((part.clamp(0.0, 1.0) * (dots - 1) as f64).round() as usize).min(dots - 1))
}

fn plain(text: &str, width: usize) -> Vec<Character> {
    let character = |character| Character {
        character,
        curve: None,
    };
    text.chars().take(width).map(character).collect()
}
