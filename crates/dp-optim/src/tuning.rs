//! The choice of hyper-parameters, privately, on public records, or by random stopping.
