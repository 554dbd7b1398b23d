//! Fallible allocation for collections of records, with errors that name the contents.
//!
//! A collection that grows by itself aborts the process when memory is exhausted. These functions reserve first. A large step is
//! also compared with the memory that the system has left: under Linux a larger reservation succeeds, and the process is killed
//! later, when it writes there.
//!
//! # Examples
//! ```
//! let mut rows: Vec<f64> = Vec::new();
//! dp_data::memory::reserve(&mut rows, 3, "the rows")?;
//! rows.extend([1.0, 2.0, 3.0]);
//! let error = dp_data::memory::reserve(&mut rows, usize::MAX / 8, "the rows").unwrap_err();
//! assert_eq!((error.what, error.held), ("the rows", 32));
//! # Ok::<(), dp_data::memory::OutOfMemory>(())
//! ```

#[cfg(all(target_os = "linux", feature = "files"))]
mod huge_pages;

use core::fmt;
use std::io::{self, BufRead, Read};

/// Size from which on a step is compared with the memory that the system has left.
const LARGE: usize = 64 << 20;
/// Bytes that a growing collection leaves free for small allocations of other threads, whose failure would abort the process.
const SPARE: usize = 8 << 20;
/// Size from which on a collection leaves them.
const LEAVES_SPARE: usize = 1 << 20;
/// Least growth in bytes of a collection larger than this, so that even with little memory left a step holds many elements.
const LEAST: usize = 64 << 10;

/// Memory is exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The contents, e.g. `the rows`.
    pub what: &'static str,
    /// Bytes already held.
    pub held: u64,
    /// Additional bytes requested, at least; 0 if not stated.
    pub needed: u64,
}

impl OutOfMemory {
    /// Removes the sizes, if they depend on the content of records: messages are public.
    #[must_use]
    pub fn without_sizes(self) -> Self {
        Self { held: 0, needed: 0, ..self }
    }
}

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no memory for {}", self.what)?;
        match (self.held, self.needed) {
            (_, 0) => Ok(()),
            (0, needed) => write!(f, ": {} are needed", Bytes(needed)),
            (held, needed) => write!(f, ": {} are held, and {} more are needed", Bytes(held), Bytes(needed)),
        }
    }
}

impl std::error::Error for OutOfMemory {}

/// A number of bytes, as displayed and as typed.
///
/// # Examples
/// ```
/// use dp_data::memory::Bytes;
/// assert_eq!(Bytes(3 << 29).to_string(), "1.5 GiB");
/// assert_eq!(["1.5GiB", "300 MB", "4096", "2k"].map(|text| text.parse().ok()), [
///     Some(Bytes(3 << 29)), Some(Bytes(300_000_000)), Some(Bytes(4096)), Some(Bytes(2000)),
/// ]);
/// assert!(["", "GiB", "-1", "1 GiBs", "1e400", "nan"].iter().all(|text| text.parse::<Bytes>().is_err()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bytes(pub u64);

impl core::str::FromStr for Bytes {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || "expected a number of bytes, as 500MB or 4GiB".to_owned();
        let end = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
        let (number, unit) = (text[..end].trim(), text[end..].to_ascii_lowercase());
        let number: f64 = number.parse().map_err(|_| expected())?;
        let (base, unit) = match unit.strip_suffix("ib") {
            Some(unit) => (1024f64, unit),
            None => (1000.0, unit.strip_suffix('b').unwrap_or(&unit)),
        };
        let power = ["", "k", "m", "g", "t", "p"].iter().position(|&known| known == unit).ok_or_else(expected)?;
        let bytes = number * base.powi(power as i32);
        if bytes >= 0.0 && bytes < u64::MAX as f64 { Ok(Self(bytes as u64)) } else { Err(expected()) }
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
        if self.0 < 1 << 10 {
            return write!(f, "{} bytes", self.0);
        }
        let power = (self.0.ilog2() / 10).min(UNITS.len() as u32);
        let number = self.0 as f64 / 2f64.powi(10 * power as i32);
        write!(f, "{number:.1} {}", UNITS[power as usize - 1])
    }
}

