//! A PostgreSQL server for the tests: started in a temporary folder on first use, and gone with this process.
//!
//! `DP_TEST_PG` names another, by the address of a superuser; what needs a server of its own is then skipped. A machine without
//! either says so on standard error, and `DP_REQUIRE_PG=1` makes that a failure.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use postgres::{Client, NoTls};

use super::{Workplace, say_skipped};

/// Everything that a server can write about what it is asked to do.
const LOGGING: &str = "logging_collector = off\nlog_statement = all\nlog_min_duration_statement = 0\nlog_parameter_max_length = -1\n\
    log_connections = on\nlog_error_verbosity = verbose\ndebug_print_parse = on\nlog_min_messages = debug1\n";

/// A server that was started here.
pub struct Server {
    folder: PathBuf,
    port: u16,
    /// Stops the server when this process ends, in whatever way: the pipe closes.
    _keeper: (Child, ChildStdin),
}

/// Prints why a test does not run; fails instead if it must.
fn skip<T>(why: &str) -> Option<T> {
    assert!(std::env::var_os("DP_REQUIRE_PG").is_none_or(|value| value != "1"), "DP_REQUIRE_PG=1, but {why}");
    say_skipped("postgres", why);
    None
}

/// Returns the folder of the server's programs.
fn programs() -> Option<PathBuf> {
    let of_path =
        std::env::var_os("PATH").into_iter().flat_map(|path| std::env::split_paths(&path).collect::<Vec<_>>());
    let of_debian =
        fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten().map(|entry| entry.path().join("bin"));
    let mut of_debian: Vec<_> = of_debian.collect();
    of_debian
        .sort_by_key(|folder| folder.parent().and_then(|parent| parent.file_name()?.to_str()?.parse::<u32>().ok()));
    let mut all = of_path.chain(of_debian.into_iter().rev());
    all.find(|folder| folder.join("initdb").is_file() && folder.join("postgres").is_file())
}

/// The user that runs the server, if this one may not: PostgreSQL refuses root.
fn other_user() -> Option<u32> {
    let id = |arguments: &[&str]| {
        let output = Command::new("id").args(arguments).stderr(Stdio::null()).output().ok()?;
        String::from_utf8(output.stdout).ok()?.trim().parse::<u32>().ok()
    };
    (id(&["-u"]) == Some(0)).then(|| id(&["-u", "postgres"]).or_else(|| id(&["-u", "nobody"])).unwrap_or(65534))
}

