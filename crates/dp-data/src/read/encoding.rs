//! Text in encodings other than UTF-8.

use std::io::{self, ErrorKind, Read};

use encoding_rs::{Decoder, DecoderResult, Encoding};

use crate::error::{DataError, DataErrorKind};

/// An encoding of text.
///
/// # Examples
/// ```
/// use dp_data::read::{CsvOptions, CsvReader, Input, TextEncoding};
///
/// let options = CsvOptions { encoding: TextEncoding::of_label("latin1"), ..CsvOptions::default() };
/// let input = Input::from_bytes("a.csv", b"name\nJos\xe9\n".to_vec());
/// let mut reader = CsvReader::new(input, options)?;
/// assert_eq!(reader.next_record()?.unwrap().cell(0), "José".as_bytes());
/// assert!(TextEncoding::of_label("latin0").is_none());
/// # Ok::<(), dp_data::DataError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextEncoding(&'static Encoding);

impl TextEncoding {
    /// Returns the encoding with this label in the WHATWG Encoding Standard: `latin1` is `windows-1252`.
    pub fn of_label(label: &str) -> Option<Self> {
        Encoding::for_label(label.as_bytes()).map(Self)
    }

    /// Returns its usual name.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Returns the text of a source as UTF-8.
    pub(super) fn decoded(self, source: Box<dyn Read + Send>) -> Box<dyn Read + Send> {
        if self.0 == encoding_rs::UTF_8 {
            return source;
        }
        let decoder = self.0.new_decoder_with_bom_removal();
        let (bytes, text) = (vec![0; PIECE], Vec::with_capacity(TEXT));
        Box::new(Decoded { source, decoder, bytes, pending: 0..0, text, read: 0, at_end: false })
    }
}

/// Number of bytes that are read at a time.
const PIECE: usize = 64 * 1024;
/// Number of bytes that are decoded at a time.
const TEXT: usize = 2 * PIECE;

/// A source whose text is decoded.
struct Decoded {
    source: Box<dyn Read + Send>,
    decoder: Decoder,
    /// Bytes of the source, of which `pending` are not decoded.
    bytes: Vec<u8>,
    pending: core::ops::Range<usize>,
    /// Decoded text, of which the first `read` bytes were returned.
    text: Vec<u8>,
    read: usize,
    /// True once the decoder has seen the end of the source.
    at_end: bool,
}

impl Decoded {
    /// Decodes the next bytes; there is no text at the end.
    fn fill(&mut self) -> io::Result<()> {
        (self.read, self.text) = (0, core::mem::take(&mut self.text));
        self.text.clear();
        while self.text.is_empty() && !self.at_end {
            let mut is_last = false;
            if self.pending.is_empty() {
                let count = self.source.read(&mut self.bytes)?;
                self.pending = 0..count;
                is_last = count == 0;
            }
            self.text.resize(TEXT, 0);
            let (result, used, written) = self.decoder.decode_to_utf8_without_replacement(
                &self.bytes[self.pending.clone()],
                &mut self.text,
                is_last,
            );
            self.text.truncate(written);
            self.pending.start += used;
            match result {
                DecoderResult::InputEmpty => self.at_end = is_last,
                DecoderResult::OutputFull => {}
                DecoderResult::Malformed(..) => {
                    let error = Undecodable(self.decoder.encoding().name());
                    return Err(io::Error::new(ErrorKind::InvalidData, error));
                }
            }
        }
        Ok(())
    }
}

impl Read for Decoded {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.read == self.text.len() {
            self.fill()?;
        }
        let count = (self.text.len() - self.read).min(buffer.len());
        buffer[..count].copy_from_slice(&self.text[self.read..self.read + count]);
        self.read += count;
        Ok(count)
    }
}

/// The error of bytes that are no text in this encoding.
#[derive(Debug, thiserror::Error)]
#[error("the text is not {0}")]
struct Undecodable(&'static str);

/// Returns the error of bytes that are no text, if this is one.
pub(super) fn undecodable(error: &io::Error) -> Option<DataError> {
    let Undecodable(name) = error.get_ref()?.downcast_ref()?;
    let error = DataError::new(DataErrorKind::CsvEncoding, format!("the text is not {name}"));
    Some(error.expected("text in the encoding that --encoding or the schema names").help("name another encoding"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(label: &str, bytes: &[u8], step: usize) -> io::Result<String> {
        let source: Box<dyn Read + Send> = Box::new(io::Cursor::new(bytes.to_vec()));
        let mut source = TextEncoding::of_label(label).unwrap().decoded(source);
        let (mut text, mut buffer) = (Vec::new(), vec![0; step]);
        loop {
            match source.read(&mut buffer)? {
                0 => return Ok(String::from_utf8(text).unwrap()),
                count => text.extend_from_slice(&buffer[..count]),
            }
        }
    }

    #[test]
    fn text_is_decoded_in_pieces_of_any_size() {
        let long = "ä€ß".repeat(30_000);
        let (bytes, ..) = encoding_rs::WINDOWS_1252.encode(&long);
        let wide: Vec<u8> = [0xfe_u8, 0xff].into_iter().chain(long.encode_utf16().flat_map(u16::to_be_bytes)).collect();
        for step in [1, 7, 100_000] {
            assert_eq!(decoded("latin1", &bytes, step).unwrap(), long);
            assert_eq!(decoded("utf-16be", &wide, step).unwrap(), long);
            assert_eq!(decoded("shift_jis", b"\x83e\x83X\x83g", step).unwrap(), "テスト");
            assert_eq!(decoded("latin1", b"", step).unwrap(), "");
            let error = decoded("utf-16be", &wide[..wide.len() - 1], step).unwrap_err();
            assert_eq!(undecodable(&error).map(|error| error.code()), Some("csv.encoding"));
        }
        assert!(undecodable(&io::Error::other("disk")).is_none());
    }
}