/// Reserves memory for `additional` more elements. A collection that grows often grows by a multiple of its size, so that its
/// elements are copied a bounded number of times.
///
/// # Errors
/// [`OutOfMemory`]; in this case the collection is unchanged.
#[inline]
pub fn reserve<T>(collection: &mut Vec<T>, additional: usize, what: &'static str) -> Result<(), OutOfMemory> {
    if additional <= collection.capacity() - collection.len() { Ok(()) } else { grow(collection, additional, what) }
}

/// As [`reserve`], if there is no room.
#[cold]
fn grow<T>(collection: &mut Vec<T>, additional: usize, what: &'static str) -> Result<(), OutOfMemory> {
    let (length, capacity) = (collection.len(), collection.capacity());
    let bytes = |elements: usize| elements.saturating_mul(size_of::<T>());
    let least = if bytes(capacity) < LEAST { 4 } else { LEAST / size_of::<T>().max(1) };
    // Twice the size; if that is too much, a fraction more.
    for step in [capacity, capacity / 8, capacity / 64, least] {
        let spare = additional.max(step).max(least);
        let new = length.saturating_add(spare).saturating_sub(capacity);
        let leaves_spare = bytes(capacity) < LEAVES_SPARE || can_hold(bytes(new).saturating_add(SPARE));
        if fits(bytes(new)) && leaves_spare && try_reserve(collection, spare) {
            return Ok(());
        }
    }
    let needed = length.saturating_add(additional).saturating_sub(capacity);
    Err(OutOfMemory { what, held: bytes(capacity) as u64, needed: bytes(needed) as u64 })
}

/// Reserves memory for exactly that many more elements, in huge pages if they are many. Returns false if there is none.
fn try_reserve<T>(collection: &mut Vec<T>, additional: usize) -> bool {
    let is_reserved = collection.try_reserve_exact(additional).is_ok();
    #[cfg(all(target_os = "linux", feature = "files"))]
    if is_reserved {
        huge_pages::advise(collection);
    }
    is_reserved
}

/// Returns whether that many bytes can be allocated now.
fn can_hold(bytes: usize) -> bool {
    Vec::<u8>::new().try_reserve_exact(bytes).is_ok()
}

/// Creates an empty collection with room for `elements`.
///
/// # Errors
/// [`OutOfMemory`].
pub fn with_capacity<T>(elements: usize, what: &'static str) -> Result<Vec<T>, OutOfMemory> {
    let bytes = elements.saturating_mul(size_of::<T>());
    let mut collection = Vec::new();
    if fits(bytes) && try_reserve(&mut collection, elements) {
        return Ok(collection);
    }
    Err(OutOfMemory { what, held: 0, needed: bytes as u64 })
}

/// Returns `elements` copies of `value`.
///
/// # Errors
/// [`OutOfMemory`].
///
/// # Examples
/// ```
/// assert_eq!(dp_data::memory::filled(0.5, 2, "the weights")?, [0.5, 0.5]);
/// assert!(dp_data::memory::filled(0.5, usize::MAX / 16, "the weights").is_err());
/// # Ok::<(), dp_data::memory::OutOfMemory>(())
/// ```
pub fn filled<T: Clone>(value: T, elements: usize, what: &'static str) -> Result<Vec<T>, OutOfMemory> {
    let mut collection = with_capacity(elements, what)?;
    collection.resize(elements, value);
    Ok(collection)
}

/// Collects the elements of an iterator of known length.
///
/// # Errors
/// [`OutOfMemory`].
pub fn collect<T>(elements: impl ExactSizeIterator<Item = T>, what: &'static str) -> Result<Vec<T>, OutOfMemory> {
    let mut collection = with_capacity(elements.len(), what)?;
    collection.extend(elements);
    Ok(collection)
}

