//! The places of all cells of a text, found 64 bytes at a time.

use pulp::{Arch, Simd, WithSimd};

use crate::memory::{OutOfMemory, reserve};

/// Bytes looked at together.
pub(super) const BLOCK: usize = 64;
/// Longest text of a tape, so that its memory stays small whatever the rows.
pub(super) const LONGEST: usize = 512 * 1024;

/// The ends of all cells of a text without quotes, which are its delimiters and line feeds.
#[derive(Default)]
pub(super) struct Tape {
    /// `ends[0]` is the place before the text, -1; the others are the ends of cells, in order. Elements from `length` on are
    /// unused.
    ends: Vec<u32>,
    length: usize,
    /// For each line, the index of its end in `ends`.
    lines: Vec<u32>,
}

impl Tape {
    /// Reads a text of at most [`LONGEST`] bytes.
    pub(super) fn read(&mut self, arch: Arch, text: &[u8], delimiter: u8) -> Result<(), OutOfMemory> {
        const TAPE: &str = "the places of cells";
        let room = text.len().next_multiple_of(BLOCK) + BLOCK + 1;
        if self.ends.len() < room {
            let missing = room - self.ends.len();
            reserve(&mut self.ends, missing, TAPE)?;
            self.ends.resize(room, 0);
        }
        self.lines.clear();
        // A line has at least its end.
        let lines = memchr::memchr_iter(b'\n', text).count();
        reserve(&mut self.lines, lines, TAPE)?;
        self.ends[0] = u32::MAX;
        self.length = 1;
        arch.dispatch(Scan { tape: self, text, delimiter });
        Ok(())
    }

    /// Returns the number of whole lines.
    pub(super) fn lines(&self) -> usize {
        self.lines.len()
    }

    /// Returns the ends of the cells of a line, after the end of the line before.
    pub(super) fn line(&self, line: usize) -> &[u32] {
        let before = if line == 0 { 0 } else { self.lines[line - 1] as usize };
        &self.ends[before..=self.lines[line] as usize]
    }
}

struct Scan<'t> {
    tape: &'t mut Tape,
    text: &'t [u8],
    delimiter: u8,
}

impl WithSimd for Scan<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Self { tape, text, delimiter } = self;
        let (blocks, rest) = text.as_chunks::<BLOCK>();
        let mut last = [0; BLOCK];
        last[..rest.len()].copy_from_slice(rest);
        let mut length = tape.length;
        for (block, start) in blocks.iter().chain([&last]).zip((0u32..).step_by(BLOCK)) {
            let (cells, mut lines) = marks(block, delimiter);
            push(&mut tape.ends, length, start, cells);
            while lines != 0 {
                let below = lines & lines.wrapping_neg();
                tape.lines.push(length as u32 + (cells & (below - 1)).count_ones());
                lines &= lines - 1;
            }
            length += cells.count_ones() as usize;
        }
        tape.length = length;
    }
}

/// Returns the places of delimiters and line feeds, and those of line feeds, as bits.
#[inline(always)]
fn marks(block: &[u8; BLOCK], delimiter: u8) -> (u64, u64) {
    let (mut cells, mut lines) = ([0; BLOCK], [0; BLOCK]);
    for i in 0..BLOCK {
        lines[i] = u8::from(block[i] == b'\n');
        cells[i] = lines[i] | u8::from(block[i] == delimiter);
    }
    (bits(&cells), bits(&lines))
}

/// Returns the bits of bytes that are 0 or 1.
#[inline(always)]
pub(super) fn bits(bytes: &[u8; BLOCK]) -> u64 {
    let mut all = 0;
    for (i, eight) in bytes.as_chunks::<8>().0.iter().enumerate() {
        // Moves bit 8k to 56 + k.
        all |= (u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56) << (8 * i);
    }
    all
}

/// Writes the places of the bits of `cells` from `ends[length]` on; eight at a time, so that what follows them is overwritten.
#[inline(always)]
fn push(ends: &mut [u32], length: usize, start: u32, mut cells: u64) {
    let count = cells.count_ones() as usize;
    let Some(places) = ends.get_mut(length..length + BLOCK) else { return };
    for eight in places.as_chunks_mut::<8>().0.iter_mut().take(count.div_ceil(8)) {
        for place in eight {
            *place = start + cells.trailing_zeros();
            cells &= cells.wrapping_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn all_cells_have_their_places(text in prop::collection::vec(prop::sample::select(b",,,\n\n01\r\"\x8a\xac".to_vec()), 0..400)) {
            let mut tape = Tape::default();
            for arch in [Arch::new(), Arch::Scalar] {
                tape.read(arch, &text, b',').unwrap();
                let mut start = 0;
                let lines: Vec<&[u8]> = text.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n")).collect();
                prop_assert_eq!(tape.lines(), lines.len());
                for (i, line) in lines.iter().enumerate() {
                    let places = line.iter().zip(start..).filter(|(byte, _)| matches!(byte, b',' | b'\n')).map(|(_, place)| place);
                    let expected: Vec<u32> = std::iter::once(u32::wrapping_sub(start, 1)).chain(places).collect();
                    prop_assert_eq!(tape.line(i), &expected[..]);
                    start += line.len() as u32;
                }
            }
        }
    }
}
