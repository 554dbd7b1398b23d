//! Connections to PostgreSQL.

mod failure;
mod server;
mod settings;
mod tls;

pub(crate) use server::{Cancel, Server};
pub(crate) use settings::SCHEMES;
