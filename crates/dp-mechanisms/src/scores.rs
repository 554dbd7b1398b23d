//! Scores of candidates: what the selection mechanisms take.
