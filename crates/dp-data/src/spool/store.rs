//! A temporary file without a name, read and written at positions, and encrypted on request.

use std::fs::File;
use std::io;
use std::path::Path;

use chacha20::ChaCha20Rng;
use chacha20::rand_core::{Rng as _, SeedableRng};
use rand::TryRng as _;
use rand::rngs::SysRng;

/// A file that has no name, or loses it at once, and is gone when it is closed.
pub(super) struct Store {
    file: File,
    /// The key of the file, which never leaves the process.
    key: Option<[u8; 32]>,
}

impl Store {
    /// Creates an empty file in a folder.
    pub(super) fn create(folder: &Path, encrypted: bool) -> io::Result<Self> {
        Ok(Self { file: tempfile::tempfile_in(folder)?, key: key(encrypted)? })
    }

    #[cfg(test)]
    pub(super) fn of(file: File) -> Self {
        Self { file, key: None }
    }

    #[cfg(test)]
    pub(super) fn shorten(&self, length: u64) {
        self.file.set_len(length).unwrap();
    }

    /// Returns the same file with another key, for other contents.
    pub(super) fn with_another_key(&self) -> io::Result<Self> {
        Ok(Self { file: self.file.try_clone()?, key: key(self.key.is_some())? })
    }

    /// Reads as many bytes as the buffer holds.
    pub(super) fn read(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        read_at(&self.file, bytes, offset)?;
        self.apply(bytes, offset);
        Ok(())
    }

    /// Writes the bytes, which are encrypted where they are. Each position is written once: the key is not used again.
    pub(super) fn write(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.apply(bytes, offset);
        write_at(&self.file, bytes, offset)
    }

    /// Adds ChaCha20's key stream at `offset`.
    fn apply(&self, bytes: &mut [u8], offset: u64) {
        let Some(key) = self.key else { return };
        let mut cipher = ChaCha20Rng::from_seed(key);
        cipher.set_word_pos(u128::from(offset / 4));
        let mut skip = (offset % 4) as usize;
        let mut keys = [0; 1024];
        let mut left = bytes;
        while !left.is_empty() {
            let length = keys.len().min(left.len() + skip);
            cipher.fill_bytes(&mut keys[..length]);
            let (now, later) = left.split_at_mut(length - skip);
            now.iter_mut().zip(&keys[skip..]).for_each(|(byte, key)| *byte ^= key);
            (left, skip) = (later, 0);
        }
    }
}

fn key(encrypted: bool) -> io::Result<Option<[u8; 32]>> {
    if !encrypted {
        return Ok(None);
    }
    let mut key = [0; 32];
    SysRng.try_fill_bytes(&mut key).map_err(io::Error::other)?;
    Ok(Some(key))
}

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, offset)
}

#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(not(unix))]
fn read_at(mut file: &File, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    use std::io::{Read as _, Seek as _};
    file.seek(io::SeekFrom::Start(offset))?;
    file.read_exact(bytes)
}

#[cfg(not(unix))]
fn write_at(mut file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    use std::io::{Seek as _, Write as _};
    file.seek(io::SeekFrom::Start(offset))?;
    file.write_all(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_back_from_any_position() {
        let folder = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..5000u32).map(|i| (i * i % 251) as u8).collect();
        for encrypted in [false, true] {
            let store = Store::create(folder.path(), encrypted).unwrap();
            for (part, start) in [(0..1001, 0), (1001..1003, 1001), (1003..5000, 1003)] {
                store.write(&mut bytes[part].to_vec(), start).unwrap();
            }
            for (start, end) in [(0, 5000), (3, 3), (1000, 3001), (4980, 5000), (7, 7)] {
                let mut read = vec![0; end - start];
                store.read(&mut read, start as u64).unwrap();
                assert_eq!(read, bytes[start..end]);
                let mut raw = vec![0; end - start];
                read_at(&store.file, &mut raw, start as u64).unwrap();
                // A single byte may be encrypted to itself.
                assert_eq!(raw == read, !encrypted || end - start < 2);
            }
            assert!(store.read(&mut [0; 2], 4999).is_err());
            let again = store.with_another_key().unwrap();
            again.write(&mut bytes[..100].to_vec(), 0).unwrap();
            let mut read = [0; 100];
            again.read(&mut read, 0).unwrap();
            assert_eq!(read, bytes[..100]);
            store.read(&mut read, 0).unwrap();
            assert_eq!(read == bytes[..100], !encrypted);
        }
        assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "the files have no names");
    }
}
