use std::fs::read_to_string;
use std::path::Path;

use crate::memory::{reserve, with_capacity};

/// Returns the kernel's flags of the mapping that holds an address, by `/proc/self/smaps`.
fn flags(address: usize) -> String {
    let text = read_to_string("/proc/self/smaps").unwrap();
    let mut holds = false;
    for line in text.lines() {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let number = |text| usize::from_str_radix(text, 16).ok();
        if let Some((Some(start), Some(end))) = range.map(|(start, end)| (number(start), number(end))) {
            holds = (start..end).contains(&address);
        } else if let (true, Some(flags)) = (holds, line.strip_prefix("VmFlags:")) {
            return flags.to_owned();
        }
    }
    panic!("no mapping holds {address:x}");
}

/// Collections of 4 MiB ask for huge pages, at once and after they have grown, from their first element to their last.
#[test]
fn large_collections_ask_for_huge_pages() {
    if !Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
        eprintln!("skipped: this kernel has no transparent huge pages");
        return;
    }
    let asks = |numbers: &Vec<u64>| {
        let start = numbers.as_ptr().addr();
        [start, start + numbers.capacity() * size_of::<u64>() - 1].map(|place| flags(place).contains(" hg"))
    };
    let mut numbers = with_capacity::<u64>(1 << 19, "the numbers").unwrap();
    assert_eq!(asks(&numbers), [true; 2]);
    numbers.resize(1 << 19, 7);
    for _ in 0..4 {
        let more = numbers.len() + 1;
        reserve(&mut numbers, more, "the numbers").unwrap();
        assert_eq!(asks(&numbers), [true; 2]);
        numbers.resize(numbers.capacity(), 7);
    }
    assert!(numbers.iter().all(|number| *number == 7));
}
