//! A picture as SVG, for light and dark pages.
//!
//! Invariant: it needs nothing from elsewhere, and texts of the user are escaped.

use std::fmt::Write;

use super::{Picture, ticks, written};

/// Colours of curves in turn, on light and on dark ground.
const COLOURS: &[(&str, &str)] = &[
    ("royalblue", "cornflowerblue"),
    ("darkorange", "orange"),
    ("seagreen", "mediumseagreen"),
    ("crimson", "lightcoral"),
    ("rebeccapurple", "orchid"),
    ("teal", "turquoise"),
];

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 72.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 48.0;

impl Picture {
    /// As a document of its own.
    #[must_use]
    pub fn svg(&self) -> String {
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
             width=\"{WIDTH}\" height=\"{HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
             <!-- Metes -->\n"
        );
        svg += &style(self.lines.len());
        let _ = writeln!(
            svg,
            "<rect class=\"ground\" width=\"{WIDTH}\" height=\"{HEIGHT}\"/>"
        );
        self.axes(&mut svg);
        for curve in 0..self.lines.len() {
            self.curve(&mut svg, curve);
        }
        self.names(&mut svg);
        svg += "</svg>\n";
        svg
    }

    fn x(&self, time: f64) -> f64 {
        let (low, high) = self.times;
        LEFT + (time - low) / (high - low) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        let (low, high) = self.values;
        HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM)
    }

    fn axes(&self, svg: &mut String) {
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        let line = |svg: &mut String, class: &str, [x0, y0, x1, y1]: [f64; 4]| {
            let _ = writeln!(
                svg,
                "<line class=\"{class}\" x1=\"{x0:.2}\" y1=\"{y0:.2}\" x2=\"{x1:.2}\" y2=\"{y1:.2}\"/>"
            );
        };
        for tick in ticks(self.times, 8) {
            let x = self.x(tick);
            if self.grid {
                line(svg, "grid", [x, TOP, x, bottom]);
            }
            line(svg, "axis", [x, bottom, x, bottom + 5.0]);
            let name = written(tick);
            let _ = writeln!(
                svg,
                "<text x=\"{x:.2}\" y=\"{:.2}\" text-anchor=\"middle\">{name}</text>",
                bottom + 18.0
            );
        }
        for tick in ticks(self.values, 6) {
            let y = self.y(tick);
            if self.grid {
                line(svg, "grid", [LEFT, y, right, y]);
            }
            line(svg, "axis", [LEFT - 5.0, y, LEFT, y]);
            let name = written(tick);
            let _ = writeln!(
                svg,
                "<text x=\"{:.2}\" y=\"{:.2}\" text-anchor=\"end\">{name}</text>",
                LEFT - 8.0,
                y + 4.0
            );
        }
        line(svg, "axis", [LEFT, TOP, LEFT, bottom]);
        line(svg, "axis", [LEFT, bottom, right, bottom]);
        let middle = LEFT + (right - LEFT) / 2.0;
        let [time, value] = &self.labels;
        let _ = writeln!(
            svg,
            "<text x=\"{middle:.2}\" y=\"20\" text-anchor=\"middle\" font-weight=\"bold\">{}</text>\n\
             <text x=\"{middle:.2}\" y=\"{:.2}\" text-anchor=\"middle\">{}</text>\n\
             <text transform=\"translate(16 {:.2}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            escaped(&self.title),
            HEIGHT - 8.0,
            escaped(time),
            TOP + (bottom - TOP) / 2.0,
            escaped(value),
        );
    }

    fn curve(&self, svg: &mut String, curve: usize) {
        let line = &self.lines[curve];
        let class = curve % COLOURS.len();
        // Thinner ones over wider ones, so that equal stretches of both are seen.
        let width = (4.0 - 0.8 * curve as f64).max(1.6);
        let mut path = String::new();
        let mut at = None;
        for [t0, v0, t1, v1] in &line.strokes {
            let (x0, y0, x1, y1) = (self.x(*t0), self.y(*v0), self.x(*t1), self.y(*v1));
            if at != Some((x0, y0)) {
                let _ = write!(path, "M{x0:.2} {y0:.2}");
            }
            let _ = write!(path, "L{x1:.2} {y1:.2}");
            at = Some((x1, y1));
        }
        let _ = writeln!(
            svg,
            "<g class=\"c{class}\"><path class=\"line\" stroke-width=\"{width}\" d=\"{path}\"/>"
        );
        for (spans, y, text) in [
            (&line.above, TOP, TOP - 5.0),
            (&line.below, HEIGHT - BOTTOM, HEIGHT - BOTTOM - 5.0),
        ] {
            for (from, to) in spans {
                let (from, to) = (self.x(*from), self.x(*to));
                let _ = writeln!(
                    svg,
                    "<path class=\"line\" stroke-width=\"{width}\" stroke-dasharray=\"6 4\" d=\"M{from:.2} {y}H{to:.2}\"/>\
                     <text class=\"name\" x=\"{:.2}\" y=\"{text}\" text-anchor=\"middle\">∞</text>",
                    (from + to) / 2.0
                );
            }
        }
        for (class, marks) in [("open", &line.open), ("closed", &line.closed)] {
            for (time, value) in marks {
                let (x, y) = (self.x(*time), self.y(*value));
                let _ = writeln!(
                    svg,
                    "<circle class=\"{class}\" cx=\"{x:.2}\" cy=\"{y:.2}\" r=\"4\"/>"
                );
            }
        }
        *svg += "</g>\n";
    }

    fn names(&self, svg: &mut String) {
        let mut x = LEFT;
        for (curve, line) in self.lines.iter().enumerate() {
            let class = curve % COLOURS.len();
            let _ = writeln!(
                svg,
                "<g class=\"c{class}\"><path class=\"line\" stroke-width=\"3\" d=\"M{x:.2} 36h18\"/>\
                 <text class=\"name\" x=\"{:.2}\" y=\"40\">{}</text></g>",
                x + 24.0,
                escaped(&line.name)
            );
            // About the width of the text, whatever the font.
            x += 44.0 + 7.0 * line.name.chars().count() as f64;
        }
    }
}

/// Rules for light and dark ground, of so many curves.
fn style(curves: usize) -> String {
    let rules = |ground: &str, ink: &str, grid: &str, colour: &dyn Fn(usize) -> &'static str| {
        let mut rules = format!(
            "text{{fill:{ink}}}.ground,.open{{fill:{ground}}}.axis{{stroke:{ink}}}.grid{{stroke:{grid}}}"
        );
        for curve in 0..curves.min(COLOURS.len()) {
            let colour = colour(curve);
            let _ = write!(
                rules,
                ".c{curve} .line,.c{curve} .open{{stroke:{colour}}}\
                 .c{curve} .closed,.c{curve} .name{{fill:{colour}}}"
            );
        }
        rules
    };
    let light = rules("white", "black", "gainsboro", &|curve| COLOURS[curve].0);
    let dark = rules("#14171a", "gainsboro", "#343a40", &|curve| COLOURS[curve].1);
    format!(
        "<style>.line{{fill:none}}.open{{stroke-width:1.6}}{light}\n\
         @media (prefers-color-scheme: dark) {{{dark}}}</style>\n"
    )
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}
