//! Reading ahead on another thread, so that decompression and parsing use two cores.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::memory;

/// Number of bytes per chunk.
const CHUNK: usize = 256 * 1024;
/// Maximum number of waiting chunks.
const AHEAD: usize = 4;

/// A reader whose source is read on another thread. Dropping it ends that thread at its next chunk.
struct Background {
    chunks: Receiver<io::Result<Vec<u8>>>,
    current: Vec<u8>,
    consumed: usize,
    finished: bool,
}

/// Reads `source` on another thread, or on this one if none can be started.
pub(super) fn ahead(source: impl Read + Send + 'static) -> Box<dyn Read + Send> {
    // A value moved to a thread that does not start is lost.
    let shared = Arc::new(Mutex::new(Some(source)));
    let take = |shared: &Mutex<Option<_>>| shared.lock().unwrap_or_else(PoisonError::into_inner).take();
    let moved = Arc::clone(&shared);
    match Background::start(move || take(&moved)) {
        Ok(background) => Box::new(background),
        Err(_) => match take(&shared) {
            Some(source) => Box::new(source),
            None => Box::new(io::empty()),
        },
    }
}

impl Background {
    fn start<R: Read>(source: impl FnOnce() -> Option<R> + Send + 'static) -> io::Result<Self> {
        let (sender, chunks) = sync_channel(AHEAD);
        // The thread is not joined: it ends at the end of the source or when the receiver is dropped.
        thread::Builder::new().spawn(move || {
            let Some(mut source) = source() else { return };
            loop {
                let mut chunk = Vec::new();
                let outcome = memory::reserve(&mut chunk, CHUNK, "the decompressed content")
                    .map_err(memory::to_io)
                    .and_then(|()| source.by_ref().take(CHUNK as u64).read_to_end(&mut chunk));
                // Bytes read before an error are sent first, so that the error has its position.
                let last = outcome.is_err() || chunk.len() < CHUNK;
                if !chunk.is_empty() && sender.send(Ok(chunk)).is_err() {
                    return;
                }
                if let Err(error) = outcome {
                    let _ = sender.send(Err(error));
                    return;
                }
                if last {
                    // An empty chunk marks the end, which a thread that died would not send.
                    let _ = sender.send(Ok(Vec::new()));
                    return;
                }
            }
        })?;
        Ok(Self { chunks, current: Vec::new(), consumed: 0, finished: false })
    }
}

impl Read for Background {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if out.is_empty() {
            return Ok(0);
        }
        while self.consumed == self.current.len() {
            if self.finished {
                return Ok(0);
            }
            match self.chunks.recv() {
                Ok(Ok(chunk)) => {
                    self.finished = chunk.is_empty();
                    self.current = chunk;
                    self.consumed = 0;
                }
                Ok(Err(error)) => {
                    self.finished = true;
                    return Err(error);
                }
                Err(_) => {
                    self.finished = true;
                    return Err(io::Error::other("the decompressing thread stopped"));
                }
            }
        }
        let available = &self.current[self.consumed..];
        let count = available.len().min(out.len());
        out[..count].copy_from_slice(&available[..count]);
        self.consumed += count;
        Ok(count)
    }
}