impl Server {
    /// Starts a server of its own; `None`, with a reason on standard error, where there is none.
    pub fn start() -> Option<Self> {
        let Some(programs) = programs() else { return skip("there are no `initdb` and `postgres`") };
        let folder = tempfile::tempdir().expect("a temporary folder").keep();
        let user = other_user();
        if let Some(user) = user {
            std::os::unix::fs::chown(&folder, Some(user), None).expect("the folder of another user");
        }
        let command = |program: &Path| {
            let mut command = Command::new(program);
            if let Some(user) = user {
                std::os::unix::process::CommandExt::uid(&mut command, user);
            }
            command.current_dir(&folder).env_clear();
            command
        };
        let data = folder.join("data");
        let mut initdb = command(&programs.join("initdb"));
        initdb
            .args(["--username=admin", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync", "-D"])
            .arg(&data);
        let made = initdb.output().expect("initdb runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let port =
            std::net::TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
        let settings = format!(
            "port = {port}\nlisten_addresses = '127.0.0.1'\nunix_socket_directories = '{}'\nfsync = off\nmax_connections = 50\n{LOGGING}",
            folder.display()
        );
        let configuration = data.join("postgresql.conf");
        let given = fs::read_to_string(&configuration).expect("the configuration") + &settings;
        fs::write(&configuration, given).expect("the configuration");
        let mut this = Self::keep(command(Path::new("/bin/sh")), &programs, folder, port);
        this.wait();
        Some(this)
    }

    /// Starts the server under a shell that stops it once its input ends.
    fn keep(mut shell: Command, programs: &Path, folder: PathBuf, port: u16) -> Self {
        let script = "\"$1/postgres\" -D data >>log 2>&1 & server=$!; echo $server; read -r _; \
                      kill -QUIT $server; wait $server; cd /; rm -rf \"$2\"";
        shell.args(["-c", script, "sh"]).arg(programs).arg(&folder);
        let mut keeper =
            shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("a shell");
        let input = keeper.stdin.take().expect("a pipe");
        let mut line = String::new();
        BufReader::new(keeper.stdout.take().expect("a pipe")).read_line(&mut line).expect("the process");
        Self { folder, port, _keeper: (keeper, input) }
    }

    fn wait(&mut self) {
        for _ in 0..300 {
            if Client::connect(&self.superuser("postgres"), NoTls).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        panic!("the server does not start: {}", self.log());
    }

    /// The address of the superuser, as the client of the tests takes it.
    pub fn superuser(&self, database: &str) -> String {
        format!("postgres://admin@127.0.0.1:{}/{database}", self.port)
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of its sockets, and of `data` and `log`.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Everything that it wrote so far.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.folder.join("log")).unwrap_or_default()).into_owned()
    }
}

/// A database of its own for a test.
pub struct Database {
    /// A connection of its superuser.
    pub client: Client,
    /// Its address.
    pub address: String,
    /// The server, if it was started here.
    pub server: Option<&'static Server>,
}

impl Database {
    /// Creates a database; `None` if this machine has no server.
    pub fn create() -> Option<Self> {
        static SERVER: OnceLock<Option<Server>> = OnceLock::new();
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("dp_test_{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::SeqCst));
        let (address, server) = match std::env::var("DP_TEST_PG") {
            Ok(address) => (address, None),
            Err(_) => {
                let server = SERVER.get_or_init(Server::start).as_ref();
                (server.or_else(|| skip("no server was started"))?.superuser("postgres"), server)
            }
        };
        let mut client = Client::connect(&address, NoTls).expect("a connection to the server");
        client.batch_execute(&format!("CREATE DATABASE {name}")).expect("a database");
        // The database is the last part of the path.
        let (server_address, parameters) = address.split_once('?').unwrap_or((&address, ""));
        let address = server_address.rsplit_once('/').expect("an address with a database").0.to_owned() + "/" + &name;
        let address = if parameters.is_empty() { address } else { address + "?" + parameters };
        let client = Client::connect(&address, NoTls).expect("a connection to the database");
        Some(Self { client, address, server })
    }

    #[track_caller]
    pub fn execute(&mut self, statements: &str) {
        self.client.batch_execute(statements).unwrap_or_else(|error| panic!("{statements}: {error:?}"));
    }

    /// Returns the one number that a query gives.
    #[track_caller]
    pub fn number(&mut self, query: &str) -> i64 {
        self.client.query_one(query, &[]).unwrap_or_else(|error| panic!("{query}: {error:?}")).get(0)
    }

    /// Creates the table `people` with the rows of a CSV file of people, beside columns that cannot be read.
    pub fn fill(&mut self, text: &str) {
        self.execute(
            "CREATE TYPE trades AS ENUM ('baker', 'clerk', 'smith'); CREATE TABLE people (id int GENERATED ALWAYS AS IDENTITY, \
             age smallint, hours double precision, trade trades, earns varchar(3), born date, photo bytea)",
        );
        let mut writer =
            self.client.copy_in("COPY people (age, hours, trade, earns) FROM STDIN (FORMAT csv, HEADER)").unwrap();
        writer.write_all(text.as_bytes()).unwrap();
        writer.finish().unwrap();
    }

    /// Returns the number of statements that run for `dp`.
    pub fn running(&mut self) -> i64 {
        self.number("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'dp' AND state = 'active' AND datname = current_database()")
    }

    /// Waits until so many statements run for `dp`.
    #[track_caller]
    pub fn wait_for_running(&mut self, number: i64) {
        for _ in 0..200 {
            if self.running() == number {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        panic!("{} statements run, and not {number}", self.running());
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Only a server that goes on has to be tidied up.
        if self.server.is_none()
            && let Ok(name) = self.client.query_one("SELECT current_database()::text", &[])
            && let Ok(address) = std::env::var("DP_TEST_PG")
            && let Ok(mut other) = Client::connect(&address, NoTls)
        {
            let _ = other.batch_execute(&format!("DROP DATABASE {} WITH (FORCE)", name.get::<_, &str>(0)));
        }
    }
}

/// A table of people in a database and in `people.csv`, and the reviewed schema `s.toml`.
pub fn people_place(rows: usize) -> Option<(Workplace, Database)> {
    let mut database = Database::create()?;
    let place = Workplace::new();
    let text = super::people(rows, 4);
    place.write("people.csv", &text);
    database.fill(&text);
    let draft = place.dp(&["schema", "people.csv", "--label", "earns", "--positive", "yes"]).ok();
    place.write("s.toml", draft.replace("reviewed = false", "reviewed = true"));
    Some((place, database))
}
