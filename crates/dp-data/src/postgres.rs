//! Connections to PostgreSQL.

mod failure;
mod server;
mod settings;
mod tls;

pub(crate) use server::Server;
pub(crate) use settings::SCHEMES;
