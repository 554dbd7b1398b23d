use super::*;
use crate::algorithm::Algorithm;
use crate::dataset::DataSet;
use crate::figure::{Axis, Figure, Measure, Series};
use crate::setting::{Privacy, Setting};
use crate::statistics::Sample;

fn figure(panels: usize, columns: usize, log_y: bool) -> Figure {
    let setting = |epsilon| Setting::new(DataSet::Sphere, Algorithm::Ours, Privacy::Pure { epsilon });
    let series = |name: &str| Series::new(name, &[0.1, 1.0, 4.0], setting);
    let panel = |i: usize| Panel {
        title: format!("panel <{i}>"),
        x: Axis { label: "ε", log: true },
        log_y,
        measure: Measure::Accuracy,
        bars: Bars::StdDev,
        series: vec![series("one"), series("two & three")],
    };
    let (id, title, description) = ("test", "A figure", "");
    Figure { id, title, description, columns, panels: (0..panels).map(panel).collect(), claims: vec![], repetitions: 1 }
}

fn results(figure: &Figure, means: [f64; 3]) -> Results<'_> {
    let setting = Setting::new(DataSet::Sphere, Algorithm::Ours, Privacy::None).into();
    let series = |_| means.map(|mean| Some(Measured { setting, sample: Sample { n: 3, mean, std_dev: 0.1 } })).to_vec();
    let measured = figure.panels.iter().map(|panel| panel.series.iter().map(series).collect()).collect();
    Results { figure, measured }
}

#[test]
fn panels_stand_in_rows_with_one_legend() {
    let figure = figure(5, 3, false);
    let text = svg(&results(&figure, [0.5, 0.7, 0.9])).unwrap();
    assert!(text.contains(r#"width="1140" height="668""#), "{}", &text[..200]);
    #[cfg(feature = "png")]
    resvg::usvg::Tree::from_str(&text, &resvg::usvg::Options::default()).unwrap();
    assert_eq!(text.matches("test accuracy").count(), 5);
    assert!(text.contains("A figure") && text.contains("panel &lt;4&gt;") && text.contains("two &amp; three"));
    // Three points of two series in five panels, and two entries of the legend.
    assert_eq!(text.matches("<circle").count(), 3 * 2 * 5 + 2);
}

#[test]
fn numbers_that_cannot_be_drawn_are_left_out() {
    for log_y in [false, true] {
        let figure = figure(1, 1, log_y);
        let text = svg(&results(&figure, [0.05, f64::INFINITY, f64::NAN])).unwrap();
        assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
        assert_eq!(text.matches("<circle").count(), 2 + 2);
    }
    let empty = Results { figure: &figure(0, 4, false), measured: vec![] };
    assert!(svg(&empty).unwrap().starts_with("<svg"));
}

/// Checks width, height and whether there is any ink, from the bytes of a PNG.
#[cfg(feature = "png")]
#[test]
fn the_bitmap_has_text_without_fonts_of_the_system() {
    let figure = figure(1, 1, false);
    let with_text = svg(&results(&figure, [0.5, 0.7, 0.9])).unwrap();
    let bytes = png(&with_text, 2.0).unwrap();
    assert_eq!(&bytes[..8], b"\x89PNG\r\n\x1a\n");
    let size = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    assert_eq!((size(16), size(20)), (760, 2 * (34 + 300 + 60)));
    // Letters leave ink: a picture of text alone differs from an empty one.
    let page = |text: &str| {
        let head = "<svg width=\"60\" height=\"20\" xmlns=\"http://www.w3.org/2000/svg\">";
        format!("{head}<text x=\"2\" y=\"15\" font-family=\"sans-serif\" font-size=\"12\">{text}</text></svg>")
    };
    let [nothing, letters, greek, missing] = ["", "Ours", "ε", "\u{4e2d}"].map(|text| png(&page(text), 1.0).unwrap());
    assert!(letters != nothing && greek != nothing && letters != greek && missing != letters);
    assert!(png("no picture", 1.0).is_err());
}
