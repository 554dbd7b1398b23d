//! Generated lists for tests of rankers.

use super::{Dice, Workplace, gzip};

pub const FEATURES: usize = 5;

/// A list: its query, and grade and features of each document. The first two features largely determine the grade.
pub type List = (String, Vec<(u32, [f64; FEATURES])>);

pub fn draw(lists: usize, seed: u64) -> Vec<List> {
    let mut dice = Dice(seed);
    (0..lists)
        .map(|list| {
            let documents = (0..4 + dice.below(8))
                .map(|_| {
                    let features = [(); FEATURES].map(|()| (dice.unit() * 100.0).round() / 100.0);
                    let worth = features[0] + features[1] + 0.2 * (dice.unit() - 0.5);
                    (if worth > 1.4 { 2 } else { u32::from(worth > 1.1) }, features)
                })
                .collect();
            (format!("q{seed}-{list}"), documents)
        })
        .collect()
}

pub fn letor(lists: &[List]) -> String {
    let mut text = String::from("# made up\n");
    for (query, documents) in lists {
        for (grade, features) in documents {
            let cells: String = features.iter().enumerate().map(|(j, x)| format!(" {}:{x}", j + 1)).collect();
            text.push_str(&format!("{grade} qid:{query}{cells} # docid\n"));
        }
    }
    text
}

pub fn csv(lists: &[List]) -> String {
    let mut text = String::from("a,user,b,c,clicks,d,e\n");
    for (query, documents) in lists {
        for (grade, [a, b, c, d, e]) in documents {
            text.push_str(&format!("{a},{query},{b},{c},{grade},{d},{e}\n"));
        }
    }
    text
}

/// Creates training and test lists in both formats.
pub fn place() -> Workplace {
    let place = Workplace::new();
    let (train, test) = (draw(200, 1), draw(60, 2));
    place.write("train.txt", letor(&train));
    place.write("train.txt.gz", gzip(letor(&train).as_bytes()));
    place.write("test.txt", letor(&test));
    place.write("train.csv", csv(&train));
    place.write("test.csv.gz", gzip(csv(&test).as_bytes()));
    place
}
