//! Five tables as people export them, generated: visits to a hospital, a payroll, a survey, the log of sensors, orders of a shop.
//! Each has a relation that a linear model can learn, and the mess that its origin brings.

use std::fmt::Write as _;
use std::path::Path;

use dp_data::schema::date_text;
use rust_xlsxwriter::{ExcelDateTime, Format, Formula, Workbook};

use crate::support::Dice;

/// 2024-01-01, in days since 1970-01-01.
const NEW_YEAR: u64 = 19_723;

fn happens(dice: &mut Dice, log_odds: f64) -> bool {
    dice.unit() < 1.0 / (1.0 + (-log_odds).exp())
}

fn pick<'a>(dice: &mut Dice, of: &[&'a str]) -> &'a str {
    of[dice.below(of.len() as u64) as usize]
}

/// Year, month and day.
fn day(days: u64) -> (String, u32, u32) {
    let text = date_text(days as f64);
    (text[..4].to_owned(), text[5..7].parse().unwrap(), text[8..].parse().unwrap())
}

/// Writes groups of three digits.
fn grouped(number: u64, separator: &str) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().map(|group| std::str::from_utf8(group).unwrap()).collect();
    groups.join(separator)
}

/// Visits, several per patient: semicolons, Windows-1252, decimal commas, euros, German dates, notes with line breaks, four
/// markers of missing values. `late` is the next year's export: a new ward, and dates after the range.
pub fn visits(patients: u64, late: bool, seed: u64) -> Vec<u8> {
    let mut dice = Dice(seed);
    let mut text =
        "Patient;Aufnahme;Geburtsjahr;Temperatur;Kosten;Körperfett;Raucher;Station;Bemerkung;wieder da\r\n".to_owned();
    for patient in 0..patients {
        let (birth, smokes) = (1930 + dice.below(90), dice.below(3) == 0);
        for _ in 0..=dice.below(5) {
            let (year, month, of_month) = day(NEW_YEAR + dice.below(366) + if late { 366 } else { 0 });
            let fever = 355 + dice.below(60);
            let cents = 15_000 + dice.below(950_000);
            let ward =
                if late && dice.below(20) == 0 { "Tagesklinik" } else { pick(&mut dice, &["Süd", "Nord", "Privat"]) };
            let fat = match dice.below(40) {
                0 => ["", "k.A.", "-", "N/A"][dice.below(4) as usize].to_owned(),
                _ => format!("{} %", 8 + dice.below(35)),
            };
            let log_odds =
                (fever as f64 - 385.0) / 8.0 + if smokes { 1.5 } else { -1.0 } - (birth as f64 - 1970.0) / 25.0;
            let again =
                [["nein", "Nein"], ["ja", "Ja"]][usize::from(happens(&mut dice, log_odds))][dice.below(8) as usize / 7];
            let note = pick(&mut dice, &["o.B.", "\"Kontrolle; dann\r\nEntlassung\"", "", "\"sagt \"\"gut\"\"\""]);
            let _ = write!(
                text,
                "P{patient:05};{of_month:02}.{month:02}.{year};{birth};{},{};{},{:02} €;{fat};{};{ward} ;{note};{again}\r\n",
                fever / 10,
                fever % 10,
                grouped(cents / 100, "."),
                cents % 100,
                ["nein", "ja"][usize::from(smokes)],
            );
        }
    }
    text.chars().map(|c| if c == '€' { 0x80 } else { u8::try_from(u32::from(c)).expect("Latin-1") }).collect()
}

