//! Automatic clipping: normalised contributions.
