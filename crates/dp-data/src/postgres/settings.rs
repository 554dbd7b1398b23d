//! The settings of a connection, by libpq's rules: an address, a service file, the environment, a password file.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{ChannelBinding, LoadBalanceHosts, SslMode, SslNegotiation, TargetSessionAttrs};

use crate::error::{DataError, DataErrorKind};

use super::tls::{self, Tls};

/// The schemes of an address.
pub(crate) const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// Time for a connection, unless `connect_timeout` says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// TCP keepalive: idle time before the first probe, time between probes, and number of unanswered probes after which the
/// connection counts as lost.
const KEEPALIVES: (Duration, Duration, u32) = (Duration::from_secs(60), Duration::from_secs(10), 6);

/// The treatment of a setting.
#[derive(Clone, Copy, PartialEq)]
enum Use {
    Taken,
    /// It changes nothing here.
    Ignored,
    /// It asks for a protection that this client does not have.
    Refused,
}

/// The settings that libpq knows: name, environment variable, treatment.
const SETTINGS: &[(&str, &str, Use)] = &[
    ("service", "PGSERVICE", Use::Taken),
    ("host", "PGHOST", Use::Taken),
    ("hostaddr", "PGHOSTADDR", Use::Taken),
    ("port", "PGPORT", Use::Taken),
    ("dbname", "PGDATABASE", Use::Taken),
    ("user", "PGUSER", Use::Taken),
    ("password", "PGPASSWORD", Use::Taken),
    ("passfile", "PGPASSFILE", Use::Taken),
    ("options", "PGOPTIONS", Use::Taken),
    ("connect_timeout", "PGCONNECT_TIMEOUT", Use::Taken),
    ("target_session_attrs", "PGTARGETSESSIONATTRS", Use::Taken),
    ("load_balance_hosts", "PGLOADBALANCEHOSTS", Use::Taken),
    ("channel_binding", "PGCHANNELBINDING", Use::Taken),
    ("sslmode", "PGSSLMODE", Use::Taken),
    ("sslrootcert", "PGSSLROOTCERT", Use::Taken),
    ("sslcert", "PGSSLCERT", Use::Taken),
    ("sslkey", "PGSSLKEY", Use::Taken),
    ("sslnegotiation", "PGSSLNEGOTIATION", Use::Taken),
    ("keepalives", "", Use::Taken),
    ("keepalives_idle", "", Use::Taken),
    ("keepalives_interval", "", Use::Taken),
    ("keepalives_count", "", Use::Taken),
    ("tcp_user_timeout", "", Use::Taken),
    ("application_name", "PGAPPNAME", Use::Ignored),
    ("fallback_application_name", "", Use::Ignored),
    ("client_encoding", "PGCLIENTENCODING", Use::Ignored),
    ("sslcompression", "PGSSLCOMPRESSION", Use::Ignored),
    ("sslsni", "PGSSLSNI", Use::Ignored),
    ("krbsrvname", "PGKRBSRVNAME", Use::Ignored),
    ("gsslib", "PGGSSLIB", Use::Ignored),
    ("gssencmode", "PGGSSENCMODE", Use::Refused),
    ("requirepeer", "PGREQUIREPEER", Use::Refused),
    ("require_auth", "PGREQUIREAUTH", Use::Refused),
    ("sslcrl", "PGSSLCRL", Use::Refused),
    ("sslcrldir", "PGSSLCRLDIR", Use::Refused),
    ("ssl_min_protocol_version", "PGSSLMINPROTOCOLVERSION", Use::Refused),
];

/// Values of refused settings that ask for nothing.
const ASKS_FOR_NOTHING: &[(&str, &str)] =
    &[("gssencmode", "prefer"), ("gssencmode", "disable"), ("ssl_min_protocol_version", "TLSv1.2")];

/// Looks up a variable of the environment.
type Variable = dyn Fn(&str) -> Option<String>;

/// The environment and the home folder.
pub(crate) struct Surroundings {
    pub(crate) variable: Box<Variable>,
    pub(crate) home: Option<PathBuf>,
}

