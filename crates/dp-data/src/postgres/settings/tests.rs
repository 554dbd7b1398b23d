use super::*;

use tokio_postgres::config::Host;

/// Settings of an address among these variables, with this home folder.
fn settings(address: &str, variables: &[(&str, &str)], home: Option<&Path>) -> Result<Settings, DataError> {
    let variables: Vec<(String, String)> =
        variables.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
    let variable = move |name: &str| variables.iter().find(|known| known.0 == name).map(|known| known.1.clone());
    Settings::new(address, &Surroundings { variable: Box::new(variable), home: home.map(Path::to_owned) })
}

fn of(address: &str) -> Settings {
    settings(address, &[], None).unwrap()
}

fn hosts(config: &Config) -> Vec<String> {
    let name = |host: &Host| match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    };
    config.get_hosts().iter().map(name).collect()
}

#[cfg(unix)]
fn private(folder: &Path, name: &str, text: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path
}

#[test]
fn addresses_are_read_as_libpq_reads_them() {
    let settings =
        of("postgresql://ann%40work@a.example:5433,[::1],/tmp%2Fsockets/my%20table?sslmode=require&options=-c%20x%3D1");
    let read = ["user", "host", "port", "dbname", "sslmode", "options"].map(|name| settings.get(name).unwrap());
    assert_eq!(read, ["ann@work", "a.example,::1,", "5433,5432,5432", "tmp/sockets/my table", "require", "-c x=1"]);
    let settings = of("postgres://a.example,[::1]:1/people?application_name=other");
    let (config, _) = settings.config().unwrap();
    assert_eq!(hosts(&config), ["a.example", "::1"]);
    assert_eq!((config.get_ports(), config.get_dbname()), (&[5432, 1][..], Some("people")));
    assert_eq!(config.get_application_name(), Some("dp"));
    // A socket's folder is written with percent signs, or as a parameter.
    for address in ["postgres://%2Fsome%2Ffolder/people", "postgres:///people?host=/some/folder"] {
        let (config, _) = of(address).config().unwrap();
        assert_eq!((hosts(&config), config.get_ssl_mode()), (vec!["/some/folder".to_owned()], SslMode::Disable));
    }
    let settings = of("postgres://ann@");
    assert_eq!(settings.get("dbname"), Some("ann"));
    assert!(settings.get("host").is_some());
}

#[test]
fn wrong_addresses_are_refused_without_their_passwords() {
    for (address, says) in [
        ("postgres://ann:s3cret@h/d", "password"),
        ("postgres://h/d?password=s3cret", "password"),
        ("postgres://h/d?nothing=s3cret", "no setting `nothing`"),
        ("postgres://h/d?s3cret", "no `name=value`"),
        ("postgres://h/%ff", "UTF-8"),
        ("postgres://h/%00", "NUL"),
        ("postgres://h/d?sslcrl=file", "`sslcrl` is not supported"),
        ("postgres://h/d?gssencmode=require", "not supported"),
        ("mysql://h/d", "no address"),
    ] {
        let error = settings(address, &[], None).unwrap_err();
        assert_eq!(error.code(), "table.open");
        assert!(error.public_message().contains(says), "{address}: {error}");
        assert!(says.starts_with("no `name") || !error.to_string().contains("s3cret"), "{error}");
    }
    for (address, says) in [
        ("postgres://h:70000/d", "`port` is `70000`"),
        ("postgres://h/d?sslmode=verify", "`sslmode` is `verify`"),
        ("postgres://h/d?connect_timeout=soon", "`connect_timeout`"),
        ("postgres://h/d?hostaddr=name", "`hostaddr`"),
        ("postgres://h/d?sslmode=verify-full", "no authority is known"),
        ("postgres://h/d?sslmode=require&sslrootcert=system", "verify-full"),
        ("postgres://h/d?sslmode=verify-ca&sslrootcert=/no/such/file", "/no/such/file"),
    ] {
        let error = of(address).config().err().unwrap();
        assert!(error.public_message().contains(says), "{address}: {error}");
    }
    assert!(of("postgres://h/d?gssencmode=prefer").config().is_ok());
}