/// A payroll as a workbook: notes on the first sheet, and on the second a title above the header, dates of cells, pay as text
/// with a currency, percentages, truth values, a computed column, and a row of totals that is not a person.
pub fn payroll(people: u32, seed: u64, path: &Path) {
    let mut dice = Dice(seed);
    let mut book = Workbook::new();
    book.add_worksheet().set_name("Read me").unwrap().write(0, 0, "Confidential. See the next sheet.").unwrap();
    let sheet = book.add_worksheet().set_name("Payroll 2026").unwrap();
    sheet.write(0, 0, "Payroll 2026, as of 1 July").unwrap();
    let header = [
        "Employee no.",
        "Hired",
        "Department",
        "Gross pay",
        "Bonus",
        "Overtime (h)",
        "Remote",
        "Net of tax",
        "Left within a year",
    ];
    for (column, name) in header.iter().enumerate() {
        sheet.write(2, column as u16, *name).unwrap();
    }
    let date = Format::new().set_num_format("yyyy-mm-dd");
    for i in 0..people {
        let row = 3 + i;
        let hired = NEW_YEAR - dice.below(7000);
        let department = pick(&mut dice, &["Sales", "Operations", "Finance", "IT"]);
        let dollars = 28_000 + dice.below(90_000);
        let bonus = dice.below(300);
        let overtime = dice.below(60);
        let remote = dice.below(2) == 0;
        let log_odds =
            overtime as f64 / 8.0 - 3.5 - (dollars as f64 - 70_000.0) / 20_000.0 + if remote { -1.0 } else { 1.0 };
        sheet.write(row, 0, 100_000 + i).unwrap();
        sheet
            .write_with_format(row, 1, ExcelDateTime::parse_from_str(&date_text(hired as f64)).unwrap(), &date)
            .unwrap();
        sheet.write(row, 2, department).unwrap();
        sheet.write(row, 3, format!("${}.{:02}", grouped(dollars, ","), dice.below(100))).unwrap();
        if dice.below(30) > 0 {
            sheet.write(row, 4, format!("{}.{}%", bonus / 10, bonus % 10)).unwrap();
        }
        match dice.below(50) {
            0 => sheet.write(row, 5, "n/a"),
            _ => sheet.write(row, 5, overtime as f64),
        }
        .unwrap();
        sheet.write(row, 6, remote).unwrap();
        let formula = Formula::new(format!("=ROUND(C{}*0.7,0)", row + 1)).set_result((dollars * 7 / 10).to_string());
        sheet.write(row, 7, formula).unwrap();
        sheet.write(row, 8, if happens(&mut dice, log_odds) { "Yes" } else { "No" }).unwrap();
    }
    sheet.write(3 + people, 0, "Total").unwrap();
    sheet.write(3 + people, 3, "$1,234,567,890.00").unwrap();
    book.save(path).unwrap();
}

/// Answers to a survey as a form exports them: questions as headers, ages in groups, several choices in one cell, free text with
/// quotes and line breaks, answers left empty.
pub fn survey(people: u64, seed: u64) -> String {
    const AGREE: [&str; 5] = ["Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree"];
    let mut dice = Dice(seed);
    let mut text = "\u{feff}Timestamp,What is your age?,\"How many hours, in a normal week, do you work?\",\
        \"I can talk to my manager \"\"any time\"\"\",My tools work,Which of these do you use? (tick all that apply),\
        What should we change?,How satisfied are you overall?\n"
        .to_owned();
    for i in 0..people {
        let (year, month, of_month) = day(NEW_YEAR + 800 + i / 900);
        let age = pick(&mut dice, &["18-24", "25-34", "35-44", "45-54", "55+", "Prefer not to say"]);
        let hours = 15 + dice.below(45);
        let (manager, tools) = (dice.below(5) as usize, dice.below(5) as usize);
        let mut used: Vec<&str> = ["Chat", "Mail", "Wiki"].into_iter().filter(|_| dice.below(2) == 0).collect();
        used.truncate(2);
        let change = match dice.below(4) {
            0 => "\"Fewer meetings, more \"\"focus\"\".\n\nThanks\"".to_owned(),
            1 => format!("\"No. {i}: nothing\"", i = dice.below(100_000)),
            2 => format!("Room {} is too cold", dice.below(5000)),
            _ => String::new(),
        };
        let score = manager as f64 + tools as f64 * 0.7 - hours as f64 / 20.0 + dice.unit() * 2.0;
        let satisfied = if score > 3.7 {
            "Satisfied"
        } else if score > 1.8 {
            "Neither"
        } else {
            "Dissatisfied"
        };
        let answer = |number: usize, empty: bool| if empty { "" } else { AGREE[number] };
        let (first, second) = (dice.below(40) == 0, dice.below(40) == 0);
        let hours = if dice.below(25) == 0 { "about 40".to_owned() } else { hours.to_string() };
        let _ = writeln!(
            text,
            "{year}/{month:02}/{of_month:02} {}:{:02}:{:02} {},{age},{hours},{},{},{},{change},{satisfied}",
            1 + dice.below(12),
            dice.below(60),
            dice.below(60),
            pick(&mut dice, &["AM", "PM"]),
            answer(manager, first),
            answer(tools, second),
            used.join(";"),
        );
    }
    text
}

