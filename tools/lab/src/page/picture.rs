//! A plot as SVG. Colours are those of the page's theme; every value can be read by pointing
//! at it, and series differ in the form of their marks, not in colour alone.
//!
//! Invariant: the y axis begins at zero and ends above the largest value.

use std::collections::{HashMap, HashSet};

use super::{escaped, figure};
use crate::report::{Plot, Series};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 62.0;
const RIGHT: f64 = WIDTH - 14.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = HEIGHT - 50.0;
/// Colours of the theme.
const COLOURS: usize = 8;
/// Up to so many bars carry their values.
const LABELLED: usize = 30;

/// Colour and mark of each name, the same in all pictures of a page.
#[derive(Default)]
pub(super) struct Signs<'a> {
    of: HashMap<&'a str, usize>,
}

impl<'a> Signs<'a> {
    /// The signs of the series of one more picture: those that they have, or the first that no
    /// other of this picture has.
    fn of(&mut self, plot: &'a Plot) -> Vec<usize> {
        let names = plot.series.iter().map(|series| series.name.as_str());
        let mut taken: HashSet<usize> = names.clone().filter_map(|name| self.known(name)).collect();
        let one = |name| {
            let sign = self
                .known(name)
                .unwrap_or_else(|| (0..).find(|sign| !taken.contains(sign)).unwrap_or_default());
            taken.insert(sign);
            self.of.insert(name, sign);
            sign
        };
        names.map(one).collect()
    }

    fn known(&self, name: &str) -> Option<usize> {
        self.of.get(name).copied()
    }
}

/// A figure with its legend.
pub(super) fn picture<'a>(plot: &'a Plot, signs: &mut Signs<'a>) -> String {
    let scale = Scale::of(plot);
    let signs = signs.of(plot);
    let marks = match plot.joined {
        true => lines(plot, &signs, &scale),
        false => bars(plot, &signs, &scale),
    };
    format!(
        "<figure class=\"picture\"><figcaption>{title}</figcaption>{}\
         <div class=\"scroll\" tabindex=\"0\"><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" \
         aria-label=\"{title}\">{}{marks}</svg></div></figure>\n",
        legend(plot, &signs),
        axes(plot, &scale),
        title = escaped(&plot.title),
    )
}

/// Where values and names lie.
struct Scale {
    /// Distance of the lines across.
    step: f64,
    /// Lines above zero.
    steps: usize,
    /// Width of a name.
    slot: f64,
}

impl Scale {
    fn of(plot: &Plot) -> Scale {
        let values = plot.series.iter().flat_map(|series| &series.values);
        let most = values
            .flatten()
            .fold(0.0, |most: f64, &value| most.max(value));
        let step = round_step(most / 5.0);
        Scale {
            step,
            steps: ((most / step).ceil() as usize).max(1),
            slot: (RIGHT - LEFT) / plot.names.len().max(1) as f64,
        }
    }

    fn x(&self, name: usize) -> f64 {
        LEFT + (name as f64 + 0.5) * self.slot
    }

    fn y(&self, value: f64) -> f64 {
        BOTTOM - value / (self.step * self.steps as f64) * (BOTTOM - TOP)
    }
}

/// The least of 1, 2, 2.5 and 5 times a power of ten that is at least `least`; 1 for nothing.
fn round_step(least: f64) -> f64 {
    if least <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(least.log10().floor());
    let fitting = [1.0, 2.0, 2.5, 5.0, 10.0].map(|part| part * power);
    let enough = fitting.into_iter().find(|&step| step >= least * 0.999_999);
    enough.unwrap_or(10.0 * power)
}

fn axes(plot: &Plot, scale: &Scale) -> String {
    let mut text = String::new();
    for line in 0..=scale.steps {
        let value = line as f64 * scale.step;
        let y = scale.y(value);
        text += &format!(
            "<path class=\"{}\" d=\"M{LEFT} {y:.1}H{RIGHT}\"/>\
             <text class=\"soft\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            if line == 0 { "base" } else { "grid" },
            LEFT - 8.0,
            y + 4.0,
            tick(value),
        );
    }
    for (index, name) in plot.names.iter().enumerate() {
        text += &format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            scale.x(index),
            BOTTOM + 18.0,
            escaped(name)
        );
    }
    text + &format!(
        "<text class=\"title\" x=\"4\" y=\"16\">↑ {}</text>\
         <text class=\"title\" x=\"{RIGHT}\" y=\"{}\" text-anchor=\"end\">{} →</text>",
        escaped(&plot.y),
        HEIGHT - 8.0,
        escaped(&plot.x)
    )
}

/// A round number, in as few digits as it has.
fn tick(value: f64) -> String {
    let exact = format!("{value:.3}");
    let text = exact.trim_end_matches('0').trim_end_matches('.');
    match value {
        10_000.0.. => {
            let digits: Vec<char> = text.chars().collect();
            let groups = digits.rchunks(3).rev();
            groups
                .map(|group| group.iter().collect())
                .collect::<Vec<String>>()
                .join("\u{202f}")
        }
        _ => text.to_owned(),
    }
}

/// What a mark says when it is pointed at.
fn tip(plot: &Plot, series: &Series, name: usize, value: f64) -> String {
    format!(
        "<title>{}, {} {}: {} {}</title>",
        escaped(&series.name),
        escaped(&plot.x),
        escaped(&plot.names[name]),
        figure(value, ""),
        escaped(&plot.y)
    )
}