/// Precedence: the address, then the service, then the environment.
#[test]
fn services_and_the_environment_fill_in_what_the_address_leaves_open() {
    let folder = tempfile::tempdir().unwrap();
    let text = "# a comment\n[other]\nhost = wrong\nuser=wrong\n\n[ward]\nhost = db.ward\n user=nurse\nport=6000\n[more]\nuser=wrong\n";
    std::fs::write(folder.path().join(".pg_service.conf"), text).unwrap();
    let variables = [("PGUSER", "env"), ("PGDATABASE", "env"), ("PGSERVICE", "ward")];
    let read = |address: &str| {
        let settings = settings(address, &variables, Some(folder.path())).unwrap();
        ["host", "user", "port", "dbname"].map(|name| settings.get(name).unwrap_or("-").to_owned())
    };
    assert_eq!(read("postgres://"), ["db.ward", "nurse", "6000", "env"]);
    assert_eq!(read("postgres://bob@mine/d"), ["mine", "bob", "6000", "d"]);
    let named = |service: &str, address: &str| settings(address, &[("PGSERVICE", service)], Some(folder.path()));
    let error = named("nowhere", "postgres://").unwrap_err();
    assert!(error.public_message().contains("`nowhere` is not defined"));
    assert_eq!(named("nowhere", "postgres://?service=other").unwrap().get("host"), Some("wrong"));
    // Lines may hold passwords: a message has their numbers alone.
    std::fs::write(folder.path().join("odd.conf"), "[ward]\ns3cret").unwrap();
    let odd = folder.path().join("odd.conf").display().to_string();
    let error = settings("postgres://", &[("PGSERVICE", "ward"), ("PGSERVICEFILE", &odd)], None).unwrap_err();
    assert!(error.public_message().contains("line 2") && !error.to_string().contains("s3cret"), "{error}");
}

#[cfg(unix)]
#[test]
fn passwords_come_from_the_first_line_that_fits() {
    let folder = tempfile::tempdir().unwrap();
    let file = private(
        folder.path(),
        ".pgpass",
        "# host:port:database:user:password\nodd line\nh:5432:d:ann:first\nh:*:*:ann:a\\:b\\\\c:d\nlocalhost:5432:*:ann:local\n*:*:*:bob:bobs",
    );
    let read = |address: &str, variables: &[(&str, &str)]| {
        let settings = settings(address, variables, Some(folder.path()))?;
        Ok::<_, DataError>(settings.get("password").map(str::to_owned))
    };
    let password = |address: &str| read(address, &[]).unwrap();
    assert_eq!(password("postgres://ann@h/d").as_deref(), Some("first"));
    assert_eq!(password("postgres://ann@h:5433/d").as_deref(), Some("a:b\\c:d"));
    assert_eq!(password("postgres://bob@anywhere/x").as_deref(), Some("bobs"));
    assert_eq!(password("postgres://eve@h/d"), None);
    assert_eq!(password("postgres://ann@/d").as_deref(), Some("local"));
    assert_eq!(read("postgres://ann@h/d", &[("PGPASSWORD", "env")]).unwrap().as_deref(), Some("env"));
    // One of two servers would get the other's password.
    assert!(read("postgres://ann@h:5433,other/d", &[]).unwrap_err().public_message().contains("different passwords"));
    assert_eq!(read("postgres://bob@h,other/d", &[]).unwrap().as_deref(), Some("bobs"));
    // A file that others may read is no secret.
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let open = settings("postgres://ann@h/d", &[], Some(folder.path())).unwrap();
    assert_eq!((open.get("password"), open.passwords_ignored.as_deref()), (None, Some(&*file)));
    let named = private(folder.path(), "elsewhere", "*:*:*:*:other");
    let named = settings("postgres://ann@h/d", &[("PGPASSFILE", &named.display().to_string())], None).unwrap();
    assert_eq!(named.get("password"), Some("other"));
}