/// Returns a copy of a text.
///
/// # Errors
/// [`OutOfMemory`].
pub fn text(text: &str, what: &'static str) -> Result<String, OutOfMemory> {
    let mut copy = String::new();
    let needed = text.len() as u64;
    copy.try_reserve_exact(text.len()).map_err(|_| OutOfMemory { what, held: 0, needed })?;
    copy.push_str(text);
    Ok(copy)
}

/// Checks that there is room for `bytes`, before work with known memory use. Nothing is kept.
///
/// # Errors
/// [`OutOfMemory`].
pub fn check(bytes: usize, what: &'static str) -> Result<(), OutOfMemory> {
    with_capacity::<u8>(bytes, what).map(drop)
}

/// Reads everything from a reader, but at most `limit + 1` bytes: the last one shows that the limit is exceeded.
///
/// # Errors
/// Those of the reader; [`OutOfMemory`] as an I/O error ([`of_io`]).
pub fn read(reader: impl Read, limit: u64, what: &'static str) -> io::Result<Vec<u8>> {
    const CHUNK: usize = 1 << 16;
    let mut reader = reader.take(limit.saturating_add(1));
    let mut bytes = Vec::new();
    loop {
        reserve(&mut bytes, CHUNK, what).map_err(to_io)?;
        let room = bytes.capacity() - bytes.len();
        if reader.by_ref().take(room as u64).read_to_end(&mut bytes)? < room {
            return Ok(bytes);
        }
    }
}

/// Appends a line, including its end, but at most `limit` bytes; returns the number of bytes.
///
/// # Errors
/// Those of the reader; [`OutOfMemory`] as an I/O error ([`of_io`]).
pub fn read_line(reader: &mut impl BufRead, limit: usize, line: &mut Vec<u8>) -> io::Result<usize> {
    let before = line.len();
    loop {
        let available = match reader.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            available => available?,
        };
        let end = available.iter().position(|&byte| byte == b'\n').map(|at| at + 1);
        let taken = end.unwrap_or(available.len()).min(limit - (line.len() - before));
        reserve(line, taken, "one line of the file").map_err(|error| to_io(error.without_sizes()))?;
        line.extend_from_slice(&available[..taken]);
        reader.consume(taken);
        let read = line.len() - before;
        if taken == 0 || read == limit || line.last() == Some(&b'\n') {
            return Ok(read);
        }
    }
}

/// Converts exhausted memory to an I/O error.
pub fn to_io(error: OutOfMemory) -> io::Error {
    io::Error::new(io::ErrorKind::OutOfMemory, error)
}

/// Returns the exhausted memory in an I/O error, if there is one.
pub fn of_io(error: &io::Error) -> Option<OutOfMemory> {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<OutOfMemory>()).copied();
    let unknown = OutOfMemory { what: "what was read", held: 0, needed: 0 };
    inner.or_else(|| (error.kind() == io::ErrorKind::OutOfMemory).then_some(unknown))
}

/// Returns the memory that the system has left for this process, in bytes: that of the machine and of its control groups. `None`
/// if the system does not report it.
pub fn left() -> Option<u64> {
    system::left()
}

/// Returns whether the system has this much memory left, to its knowledge.
fn fits(bytes: usize) -> bool {
    bytes < LARGE || left().is_none_or(|left| bytes as u64 <= left)
}

#[cfg(target_os = "linux")]
mod system {
    //! Memory information from the kernel: of the machine, and of the control groups of this process.

    use std::fs::read_to_string;
    use std::path::{Path, PathBuf};

    /// Returns the available bytes, including swap; `None` if the kernel does not report them.
    pub(super) fn left() -> Option<u64> {
        let machine = read_to_string("/proc/meminfo").ok().and_then(|text| of_machine(&text));
        let groups = read_to_string("/proc/self/cgroup").ok().and_then(|text| of_groups(&text, Path::new(ROOT)));
        match (machine, groups) {
            (Some(machine), Some(groups)) => Some(machine.min(groups)),
            (machine, groups) => machine.or(groups),
        }
    }

