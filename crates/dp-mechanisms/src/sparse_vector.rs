//! The sparse vector technique: which of many adaptively chosen queries exceed a threshold.
