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
mod tests;