    const ROOT: &str = "/sys/fs/cgroup";

    /// Parses the text of `/proc/meminfo`, in units of 1024 bytes.
    pub(super) fn of_machine(text: &str) -> Option<u64> {
        let field = |name: &str| {
            let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
            rest.split_ascii_whitespace().next()?.parse::<u64>().ok()
        };
        Some(field("MemAvailable:")?.saturating_add(field("SwapFree:").unwrap_or(0)).saturating_mul(1024))
    }

    /// Returns the least memory left in any group above this process; `None` if none has a limit.
    pub(super) fn of_groups(text: &str, root: &Path) -> Option<u64> {
        text.lines()
            .filter_map(|line| {
                let mut parts = line.splitn(3, ':').skip(1);
                let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
                let (base, names) = match controllers {
                    "" => (root.to_owned(), ["memory.max", "memory.current"]),
                    _ if controllers.split(',').any(|name| name == "memory") => {
                        (root.join("memory"), ["memory.limit_in_bytes", "memory.usage_in_bytes"])
                    }
                    _ => return None,
                };
                // In a container the path may be the outer one, which does not exist; the root is then its own group.
                let group: PathBuf = base.join(path);
                let groups = group.ancestors().take_while(|group| group.starts_with(&base));
                groups.filter_map(|group| of_group(group, names)).min()
            })
            .min()
    }