impl Surroundings {
    /// Returns those of this process.
    pub(crate) fn of_process() -> Self {
        Self { variable: Box::new(|name| std::env::var(name).ok()), home: std::env::home_dir() }
    }

    fn variable(&self, name: &str) -> Option<String> {
        if name.is_empty() { None } else { (self.variable)(name).filter(|value| !value.is_empty()) }
    }

    /// Returns the path of a file of the user: in libpq's folder on Windows, elsewhere under the home folder.
    fn of_user(&self, elsewhere: &str, on_windows: &str) -> Option<PathBuf> {
        if cfg!(windows) {
            self.variable("APPDATA").map(|folder| Path::new(&folder).join("postgresql").join(on_windows))
        } else {
            self.home.as_ref().map(|home| home.join(elsewhere))
        }
    }
}

/// The settings of a connection.
#[derive(Debug, Default)]
pub(crate) struct Settings {
    values: BTreeMap<&'static str, String>,
    /// The password file, if it was not read since others may read it too.
    pub(crate) passwords_ignored: Option<PathBuf>,
}

fn wrong(message: impl Into<String>) -> DataError {
    DataError::new(DataErrorKind::TableOpen, message)
}

impl Settings {
    /// Returns the settings of an address. Those that it omits are taken from the service, then from the environment; the
    /// password from the password file, if nothing else gives it.
    ///
    /// # Errors
    /// `table.open`: an address with a password, an unknown setting, a value that is wrong, a service that is not defined.
    pub(crate) fn new(address: &str, around: &Surroundings) -> Result<Self, DataError> {
        let mut settings = Self::default();
        settings.read_address(address)?;
        let service = settings.get("service").map(str::to_owned).or_else(|| around.variable("PGSERVICE"));
        if let Some(service) = service {
            settings.read_service(&service, around)?;
        }
        for &(name, variable, _) in SETTINGS {
            if let Some(value) = around.variable(variable) {
                settings.set(name, value, variable)?;
            }
        }
        settings.add_defaults(around)?;
        settings.find_password(around)?;
        Ok(settings)
    }

    /// Returns a setting.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Sets what is not set yet.
    fn set(&mut self, name: &str, value: String, from: &str) -> Result<(), DataError> {
        let Some(&(name, _, used)) = SETTINGS.iter().find(|known| known.0 == name) else {
            let known: Vec<_> = SETTINGS.iter().filter(|known| known.2 == Use::Taken).map(|known| known.0).collect();
            return Err(wrong(format!("{from}: there is no setting `{name}`")).expected(known.join(", ")));
        };
        if value.contains('\0') {
            return Err(wrong(format!("{from}: `{name}` holds a NUL byte")));
        }
        let asks_for_nothing = ASKS_FOR_NOTHING.contains(&(name, &value));
        match used {
            Use::Refused if !asks_for_nothing => {
                Err(wrong(format!("{from}: the setting `{name}` is not supported")).help("remove it"))
            }
            Use::Taken => {
                self.values.entry(name).or_insert(value);
                Ok(())
            }
            Use::Ignored | Use::Refused => Ok(()),
        }
    }