fn class(sign: usize, series: &Series) -> String {
    let kind = if series.reference { " reference" } else { "" };
    format!("s{}{kind}", sign % COLOURS + 1)
}

fn lines(plot: &Plot, signs: &[usize], scale: &Scale) -> String {
    let mut text = String::new();
    for (&sign, series) in signs.iter().zip(&plot.series) {
        let mut path = String::new();
        let mut marks = String::new();
        let mut pen = 'M';
        for (name, value) in series.values.iter().enumerate() {
            let Some(value) = *value else {
                pen = 'M';
                continue;
            };
            let (x, y) = (scale.x(name), scale.y(value));
            path += &format!("{pen}{x:.1} {y:.1}");
            pen = 'L';
            marks += &format!(
                "<path class=\"mark\" d=\"{}\">{}</path>",
                mark(sign, x, y),
                tip(plot, series, name, value)
            );
        }
        text += &format!(
            "<g class=\"{}\"><path class=\"line\" d=\"{path}\"/>{marks}</g>",
            class(sign, series)
        );
    }
    text
}

/// The outline of the mark of a series: circle, square, diamond, two triangles, in turn.
fn mark(sign: usize, x: f64, y: f64) -> String {
    let outline = match sign % 5 {
        0 => "m-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0 -9 0z",
        1 => "m-4 -4h8v8h-8z",
        2 => "m0 -5.5l5.5 5.5l-5.5 5.5l-5.5 -5.5z",
        3 => "m0 -5.5l5.2 9h-10.4z",
        _ => "m0 5.5l5.2 -9h-10.4z",
    };
    format!("M{x:.1} {y:.1}{outline}")
}

fn bars(plot: &Plot, signs: &[usize], scale: &Scale) -> String {
    let count = plot.series.len().max(1) as f64;
    let width = (scale.slot * 0.8 / count).min(60.0);
    let labelled = plot.series.len() * plot.names.len() <= LABELLED;
    let mut text = String::new();
    for (index, (&sign, series)) in signs.iter().zip(&plot.series).enumerate() {
        text += &format!("<g class=\"{}\">", class(sign, series));
        for (name, value) in series.values.iter().enumerate() {
            let Some(value) = *value else { continue };
            let left = scale.x(name) + (index as f64 - count / 2.0) * width;
            let y = scale.y(value);
            text += &format!(
                "<path class=\"bar\" d=\"M{left:.1} {BOTTOM}V{y:.1}h{:.1}V{BOTTOM}z\">{}</path>",
                width - 2.0,
                tip(plot, series, name, value)
            );
            if labelled {
                text += &format!(
                    "<text class=\"value\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}\
                     </text>",
                    left + width / 2.0 - 1.0,
                    y - 5.0,
                    figure(value, "")
                );
            }
        }
        text += "</g>";
    }
    text
}

fn legend(plot: &Plot, signs: &[usize]) -> String {
    let mut text = String::from("<ul class=\"series\">");
    for (&sign, series) in signs.iter().zip(&plot.series) {
        let shape = match plot.joined {
            true => format!(
                "<path class=\"line\" d=\"M0 7H26\"/><path class=\"mark\" d=\"{}\"/>",
                mark(sign, 13.0, 7.0)
            ),
            false => "<path class=\"bar\" d=\"M7 1h12v12h-12z\"/>".to_owned(),
        };
        text += &format!(
            "<li><svg viewBox=\"0 0 26 14\" width=\"26\" height=\"14\" aria-hidden=\"true\">\
             <g class=\"{}\">{shape}</g></svg>{}</li>",
            class(sign, series),
            escaped(&series.name)
        );
    }
    text + "</ul>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_enough() {
        for (least, step) in [(0.0, 1.0), (0.9, 1.0), (1.0, 1.0), (2.1, 2.5), (26.0, 50.0)] {
            assert_eq!(round_step(least), step);
        }
        assert_eq!(tick(2.5), "2.5");
        assert_eq!(tick(40_000.0), "40\u{202f}000");
    }

    #[test]
    fn a_name_has_one_sign_on_a_page_and_no_other_of_its_picture_has_it() {
        let plot = |names: &[&str]| Plot {
            title: String::new(),
            x: String::new(),
            names: vec!["a".into()],
            y: String::new(),
            joined: true,
            series: names
                .iter()
                .map(|name| Series::measured(*name, [1.0]))
                .collect(),
        };
        let plots = [
            plot(&["a", "b", "c"]),
            plot(&["d", "c", "e"]),
            plot(&["e", "d"]),
        ];
        let mut signs = Signs::default();
        let found = plots.each_ref().map(|plot| signs.of(plot));
        assert_eq!(found, [vec![0, 1, 2], vec![0, 2, 1], vec![1, 0]]);
    }

    #[test]
    fn every_value_lies_between_zero_and_the_top() {
        let plot = Plot {
            title: String::new(),
            x: String::new(),
            names: vec!["a".into(), "b".into()],
            y: String::new(),
            joined: false,
            series: vec![Series::measured("s", [0.0, 17.3])],
        };
        let scale = Scale::of(&plot);
        assert_eq!(scale.y(0.0), BOTTOM);
        assert!((TOP..BOTTOM).contains(&scale.y(17.3)));
        assert!(scale.x(0) > LEFT && scale.x(1) < RIGHT);
    }
}
