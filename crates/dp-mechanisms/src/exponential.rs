//! The exponential mechanism: selection whose privacy loss has a bounded range.