    /// Reads `postgres://[user@][host[:port]][,…][/dbname][?name=value&…]`.
    fn read_address(&mut self, address: &str) -> Result<(), DataError> {
        const FROM: &str = "the address";
        let rest = SCHEMES.iter().find_map(|scheme| address.strip_prefix(scheme));
        let rest = rest.ok_or_else(|| wrong("this is no address of a server").expected("postgres://HOST/DATABASE"))?;
        let (rest, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        if user.contains(':') {
            return Err(password_in_address());
        }
        let mut set = |name: &str, value: &str| match decoded(value) {
            Some(_) if name == "password" => Err(password_in_address()),
            Some(value) if value.is_empty() => Ok(()),
            Some(value) => self.set(name, value, FROM),
            None => Err(wrong(format!("{FROM}: the value of `{name}` is not UTF-8 behind its percent signs"))),
        };
        set("user", user)?;
        set("dbname", database)?;
        let hosts: Vec<(&str, &str)> = hosts.split(',').map(host_and_port).collect();
        if hosts.iter().any(|(host, _)| !host.is_empty()) {
            set("host", &joined(hosts.iter().map(|host| host.0)))?;
        }
        if hosts.iter().any(|(_, port)| !port.is_empty()) {
            let ports = hosts.iter().map(|host| if host.1.is_empty() { "5432" } else { host.1 });
            set("port", &joined(ports))?;
        }
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) =
                parameter.split_once('=').ok_or_else(|| wrong(format!("{FROM}: `{parameter}` is no `name=value`")))?;
            set(name, value)?;
        }
        Ok(())
    }

    /// Reads the section of a service from the user's file, else from the system's.
    fn read_service(&mut self, service: &str, around: &Surroundings) -> Result<(), DataError> {
        let of_user = around.variable("PGSERVICEFILE").map(PathBuf::from);
        let of_user = of_user.or_else(|| around.of_user(".pg_service.conf", ".pg_service.conf"));
        let of_system: Vec<PathBuf> = match around.variable("PGSYSCONFDIR") {
            Some(folder) => vec![folder.into()],
            None => vec!["/etc/postgresql-common".into(), "/etc".into()],
        };
        for file in of_user.into_iter().chain(of_system.into_iter().map(|folder| folder.join("pg_service.conf"))) {
            let Ok(text) = std::fs::read_to_string(&file) else { continue };
            if self.read_section(&text, service, &file.display().to_string())? {
                return Ok(());
            }
        }
        Err(wrong(format!("the service `{service}` is not defined"))
            .expected("a section of that name in ~/.pg_service.conf, or in the file that PGSERVICEFILE names"))
    }

    fn read_section(&mut self, text: &str, service: &str, file: &str) -> Result<bool, DataError> {
        let mut is_here = false;
        let mut is_found = false;
        for (number, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                is_here = name == service;
                is_found |= is_here;
                continue;
            }
            if !is_here {
                continue;
            }
            // The line may hold a password: only its number is shown.
            let from = format!("{file}, line {}", number + 1);
            match line.split_once('=') {
                Some((name, value)) if name.trim() != "service" => {
                    self.set(name.trim(), value.trim().to_owned(), &from)?
                }
                _ => return Err(wrong(format!("{from}: a setting as `name=value` was expected"))),
            }
        }
        Ok(is_found)
    }

    fn add_defaults(&mut self, around: &Surroundings) -> Result<(), DataError> {
        if self.get("host").is_none() {
            let host = match self.get("hostaddr") {
                Some(addresses) => addresses.to_owned(),
                None if cfg!(unix) => default_sockets().to_owned(),
                None => "localhost".to_owned(),
            };
            self.values.insert("host", host);
        }
        if self.get("user").is_none() {
            let user = whoami::username().map_err(|_| wrong("the name of this user is not known to the system"));
            self.values.insert("user", user.map_err(|error| error.help("name one: postgres://USER@HOST/DATABASE"))?);
        }
        if self.get("dbname").is_none() {
            let user = self.get("user").unwrap_or_default().to_owned();
            self.values.insert("dbname", user);
        }
        let files = [("sslrootcert", "root.crt"), ("sslcert", "postgresql.crt"), ("sslkey", "postgresql.key")];
        for (name, file) in files.into_iter().filter(|(name, _)| self.get(name).is_none()).collect::<Vec<_>>() {
            let path = around.of_user(&format!(".postgresql/{file}"), file).filter(|path| path.is_file());
            if let Some(path) = path {
                self.values.insert(name, path.display().to_string());
            }
        }
        Ok(())
    }

    /// Takes the password from the password file, if it is not set.
    fn find_password(&mut self, around: &Surroundings) -> Result<(), DataError> {
        if self.get("password").is_some() {
            return Ok(());
        }
        let file = self.get("passfile").map(PathBuf::from);
        let Some(file) = file.or_else(|| around.of_user(".pgpass", "pgpass.conf")) else { return Ok(()) };
        if !file.is_file() {
            return Ok(());
        }
        if others_may_read(&file) {
            self.passwords_ignored = Some(file);
            return Ok(());
        }
        let Ok(text) = std::fs::read_to_string(&file) else { return Ok(()) };
        let (user, database) = (self.get("user").unwrap_or_default(), self.get("dbname").unwrap_or_default());
        let ports: Vec<&str> = self.get("port").unwrap_or("5432").split(',').collect();
        let hosts = self.get("host").unwrap_or_default().split(',').enumerate();
        let passwords = hosts.map(|(i, host)| {
            let host = if host == default_sockets() { "localhost" } else { host };
            let port = ports.get(i).or_else(|| ports.first()).copied().unwrap_or("5432");
            password_of(&text, [host, port, database, user])
        });
        let mut passwords: Vec<Option<String>> = passwords.collect();
        passwords.dedup();
        match <[Option<String>; 1]>::try_from(passwords) {
            Ok([None]) => Ok(()),
            Ok([Some(password)]) => {
                self.values.insert("password", password);
                Ok(())
            }
            Err(_) => {
                Err(wrong(format!("the hosts have different passwords in {}", file.display())).help("name one host"))
            }
        }
    }

    /// Returns the time for a connection.
    ///
    /// # Errors
    /// `table.open` unless it is a number of seconds.
    pub(crate) fn connect_timeout(&self) -> Result<Duration, DataError> {
        Ok(self.seconds("connect_timeout")?.unwrap_or(CONNECT_TIMEOUT))
    }

    fn whole<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, DataError> {
        let read = |value: &str| {
            value.trim().parse().map_err(|_| wrong(format!("`{name}` is `{value}`")).expected("a whole number"))
        };
        self.get(name).map(read).transpose()
    }

    /// Returns a number of seconds; `None` if it is not set, or 0, which means no limit in libpq.
    fn seconds(&self, name: &str) -> Result<Option<Duration>, DataError> {
        Ok(self.whole::<u32>(name)?.filter(|&seconds| seconds > 0).map(|seconds| Duration::from_secs(seconds.into())))
    }

    /// Returns a setting that is one of some words.
    pub(crate) fn word<T: Copy>(&self, name: &str, words: &[(&str, T)], default: T) -> Result<T, DataError> {
        let Some(value) = self.get(name) else { return Ok(default) };
        words.iter().find(|word| word.0 == value).map(|word| word.1).ok_or_else(|| {
            let known: Vec<_> = words.iter().map(|word| word.0).collect();
            wrong(format!("`{name}` is `{value}`")).expected(known.join(", "))
        })
    }

    /// Returns the client's configuration, and how it encrypts.
    ///
    /// # Errors
    /// `table.open`: a value that is wrong, a certificate that cannot be read.
    pub(crate) fn config(&self) -> Result<(Config, Tls), DataError> {
        let mut config = Config::new();
        let list = |name: &str| self.get(name).map(|value| value.split(',').map(str::trim)).into_iter().flatten();
        for host in list("host") {
            config.host(if host.is_empty() { default_sockets() } else { host });
        }
        for address in list("hostaddr") {
            let read = address.parse().map_err(|_| wrong(format!("`hostaddr` is `{address}`")));
            config.hostaddr(read.map_err(|error| error.expected("a numeric address"))?);
        }
        for port in list("port") {
            config.port(port.parse().map_err(|_| wrong(format!("`port` is `{port}`")).expected("1 to 65535"))?);
        }
        config.user(self.get("user").unwrap_or_default()).dbname(self.get("dbname").unwrap_or_default());
        if let Some(password) = self.get("password") {
            config.password(password);
        }
        if let Some(options) = self.get("options") {
            config.options(options);
        }
        config.application_name("dp");
        config.connect_timeout(self.connect_timeout()?);
        let (idle, interval, count) = KEEPALIVES;
        config.keepalives(self.whole("keepalives")?.unwrap_or(1u8) != 0);
        config.keepalives_idle(self.seconds("keepalives_idle")?.unwrap_or(idle));
        config.keepalives_interval(self.seconds("keepalives_interval")?.unwrap_or(interval));
        config.keepalives_retries(self.whole("keepalives_count")?.unwrap_or(count));
        if let Some(time) = self.whole("tcp_user_timeout")? {
            config.tcp_user_timeout(Duration::from_millis(time));
        }
        let sessions = [
            ("any", TargetSessionAttrs::Any),
            ("read-write", TargetSessionAttrs::ReadWrite),
            ("read-only", TargetSessionAttrs::ReadOnly),
        ];
        config.target_session_attrs(self.word("target_session_attrs", &sessions, TargetSessionAttrs::Any)?);
        let balance = [("disable", LoadBalanceHosts::Disable), ("random", LoadBalanceHosts::Random)];
        config.load_balance_hosts(self.word("load_balance_hosts", &balance, LoadBalanceHosts::Disable)?);
        let binding = [
            ("disable", ChannelBinding::Disable),
            ("prefer", ChannelBinding::Prefer),
            ("require", ChannelBinding::Require),
        ];
        config.channel_binding(self.word("channel_binding", &binding, ChannelBinding::Prefer)?);
        let negotiation = [("postgres", SslNegotiation::Postgres), ("direct", SslNegotiation::Direct)];
        config.ssl_negotiation(self.word("sslnegotiation", &negotiation, SslNegotiation::Postgres)?);
        let (mode, tls) = tls::of(self)?;
        let has_sockets_only = self.get("host").is_some_and(|hosts| hosts.split(',').all(|host| host.starts_with('/')));
        config.ssl_mode(if has_sockets_only { SslMode::Disable } else { mode });
        Ok((config, tls))
    }
}