/// The log of sensors that people wear: no header, tabs, times with a time zone, numbers with exponents, -999 and `ERR` where a
/// sensor failed.
pub fn sensors(lines: u64, seed: u64) -> String {
    let mut dice = Dice(seed);
    let mut text = String::new();
    for i in 0..lines {
        let (year, month, of_month) = day(NEW_YEAR + i / 200);
        let hour = (i / 8) % 24;
        let steps = dice.below(2000);
        let skin = 30.0 + dice.unit() * 6.0;
        let pulse =
            55.0 + steps as f64 / 40.0 + (skin - 33.0) * 4.0 + dice.unit() * 8.0 - if hour < 6 { 6.0 } else { 0.0 };
        let skin = match dice.below(60) {
            0 => "-999".to_owned(),
            1 => "ERR".to_owned(),
            _ => format!("{:.4}e1", skin / 10.0),
        };
        let _ = writeln!(
            text,
            "{year}-{month:02}-{of_month:02}T{hour:02}:{:02}:{:02}Z\tdev-{:03}\t{steps}\t{skin}\t{}\t{pulse:.1}",
            dice.below(60),
            dice.below(60),
            dice.below(3000),
            pick(&mut dice, &["ok", "ok", "ok", "low"]),
        );
    }
    text
}

/// Orders, many of a customer: amounts with a currency and groups of digits, American dates with AM and PM, countries in two
/// spellings, addresses of pages, coupons that most orders lack.
/// `late` is the next year's export, with customers from another country.
pub fn orders(customers: u64, late: bool, seed: u64) -> String {
    let mut dice = Dice(seed);
    let mut text = "order id,customer e-mail,ordered at,country,amount,items,coupon,landing page,returned\n".to_owned();
    let mut order = 70_000_000;
    for customer in 0..customers {
        let countries = ["US", "United States", "CA", "UK", "DE", "FR"];
        let country = pick(&mut dice, &countries[..if late { 6 } else { 5 }]);
        for _ in 0..=[0, 0, 1, 1, 2, 3, 6, 24][dice.below(8) as usize] {
            order += 1 + dice.below(9);
            let (year, month, of_month) = day(NEW_YEAR + 366 + dice.below(365) + if late { 365 } else { 0 });
            let cents = 900 + dice.below(80_000) * (1 + dice.below(5));
            let items = 1 + dice.below(9);
            let coupon = if dice.below(6) == 0 { pick(&mut dice, &["SUMMER", "FIRST10"]) } else { "" };
            let log_odds = (cents as f64 / 100.0 - 1100.0) / 400.0
                + if coupon.is_empty() { -0.4 } else { 1.8 }
                + items as f64 * 0.1;
            let _ = writeln!(
                text,
                "{order},c{customer}@example.org,{month:02}/{of_month:02}/{year} {:02}:{:02} {},{country},\"USD {}.{:02}\",{items},{coupon},https://shop.example/?s={order},{}",
                1 + dice.below(12),
                dice.below(60),
                pick(&mut dice, &["AM", "PM"]),
                grouped(cents / 100, ","),
                cents % 100,
                if happens(&mut dice, log_odds) { "TRUE" } else { "FALSE" },
            );
        }
    }
    text
}
