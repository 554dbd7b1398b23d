//! System calls that fail, one in each run, injected by `strace`: nothing panics, hangs or leaves a partial file.

use crate::Campaign;
use crate::judge::{Case, Ending, Fault, Place, Verdict, ending, how_it_ended};
use crate::specimens::words;
use crate::support::Dice;

/// System calls and the errors that they may return.
const CALLS: &[(&str, &[&str])] = &[
    ("openat", &["EACCES", "EMFILE", "ENFILE", "EIO", "ENOENT"]),
    ("read", &["EIO", "EINTR", "EISDIR", "EAGAIN"]),
    ("write", &["ENOSPC", "EIO", "EINTR", "EPIPE", "EDQUOT", "EFBIG"]),
    ("fsync", &["EIO", "ENOSPC"]),
    ("rename,renameat,renameat2", &["EACCES", "EXDEV", "EIO", "ENOSPC"]),
    ("link,linkat", &["EEXIST", "EPERM", "EMLINK"]),
    ("unlink,unlinkat", &["EACCES", "EIO"]),
    ("statx,newfstatat,fstat", &["EACCES", "EIO"]),
    ("lseek", &["ESPIPE", "EINVAL"]),
    ("ftruncate", &["EIO", "EFBIG"]),
    ("fchmod,chmod", &["EPERM"]),
    ("flock", &["ENOLCK", "EINTR", "EWOULDBLOCK"]),
    ("mkdir,mkdirat", &["ENOSPC", "EACCES"]),
    ("getrandom", &["EINTR", "ENOSYS", "EPERM"]),
    ("clone3,clone", &["EAGAIN", "ENOMEM"]),
];

const COMMANDS: &[(&str, &[&str], &[&str])] = &[
    (
        "train --data people.csv --schema schema.toml --epsilon 1 --algorithm bolt-on-convex --out m.json --report m.md",
        &["people.csv", "schema.toml"],
        &["m.json", "m.md"],
    ),
    (
        "tune --data people.csv --schema schema.toml --epsilon 4 --passes 1,2 --out m.json",
        &["people.csv", "schema.toml"],
        &["m.json"],
    ),
    ("predict --model model.json --data people.csv --out p.csv", &["model.json", "people.csv"], &["p.csv"]),
    ("evaluate --model model.json --data people.csv", &["model.json", "people.csv"], &[]),
    ("schema people.csv.gz --label earns --out s.toml", &["people.csv.gz"], &["s.toml"]),
    ("verify model.json", &["model.json"], &[]),
    ("sign new-key k", &[], &["k", "k.pub"]),
    ("account batch questions.jsonl", &["questions.jsonl"], &[]),
    (
        "rank train --data lists.txt --loss listnet --model linear --epsilon 3 --delta 1e-4 --updates 5 --out r.json",
        &["lists.txt"],
        &["r.json"],
    ),
    ("reproduce thesis-6 --quick --repetitions 1 --algorithm noiseless --out out", &["out/runs.csv"], &[]),
];

pub fn run(campaign: &Campaign, place: &Place, dice: &mut Dice) -> Verdict {
    let (line, files, outputs) = COMMANDS[dice.below(COMMANDS.len() as u64) as usize];
    let (call, errors) = CALLS[dice.below(CALLS.len() as u64) as usize];
    let error = errors[dice.below(errors.len() as u64) as usize];
    // Early calls are chosen more often: most kinds of call are rare in a command.
    let reach = dice.below(7);
    let when = 1 + dice.below(1 << reach);
    // Sometimes all later calls fail too; not with EINTR, after which a call is retried for ever.
    let all = if dice.below(8) == 0 && error != "EINTR" { "+" } else { "" };
    let inject = format!("inject={call}:error={error}:when={when}{all}");
    let mut case = Case { arguments: words(line), ..Case::default() };
    case.under = ["strace", "-f", "-qqq", "-o", "/dev/null", "-e", &format!("trace={call}"), "-e", &inject]
        .map(String::from)
        .into();
    case.files = files.iter().map(|&name| (name.to_owned(), campaign.specimens[name].clone())).collect();
    place.prepare(&case.files);
    let ran = place.run(&case.under, &case.arguments, None, campaign.patience);
    let ending = ending(&ran);
    // Calls that fail before `main` belong to the loader, which exits with 127, as does `strace` if it cannot start.
    let stderr = String::from_utf8_lossy(&ran.stderr);
    if ran.code() == Some(127) || stderr.contains("strace:") {
        return Verdict { ending: Ending::Refused, faults: vec![] };
    }
    let mut faults = how_it_ended(&ran);
    let now = place.files();
    for (name, content) in &case.files {
        if now.get(name) != Some(content) && !line.starts_with("reproduce") {
            faults.push((Fault::Torn, format!("{name} has changed or is gone ({inject})")));
        }
    }
    let whole = outputs.iter().filter(|name| now.contains_key(**name)).count();
    if ending == Ending::Succeeded && whole != outputs.len() {
        faults.push((Fault::Torn, format!("success without {outputs:?} ({inject})")));
    }
    // A temporary file may remain only if it could not be removed.
    let parts = now.keys().filter(|name| name.contains(".part")).count();
    if parts > 0 && !call.starts_with("unlink") {
        faults.push((Fault::Torn, format!("a temporary file is left ({inject})")));
    }
    for name in outputs.iter().filter(|name| now.contains_key(**name)) {
        if matches!(*name, "m.json" | "r.json") {
            let verified = place.run(&[], &words(&format!("verify {name}")), None, campaign.patience);
            if verified.code() != Some(0) {
                faults.push((Fault::Torn, format!("{name} does not verify ({inject})")));
            }
        }
        if now[*name].is_empty() {
            faults.push((Fault::Torn, format!("{name} is empty ({inject})")));
        }
    }
    for fault in &mut faults {
        fault.1 = format!("{} [{line}; {inject}]", fault.1);
    }
    Verdict { ending, faults }
}