fn password_in_address() -> DataError {
    wrong("an address may not hold a password: other users see the arguments of a running program")
        .help("put it into ~/.pgpass, a service file or PGPASSWORD")
}

/// Splits a host from its port; an IPv6 address is in brackets.
fn host_and_port(text: &str) -> (&str, &str) {
    let after_brackets = text.strip_prefix('[').and_then(|text| text.split_once(']'));
    match after_brackets {
        Some((host, rest)) => (host, rest.strip_prefix(':').unwrap_or(rest)),
        None => text.split_once(':').unwrap_or((text, "")),
    }
}

fn joined<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    parts.collect::<Vec<_>>().join(",")
}

fn decoded(text: &str) -> Option<String> {
    percent_encoding::percent_decode_str(text).decode_utf8().ok().map(Into::into)
}

/// Returns the folder of the server's sockets, as a distribution or PostgreSQL itself places it.
fn default_sockets() -> &'static str {
    let of_distribution = "/var/run/postgresql";
    if Path::new(of_distribution).is_dir() { of_distribution } else { "/tmp" }
}

#[cfg(unix)]
fn others_may_read(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn others_may_read(_: &Path) -> bool {
    false
}

/// Returns the password of the first line `host:port:database:user:password` that fits; `*` fits anything, and a backslash
/// takes the character after it literally.
fn password_of(text: &str, wanted: [&str; 4]) -> Option<String> {
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let mut fields = vec![String::new()];
        let mut characters = line.chars();
        while let Some(character) = characters.next() {
            let is_last = fields.len() == 5;
            let field = fields.last_mut()?;
            match character {
                // Colons of the password need no backslash.
                ':' if !is_last => fields.push(String::new()),
                '\\' => field.extend(characters.next()),
                character => field.push(character),
            }
        }
        let password = fields.pop().filter(|_| fields.len() == 4)?;
        let fits = fields.iter().zip(wanted).all(|(field, wanted)| field == "*" || field == wanted);
        fits.then_some(password)
    })
}

#[cfg(test)]
mod tests;