    /// Returns the limit minus the used memory, excluding files that can be dropped. The largest number of the older interface
    /// means no limit and is harmless.
    fn of_group(group: &Path, [limit, used]: [&str; 2]) -> Option<u64> {
        let number = |name: &str| read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
        let (limit, used) = (number(limit)?, number(used)?);
        let statistics = read_to_string(group.join("memory.stat")).unwrap_or_default();
        let files = ["inactive_file ", "active_file "]
            .iter()
            .filter_map(|name| statistics.lines().find_map(|line| line.strip_prefix(name))?.trim().parse::<u64>().ok());
        let swap = number("memory.swap.max").unwrap_or(0).saturating_sub(number("memory.swap.current").unwrap_or(0));
        Some(limit.saturating_sub(used.saturating_sub(files.sum())).saturating_add(swap))
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    //! On other systems a successful reservation is trusted.

    pub(super) fn left() -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_and_changes_nothing() {
        let mut numbers = vec![1u64, 2, 3];
        let error = reserve(&mut numbers, usize::MAX, "the numbers").unwrap_err();
        assert_eq!(error, OutOfMemory { what: "the numbers", held: 24, needed: u64::MAX });
        assert_eq!(numbers, [1, 2, 3]);
        assert!(with_capacity::<u64>(usize::MAX / 4, "the numbers").is_err());
        assert!(filled(0u64, usize::MAX / 4, "the numbers").is_err());
        assert!(check(usize::MAX, "the numbers").is_err());
        assert_eq!(collect((0..3).map(|i| i * i), "squares").unwrap(), [0, 1, 4]);
        assert_eq!(text("a name", "a name").unwrap(), "a name");
    }

    #[test]
    fn growth_copies_a_bounded_number_of_times() {
        let (mut numbers, mut steps, mut last) = (Vec::new(), 0, 0);
        for number in 0..1_000_000u32 {
            reserve(&mut numbers, 1, "the numbers").unwrap();
            steps += usize::from(numbers.capacity() != last);
            last = numbers.capacity();
            numbers.push(number);
        }
        assert!(steps < 25, "{steps}");
        assert_eq!(numbers.iter().map(|&number| u64::from(number)).sum::<u64>(), 499_999_500_000);
    }

    #[test]
    fn messages_name_what_and_how_much() {
        let error = OutOfMemory { what: "the rows", held: 3 << 30, needed: 1536 << 10 };
        let text = "there is no memory for the rows: 3.0 GiB are held, and 1.5 MiB more are needed";
        assert_eq!(error.to_string(), text);
        let none = OutOfMemory { held: 0, needed: 1000, ..error };
        assert_eq!(none.to_string(), "there is no memory for the rows: 1000 bytes are needed");
        assert_eq!(error.without_sizes().to_string(), "there is no memory for the rows");
        assert_eq!(Bytes(u64::MAX).to_string(), "16.0 EiB");
    }

    #[test]
    fn a_reader_is_read_to_its_end_or_its_limit() {
        let bytes: Vec<u8> = (0..200_000u32).map(|i| i as u8).collect();
        assert_eq!(read(&bytes[..], u64::MAX, "a file").unwrap(), bytes);
        assert_eq!(read(&bytes[..], 200_000, "a file").unwrap().len(), 200_000);
        assert_eq!(read(&bytes[..], 99, "a file").unwrap(), bytes[..100]);
        assert!(read(&bytes[..0], 0, "a file").unwrap().is_empty());
        let error = to_io(OutOfMemory { what: "a file", held: 1, needed: 2 });
        assert_eq!(of_io(&error).map(|error| error.needed), Some(2));
        assert!(of_io(&io::Error::other("else")).is_none());
        assert!(of_io(&io::ErrorKind::OutOfMemory.into()).is_some());
    }

    #[test]
    fn lines_end_where_they_end_or_at_the_limit() {
        for capacity in [1, 3, 100] {
            let mut reader = io::BufReader::with_capacity(capacity, &b"one\n\nthree, long\nlast"[..]);
            let mut found = Vec::new();
            loop {
                let mut line = vec![b'>'];
                let read = read_line(&mut reader, 7, &mut line).unwrap();
                assert_eq!(read, line.len() - 1);
                if read == 0 {
                    break;
                }
                found.push(String::from_utf8(line).unwrap());
            }
            assert_eq!(found, [">one\n", ">\n", ">three, ", ">long\n", ">last"], "{capacity}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn more_than_the_machine_has_is_refused() {
        // The kernel may promise this much, but the machine does not have it.
        let (Some(left), Ok(bytes)) = (system::left(), usize::try_from(1u64 << 46)) else { return };
        assert!(left > 0 && left < 1 << 46, "{left}");
        assert!(check(bytes, "a test").is_err());
        assert!(check(1 << 20, "a test").is_ok());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_machine_says_what_it_has() {
        let text = "MemTotal: 900 kB\nMemFree:  100 kB\nMemAvailable:  500 kB\nSwapFree: 24 kB\n";
        assert_eq!(system::of_machine(text), Some(524 * 1024));
        assert_eq!(system::of_machine("MemAvailable: 5 kB\n"), Some(5 * 1024));
        assert_eq!(system::of_machine("MemFree: 5 kB\n"), None);
    }

    #[cfg(all(target_os = "linux", feature = "files"))]
    #[test]
    fn the_narrowest_group_counts_without_the_files_that_can_be_dropped() {
        let root = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let left = |text: &str| system::of_groups(text, root.path());
        assert_eq!(left("0::/a/b\n"), None);
        write("a/b/memory.max", "max\n");
        write("a/b/memory.current", "700\n");
        assert_eq!(left("0::/a/b\n"), None);
        write("a/memory.max", "1000\n");
        write("a/memory.current", "900\n");
        assert_eq!(left("0::/a/b\n"), Some(100));
        write("a/memory.stat", "anon 500\nactive_file 30\ninactive_file 50\n");
        assert_eq!(left("0::/a/b\n"), Some(180));
        write("a/memory.swap.max", "64");
        write("a/memory.swap.current", "60");
        assert_eq!(left("0::/a/b\n"), Some(184));
        write("memory/c/memory.limit_in_bytes", "50");
        write("memory/c/memory.usage_in_bytes", "60");
        assert_eq!(left("9:name=x:/c\n5:cpu,memory:/c\n0::/a\n"), Some(0));
        assert_eq!(left("4:cpu:/c\n"), None);
    }
}
