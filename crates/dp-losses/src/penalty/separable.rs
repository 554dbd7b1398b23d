//! Penalties that are sums over single weights: their values and proximal maps.

/// Returns `sign(x) max(|x| - s, 0)`; NaN is kept.
pub(super) fn soft_threshold(x: f64, s: f64) -> f64 {
    if x > s {
        x - s
    } else if x < -s {
        x + s
    } else if x.is_nan() {
        x
    } else {
        0.0
    }
}

/// Returns the proximal map of SCAD, for `1 + t < a`.
pub(super) fn scad(x: f64, t: f64, lambda: f64, a: f64) -> f64 {
    let size = x.abs();
    if size <= (1.0 + t) * lambda {
        soft_threshold(x, t * lambda)
    } else if size <= a * lambda {
        // Between the two others, even if the division rounds.
        let moved = ((a - 1.0) * size - a * t * lambda) / (a - 1.0 - t);
        moved.clamp(0.0, size).copysign(x)
    } else {
        x
    }
}

/// Returns the proximal map of MCP, for `t < gamma`.
pub(super) fn mcp(x: f64, t: f64, lambda: f64, gamma: f64) -> f64 {
    let size = x.abs();
    if size <= t * lambda {
        0.0
    } else if size <= gamma * lambda {
        ((size - t * lambda) / (1.0 - t / gamma)).clamp(0.0, size).copysign(x)
    } else {
        x
    }
}

/// Returns SCAD of `x >= 0`.
pub(super) fn scad_value(x: f64, lambda: f64, a: f64) -> f64 {
    if x <= lambda {
        lambda * x
    } else if x <= a * lambda {
        (2.0 * a * lambda * x - x * x - lambda * lambda) / (2.0 * (a - 1.0))
    } else {
        lambda * lambda * (a + 1.0) / 2.0
    }
}

/// Returns MCP of `x >= 0`.
pub(super) fn mcp_value(x: f64, lambda: f64, gamma: f64) -> f64 {
    if x <= gamma * lambda { lambda * x - x * x / (2.0 * gamma) } else { gamma * lambda * lambda / 2.0 }
}
