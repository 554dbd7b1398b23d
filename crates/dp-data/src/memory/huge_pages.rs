//! Huge pages for large collections.
//!
//! A table of 200 MB takes 50,000 faults on pages of 4 KiB, a quarter of the time of reading it. Many systems use pages of 2 MiB
//! only for memory that asks for them (`/sys/kernel/mm/transparent_hugepage/enabled`).

#![allow(unsafe_code)]

use rustix::mm::{Advice, madvise};
use rustix::param::page_size;

/// Size from which on a collection asks for them: two huge pages.
const LEAST: usize = 4 << 20;

/// Asks the kernel for huge pages for the memory of a collection. Without them nothing but the time differs.
pub(super) fn advise<T>(collection: &Vec<T>) {
    let start = collection.as_ptr().cast_mut().cast::<u8>();
    let len = collection.capacity().saturating_mul(size_of::<T>());
    if len < LEAST {
        return;
    }
    // The whole of the first page, which holds the allocator's header: a mapping in two parts could not grow in place.
    let before = start.addr() % page_size();
    // SAFETY: this advice changes neither the contents of memory nor its validity, whatever the range; the kernel refuses a range
    // that is not mapped.
    let _ = unsafe { madvise(start.wrapping_sub(before).cast(), len + before, Advice::LinuxHugepage) };
}

#[cfg(test)]
mod tests {
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
}
