//! The layers of a network, one file each.

pub(crate) mod activation;
pub(crate) mod convolution;
pub(crate) mod group_norm;
pub(crate) mod linear;
pub(crate) mod per_example;
pub(crate) mod pooling;
pub(crate) mod softmax;
