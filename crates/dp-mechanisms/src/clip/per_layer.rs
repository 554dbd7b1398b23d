//! Clipping layer by layer.
