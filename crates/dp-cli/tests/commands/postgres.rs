//! Tables of a PostgreSQL server: the same results as from a file, and nothing that a server or its owner would not expect.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::postgres::{Database, Server, people_place};
use crate::support::training::signals;
use crate::support::{Run, Workplace, but_for_the_query, has, people, say_skipped};

const ROWS: usize = 5000;
const TRAIN: &str = "--schema s.toml --algorithm bolt-on-convex --epsilon 1 --seed 5 --out m.json --force";

/// Runs `dp COMMAND --data SOURCE… FLAGS…`.
fn run(place: &Workplace, command: &str, source: &[&str], flags: &str) -> Run {
    let words = flags.split(' ').chain(["--quiet"]);
    let all: Vec<&str> = [command, "--data"].into_iter().chain(source.iter().copied()).chain(words).collect();
    place.dp(&all)
}

#[test]
fn models_scores_and_figures_are_those_of_the_csv_file() {
    let Some((place, mut database)) = people_place(ROWS) else { return };
    database.execute(
        "CREATE SCHEMA \"other; one\"; CREATE VIEW \"other; one\".\"Aged \"\"people\"\"\" AS SELECT * FROM people",
    );
    let (train, address) = (TRAIN.replace("bolt-on-convex", "auto") + " --delta 1e-6", database.address.clone());
    let tune = TRAIN.to_owned() + " --passes 1,3 --method portions";
    let outcomes = |source: &[&str]| {
        run(&place, "tune", source, &tune).ok();
        let tuned = but_for_the_query(&place.read("m.json"), source);
        run(&place, "train", source, &format!("{train} --memory 10kB --spool .")).ok();
        let spooled = place.read("m.json");
        run(&place, "train", source, &format!("{train} --threads 2")).ok();
        let model = place.read("m.json");
        assert!(model == spooled);
        // What is done with the models of a server says nothing about the server.
        assert!(!model.contains("127.0.0.1"), "{model}");
        let model = but_for_the_query(&model, source);
        let scores = run(&place, "predict", source, "--model m.json").ok();
        let figures = run(&place, "evaluate", source, "--model m.json").ok();
        let planned = run(&place, "train", source, &format!("{train} --dry-run --n 100")).ok();
        let drafted = place.dp(&[&["schema"], source, &["--label", "earns", "--positive", "yes"]].concat()).ok();
        let used = drafted.split("\n\n").filter(|part| {
            !["[columns.born]", "[columns.photo]", "[columns.id]"].iter().any(|name| part.contains(name))
        });
        let used: Vec<String> = used.map(|part| part.trim_end().replace("on_unreadable = \"neutral\"\n", "")).collect();
        (tuned, model, scores, figures, planned, used.join("\n"))
    };
    let expected = outcomes(&["people.csv"]);
    assert_eq!(expected.2.lines().count(), ROWS + 1);
    let sources: [&[&str]; 6] = [
        &[&address],
        &[&address, "--table", "people"],
        &[&address, "--table", "\"other; one\".\"Aged \"\"people\"\"\""],
        // Capitals are small ones in SQL.
        &[&address, "--table", "Public.People"],
        &[&address, "--query", "SELECT age, hours, trade, earns FROM people WHERE age < 1000; "],
        &[&address, "--query", "SELECT age, hours, trade, earns FROM people -- all of them"],
    ];
    for source in &sources[1..] {
        assert!(outcomes(source) == expected, "{source:?}");
    }
    run(&place, "train", sources[0], TRAIN)
        .fails(1, "table.open")
        .says("`other; one.Aged \"people\"`, `public.people`");
    database.execute("DROP SCHEMA \"other; one\" CASCADE");
    assert!(outcomes(sources[0]) == expected);
}

/// Cells of every type are those of the same text in a CSV file, missing and unreadable ones included.
#[test]
fn cells_are_those_of_the_csv_file() {
    let Some(mut database) = Database::create() else { return };
    let place = Workplace::new();
    database.execute(
        "CREATE TYPE mood AS ENUM ('''); DROP TABLE t; --', 'fine'); CREATE DOMAIN score AS numeric(12, 3); \
         CREATE TABLE t (id serial, small smallint, whole int, long bigint, single real, double float8, exact numeric(12, 3), \
         score score, flag boolean, mood mood, fixed char(5), name varchar(9), \"a \"\"b\"\"; c\" text, y boolean)",
    );
    let values = [
        "(-5, 7, 9007199254740993, 0.5, 1e-7, 12.340, 5, true, 'fine', 'ab', 'x', 'ü', true)",
        "(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, true)",
        "(0, -7, 1, 'NaN', 'Infinity', 'NaN', -1.5, false, '''); DROP TABLE t; --', 'abcde', '', 'ö', false)",
        "(3, 2147483647, -1, '-Infinity', 'NaN', 0.001, 0, false, 'fine', 'c  ', 'x', NULL, NULL)",
    ];
    let columns = "small, whole, long, single, double, exact, score, flag, mood, fixed, name, \"a \"\"b\"\"; c\", y";
    for i in 0..200 {
        database.execute(&format!("INSERT INTO t ({columns}) VALUES {}", values[i % 4]));
    }
    let cells = [
        "-5,7,9007199254740993,0.5,1e-7,12.34,5,true,fine,ab,x,ü,true",
        ",,,,,,,,,,,,true",
        "0,-7,1,NaN,Infinity,NaN,-1.5,false,'); DROP TABLE t; --,abcde,,ö,false",
        "3,2147483647,-1,-Infinity,NaN,0.001,0,false,fine,c,x,,",
    ];
    let header = "small,whole,long,single,double,exact,score,flag,mood,fixed,name,\"a \"\"b\"\"; c\",y";
    let text: Vec<&str> = std::iter::once(header).chain((0..200).map(|i| cells[i % 4])).collect();
    place.write("t.csv", text.join("\n") + "\n");
    let number = |name: &str| {
        format!(
            "[columns.{name}]\ntype = 'numeric'\nmin = -10\nmax = 1e9\non_missing = {{ value = 1 }}\non_unreadable = 'missing'\n"
        )
    };
    let one_of = |name: &str, values: &str| {
        format!(
            "[columns.{name}]\ntype = 'categorical'\ncategories = [{values}, 'other']\non_unknown = 'other'\non_missing = 'category'\n"
        )
    };
    let schema: String =
        ["small", "whole", "long", "single", "double", "exact", "score"].iter().map(|name| number(name)).collect();
    let schema =
        "missing = ['']\n[label]\ncolumn = 'y'\npositive = 'true'\nnegative = 'false'\non_missing = 'neutral'\n"
            .to_owned()
            + &schema
            // The digits of a decimal, and none that follow from its type.
            + "[columns.digits]\ncolumn = 'exact'\ntype = 'categorical'\ncategories = ['12.34', '0.001', 'NaN', 'other']\n\
               on_unknown = 'other'\non_missing = 'category'\n"
            + &one_of("flag", "'true', 'false'")
            + &one_of("mood", "'fine', \"'); DROP TABLE t; --\"")
            + &one_of("fixed", "'ab', 'abcde', 'c'")
            + &one_of("name", "'x'")
            + &one_of("'a \"b\"; c'", "'ü', 'ö'");
    place.write("s.toml", schema);
    let model = |source: &[&str]| {
        run(&place, "train", source, TRAIN).ok();
        place.read("m.json")
    };
    let expected = model(&["t.csv"]);
    assert!(model(&[&database.address]) == expected);
    assert_eq!(database.number("SELECT count(*) FROM t"), 200);
}

/// The read is of one moment, in one transaction that nothing can change through.
#[test]
fn a_writer_does_not_change_the_rows() {
    let Some((place, mut database)) = people_place(1000) else { return };
    run(&place, "train", &["people.csv"], TRAIN).ok();
    let expected = but_for_the_query(&place.read("m.json"), &[]);
    let query = "SELECT age, hours, trade, earns FROM people, LATERAL (SELECT pg_sleep(0.001 + id * 0)) w";
    let child = start(&place, &["train", "--data", &database.address, "--query", query], TRAIN);
    database.wait_for_running(1);
    database.execute("DELETE FROM people WHERE id > 500; INSERT INTO people (age, hours, trade, earns) SELECT 20, 20, 'clerk', 'no' FROM generate_series(1, 99)");
    Run::from(child.wait_with_output().unwrap()).ok();
    assert_eq!(but_for_the_query(&place.read("m.json"), &["--query"]), expected);
    let hostile = [
        "SELECT 1) t; DROP TABLE people; --",
        "DELETE FROM people RETURNING *",
        "WITH d AS (DELETE FROM people RETURNING *) SELECT * FROM d",
    ];
    for query in hostile {
        let refused = run(&place, "train", &[&database.address, "--query", query], TRAIN);
        assert!(refused.code == 1 || refused.code == 3, "{refused:#?}");
    }
    assert_eq!(database.number("SELECT count(*) FROM people"), 599);
}

fn start(place: &Workplace, words: &[&str], flags: &str) -> Child {
    let all: Vec<&str> = words.iter().copied().chain(flags.split(' ')).collect();
    place.command(&all).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn tables_that_changed_or_never_fitted_are_refused() {
    let Some((place, mut database)) = people_place(100) else { return };
    let address = database.address.clone();
    let train = |source: &[&str]| run(&place, "train", &[&[address.as_str()], source].concat(), TRAIN);
    let table: &[&str] = &["--table", "people"];
    train(table).ok();
    std::fs::remove_file(place.path("m.json")).unwrap();
    let files = place.files();
    train(&["--table", "persons"]).fails(1, "table.open").says("persons");
    train(&["--table", "a.b.c.d.e"]).fails(1, "table.open");
    train(&["--query", "SELECT nothing"]).fails(1, "table.open").says("nothing");
    train(&["--query", "SELECT age, age, hours, trade, earns FROM people"])
        .fails(3, "csv.duplicate_column")
        .says("age");
    // What a query computes of rows is not quoted.
    let secret = train(&["--query", "SELECT (trade::text || 'tiger')::int AS age, hours, trade, earns FROM people"]);
    secret.fails(3, "table.read").says("22P02");
    assert!(!secret.stderr.contains("tiger"), "{}", secret.stderr);
    database.execute("CREATE TABLE nothing (LIKE people)");
    train(&["--table", "nothing"]).fails(3, "csv.no_rows");
    let columns: Vec<String> = (0..1590).map(|i| format!("c{i} int")).collect();
    database
        .execute(&format!("CREATE TABLE wide (age int, hours int, trade text, earns text, {})", columns.join(", ")));
    database.execute("INSERT INTO wide (age, hours, trade, earns) SELECT 30, 20, 'clerk', CASE WHEN i % 2 = 0 THEN 'yes' ELSE 'no' END FROM generate_series(1, 50) i");
    train(&["--table", "wide"]).ok();
    std::fs::remove_file(place.path("m.json")).unwrap();
    // A cell of ten megabytes is a category like any other, and an unknown one.
    database.execute("INSERT INTO wide (age, hours, trade, earns) VALUES (30, 20, repeat('x', 10000000), 'no')");
    let long = train(&["--table", "wide"]);
    assert!(long.stderr.len() < 5000 && !long.stderr.contains("xxxxxxxxx"), "{}", long.stderr.len());
    let _ = std::fs::remove_file(place.path("m.json"));
    database.execute("ALTER TABLE people ALTER COLUMN age TYPE date USING now()");
    train(table).fails(3, "table.type").says("date").says("age");
    database.execute("ALTER TABLE people RENAME COLUMN age TO years");
    train(table).fails(3, "csv.missing_column").says("age");
    database.execute("DROP TABLE people");
    train(table).fails(1, "table.open");
    assert_eq!(place.files(), files);
}

#[test]
fn a_role_reads_what_it_may_and_is_told_of_hidden_rows() {
    let Some((place, mut database)) = people_place(200) else { return };
    let role = format!("dp_role_{}", std::process::id());
    database.execute(&format!("CREATE ROLE {role} LOGIN; GRANT SELECT (age, hours, trade, earns) ON people TO {role}"));
    let as_role = database.address.replace("postgres://admin@", &format!("postgres://{role}@"));
    if as_role == database.address {
        say_skipped("roles", "the superuser of DP_TEST_PG is not `admin`");
        return;
    }
    let train = || run(&place, "train", &[&as_role], TRAIN);
    train().ok();
    place.dp(&["schema", &as_role, "--label", "earns", "--positive", "yes", "--out", "draft.toml"]).ok();
    assert!(place.read("draft.toml").contains("# dropped: the role may not read it"));
    let on_id = run(&place, "train", &[&as_role], "--schema-from-data --label id --epsilon 1 --out m2.json");
    on_id.fails(1, "table.open").says("column `id`").says("SELECT");
    database.execute(&format!("REVOKE SELECT (hours) ON people FROM {role}"));
    train().fails(1, "table.open").says("column `hours`");
    // The check of a query comes with its run.
    let query = run(&place, "train", &[&as_role, "--query", "SELECT * FROM people"], TRAIN);
    query.fails(3, "table.read").says("42501").says("SELECT on the columns");
    database.execute(&format!(
        "GRANT SELECT ON people TO {role}; ALTER TABLE people ENABLE ROW LEVEL SECURITY; CREATE POLICY aged ON people USING (age > 40)"
    ));
    train().fails(1, "table.open").says("row-level security");
    database.execute(&format!("ALTER ROLE {role} BYPASSRLS"));
    train().ok();
    database.execute(&format!("REVOKE ALL ON SCHEMA public FROM public; DROP OWNED BY {role}; DROP ROLE {role}"));
}

/// A query that gives its first rows at once and then waits.
const STUCK: &str =
    "SELECT age, hours, trade, earns FROM (SELECT *, CASE WHEN id > 900 THEN pg_sleep(600) END FROM people) t";

/// Whatever ends the read, the run ends with an error that names it, and the server does not go on.
#[test]
fn an_interrupted_read_leaves_nothing_behind() {
    let Some((place, mut database)) = people_place(1000) else { return };
    let files = place.files();
    let address = database.address.clone();
    let stuck = || start(&place, &["train", "--data", &address, "--query", STUCK, "--json"], TRAIN);
    for &signal in signals() {
        let child = stuck();
        database.wait_for_running(1);
        let begun = Instant::now();
        send(&child, signal);
        let ended = Run::from(child.wait_with_output().unwrap());
        assert_eq!(ended.code, 130, "{ended:#?}");
        assert!(ended.stdout.contains("run.interrupted") && begun.elapsed() < Duration::from_secs(20), "{ended:#?}");
        // Sooner than the server would look for its client.
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(database.running(), 0, "{signal}");
    }
    // Nobody is left to cancel: the server looks for its client itself, where it can.
    let mut child = stuck();
    database.wait_for_running(1);
    child.kill().unwrap();
    child.wait().unwrap();
    database.wait_for_running(0);
    let child = stuck();
    database.wait_for_running(1);
    database.number("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'dp' AND datname = current_database()");
    let ended = Run::from(child.wait_with_output().unwrap());
    assert!(ended.code == 3 && ended.stdout.contains("table.read") && ended.stdout.contains("57P01"), "{ended:#?}");
    let child = place
        .command(&["train", "--data", &address, "--query", STUCK])
        .args(TRAIN.split(' '))
        .env("PGOPTIONS", "-c statement_timeout=500")
        .output()
        .unwrap();
    Run::from(child).fails(3, "table.read").says("`statement_timeout`").says("PGOPTIONS");
    database.wait_for_running(0);
    assert_eq!(place.files(), files);
}

fn send(child: &Child, signal: &str) {
    let sent = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// A server that stops in the middle is an error; one that is not there, too.
#[test]
fn a_server_that_goes_away_is_an_error() {
    let Some(server) = Server::start() else { return };
    let place = Workplace::new();
    let mut client = postgres::Client::connect(&server.superuser("postgres"), postgres::NoTls).unwrap();
    client.batch_execute("CREATE TABLE people (age int, earns text); INSERT INTO people SELECT i, 'yes' FROM generate_series(1, 2000) i").unwrap();
    let query = "SELECT *, pg_sleep(0.002)::text AS w FROM people";
    let address = server.superuser("postgres");
    let flags = "--schema-from-data --label earns --positive yes --epsilon 1 --out m.json";
    let child = start(&place, &["train", "--data", &address, "--query", query], flags);
    std::thread::sleep(Duration::from_millis(1500));
    let pid = std::fs::read_to_string(server.folder().join("data/postmaster.pid")).unwrap();
    let pid = pid.lines().next().unwrap();
    assert!(Command::new("kill").args(["-s", "QUIT", pid]).status().unwrap().success());
    let ended = Run::from(child.wait_with_output().unwrap());
    ended.fails(3, "table.read");
    run(&place, "train", &[&address], flags).fails(1, "table.open").says("no connection to the server");
    assert!(place.files().is_empty());
    // It takes the connection and says nothing.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("postgres://ann@{}/d?connect_timeout=1", silent.local_addr().unwrap());
    run(&place, "train", &[&silent], flags).fails(1, "table.open").says("does not answer within 1 s");
}

/// A password comes from a file, a service or the environment, and shows up nowhere.
#[test]
fn credentials_are_libpqs() {
    let Some(server) = Server::start() else { return };
    let place = Workplace::new();
    let mut client = postgres::Client::connect(&server.superuser("postgres"), postgres::NoTls).unwrap();
    client.batch_execute("CREATE ROLE ann LOGIN PASSWORD 'pa:ss'; CREATE TABLE people (age int, earns text); GRANT SELECT ON people TO ann; INSERT INTO people SELECT i % 7, 'yes' FROM generate_series(1, 70) i").unwrap();
    let rules =
        "local all all scram-sha-256\nhost all admin 127.0.0.1/32 trust\nhost all all 127.0.0.1/32 scram-sha-256\n";
    std::fs::write(server.folder().join("data/pg_hba.conf"), rules).unwrap();
    client.batch_execute("SELECT pg_reload_conf()").unwrap();
    std::thread::sleep(Duration::from_millis(500));
    let address = format!("postgres://ann@127.0.0.1:{}/postgres", server.port());
    let draft = |address: &str, variables: &[(&str, &str)]| {
        let mut command = place.command(&["schema", address, "--label", "earns", "--positive", "yes"]);
        command.env("HOME", place.path("")).envs(variables.iter().copied());
        Run::from(command.stdin(Stdio::null()).output().unwrap())
    };
    draft(&address, &[]).fails(1, "table.open");
    draft(&address, &[("PGPASSWORD", "wrong")]).fails(1, "table.open").says("28P01").says("PGPASSWORD");
    let expected = draft(&address, &[("PGPASSWORD", "pa:ss")]).ok();
    let given = address.replace("ann@", "ann:pa%3Ass@");
    let refused = draft(&given, &[]);
    refused.fails(1, "table.open").says("~/.pgpass");
    assert!(!refused.stderr.contains("pa%3Ass") && !refused.stderr.contains("pa:ss"), "{}", refused.stderr);
    let secret = |name: &str, text: String, mode: u32| {
        let path = place.write(name, text);
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
    };
    let line = format!("127.0.0.1:{}:*:ann:pa\\:ss\n", server.port());
    secret(".pgpass", line.clone(), 0o644);
    draft(&address, &[]).fails(1, "table.open").says("chmod 600");
    secret(".pgpass", line, 0o600);
    assert_eq!(draft(&address, &[]).ok(), expected);
    std::fs::remove_file(place.path(".pgpass")).unwrap();
    let service = format!(
        "[ward]\nhost={}\nport={}\nuser=ann\npassword=pa:ss\ndbname=postgres\n",
        server.folder().display(),
        server.port()
    );
    secret(".pg_service.conf", service, 0o600);
    assert_eq!(draft("postgres://?service=ward", &[]).ok(), expected);
    assert_eq!(draft("postgres://", &[("PGSERVICE", "ward")]).ok(), expected);
    draft("postgres://?service=wards", &[]).fails(1, "table.open").says("`wards`");
}

/// Encryption as `sslmode` asks for it; a certificate that is not the right one is refused.
#[test]
fn certificates_are_verified() {
    let Some(server) = Server::start() else { return };
    if !has("openssl") {
        say_skipped("certificates", "openssl is missing");
        return;
    }
    let place = Workplace::new();
    let script = "set -e
        new() { openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=$1 -keyout $1.key -out $1.crt; }
        new authority; new stranger
        openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=server -keyout server.key -out server.csr
        printf 'subjectAltName=DNS:localhost' > names
        openssl x509 -req -in server.csr -CA authority.crt -CAkey authority.key -CAcreateserial -days 30 -extfile names -out server.crt
        openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 30 -subj /CN=localhost -addext subjectAltName=DNS:localhost -keyout self.key -out self.crt";
    let made = Command::new("sh").args(["-c", script]).current_dir(place.path("")).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let data = server.folder().join("data");
    let mut client = postgres::Client::connect(&server.superuser("postgres"), postgres::NoTls).unwrap();
    client.batch_execute("CREATE TABLE people (age int, earns text); INSERT INTO people SELECT i % 7, 'yes' FROM generate_series(1, 70) i").unwrap();
    let owner = std::os::unix::fs::MetadataExt::uid(&std::fs::metadata(&data).unwrap());
    let mut serve = |name: &str| {
        for end in ["crt", "key"] {
            let target = data.join(format!("server.{end}"));
            std::fs::copy(place.path(&format!("{name}.{end}")), &target).unwrap();
            std::os::unix::fs::chown(&target, Some(owner), None).unwrap();
            std::fs::set_permissions(&target, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        }
        client.batch_execute("ALTER SYSTEM SET ssl = on").unwrap();
        client.batch_execute("SELECT pg_reload_conf()").unwrap();
        std::thread::sleep(Duration::from_millis(500));
    };
    let draft = |host: &str, settings: &str| {
        let address = format!("postgres://admin@{host}:{}/postgres?{settings}", server.port());
        let mut command = place.command(&["schema", &address, "--label", "earns", "--positive", "yes"]);
        Run::from(command.env("HOME", place.path("")).output().unwrap())
    };
    draft("localhost", "sslmode=require").fails(1, "table.open").says("does not support TLS");
    serve("server");
    draft("localhost", "sslmode=verify-full&sslrootcert=authority.crt").ok();
    draft("127.0.0.1", "sslmode=verify-ca&sslrootcert=authority.crt").ok();
    draft("127.0.0.1", "sslmode=verify-full&sslrootcert=authority.crt")
        .fails(1, "table.open")
        .says("not valid for name");
    draft("localhost", "sslmode=verify-ca&sslrootcert=stranger.crt").fails(1, "table.open").says("certificate");
    // A known authority makes `require` as strict as `verify-ca`.
    draft("localhost", "sslmode=require&sslrootcert=stranger.crt").fails(1, "table.open");
    draft("localhost", "sslmode=verify-full&sslrootcert=system").fails(1, "table.open");
    draft("localhost", "sslmode=require").ok();
    draft("localhost", "").ok();
    draft("localhost", "sslmode=disable").ok();
    // A certificate that signed itself is trusted if it is the one in the file.
    serve("self");
    draft("localhost", "sslmode=verify-full&sslrootcert=self.crt").ok();
    draft("127.0.0.1", "sslmode=verify-ca&sslrootcert=self.crt").ok();
    draft("127.0.0.1", "sslmode=verify-full&sslrootcert=self.crt").fails(1, "table.open");
    draft("localhost", "sslmode=verify-full&sslrootcert=authority.crt").fails(1, "table.open");
    let used = server.log();
    assert!(used.contains("SSL enabled"), "no connection was encrypted");
}

/// With all logging of the server on, its log holds the statements that are documented and no value of a record.
#[test]
fn logs_hold_no_value_of_a_record() {
    let Some((place, mut database)) = people_place(500) else { return };
    let Some(server) = database.server else { return };
    // Values that nothing else would write.
    let text = people(500, 4).replace("baker", "xanthippe");
    let text = text.lines().enumerate().map(|(i, line)| match i {
        0 => line.to_owned(),
        i => line.replacen(',', &format!(".{:06},", i * 997 % 1_000_000), 1),
    });
    let rows: Vec<String> = text.collect();
    let mark = format!("marked{}", std::process::id());
    database.execute(&format!("CREATE TABLE {mark} (age float8, hours float8, trade text, earns text)"));
    let mut writer = database.client.copy_in(&format!("COPY {mark} FROM STDIN (FORMAT csv, HEADER)")).unwrap();
    std::io::Write::write_all(&mut writer, rows.join("\n").as_bytes()).unwrap();
    writer.finish().unwrap();
    place.write("s.toml", place.read("s.toml").replace("baker", "xanthippe"));
    let before = server.log().len();
    let source: &[&str] = &[&database.address, "--table", &mark];
    run(&place, "train", source, &format!("{TRAIN} --memory 10kB --spool .")).ok();
    run(&place, "predict", source, "--model m.json").ok();
    let log = server.log()[before..].to_owned();
    assert!(log.contains("COPY (SELECT") && log.contains(&mark), "the log does not hold what was done");
    // Values that stand in the model, such as categories, are public; others are those of records.
    assert!(!log.contains("xanthippe"));
    for row in &rows[1..] {
        let age = row.split(',').next().unwrap();
        assert!(!log.contains(age), "{age}");
    }
    let statements: Vec<&str> = log.lines().filter(|line| line.contains("COPY (") && line.contains(&mark)).collect();
    assert!(
        statements.iter().all(|line| line.contains("SELECT \"age\", \"hours\", \"trade\", \"earns\" FROM \"public\".")
            || line.contains("SELECT \"age\", \"hours\", \"trade\" FROM")),
        "{statements:?}"
    );
}

#[test]
fn dates_are_those_of_the_csv_file() {
    let Some((place, mut database)) = people_place(300) else { return };
    database.execute(
        "SET TIME ZONE 'America/New_York'; \
         ALTER TABLE people ADD seen date, ADD noted timestamp, ADD sent timestamptz; \
         UPDATE people SET seen = date '1931-05-06' + 97 * id::int, noted = timestamp '2019-02-03 04:05:06' + id * interval '7919 s', \
         sent = timestamptz '2024-06-30 22:00:00-04' + id * interval '86399 s'",
    );
    let query = "SELECT age, to_char(seen, 'YYYY-MM-DD'), to_char(noted, 'YYYY-MM-DD\"T\"HH24:MI:SS'), \
         to_char(sent AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS'), earns FROM people ORDER BY ctid";
    let mut text = "age,seen,noted,sent,earns\n".to_owned();
    for row in database
        .client
        .query(&format!("SELECT age::text, a, b, c, earns FROM ({query}) AS t (age, a, b, c, earns)"), &[])
        .unwrap()
    {
        let cells: Vec<String> = (0..5).map(|i| row.get::<_, Option<String>>(i).unwrap_or_default()).collect();
        text += &(cells.join(",") + "\n");
    }
    place.write("dated.csv", text);
    let drafted =
        |source: &[&str]| place.dp(&[&["schema"], source, &["--label", "earns", "--positive", "yes"]].concat()).ok();
    let of_csv = drafted(&["dated.csv"]);
    assert_eq!(of_csv.matches("type = \"date\"").count(), 3, "{of_csv}");
    let address = database.address.clone();
    let columns = "SELECT age, seen, noted, sent, earns FROM people";
    let source = [&*address, "--query", columns];
    assert_eq!(
        drafted(&source).replace("on_unreadable = \"neutral\"\n", "").replace("others = \"neutral\"\n", ""),
        of_csv.replace("others = \"neutral\"\n", "")
    );
    let sun = "\n[columns.day]\ntype = \"weekday\"\ncolumn = \"seen\"\nformat = \"%Y-%m-%d\"\n";
    place.write("s.toml", of_csv.replace("reviewed = false", "reviewed = true") + sun);
    let model = |source: &[&str]| {
        run(&place, "train", source, TRAIN).ok();
        but_for_the_query(&place.read("m.json"), source)
    };
    assert_eq!(model(&["dated.csv"]), model(&source));
    // A day without end is none.
    database.execute("UPDATE people SET seen = 'infinity' WHERE id = 7");
    let checked = place.dp(&["check", "--data", &address, "--query", columns, "--schema", "s.toml", "--json"]);
    assert!(
        checked.code == 3 && checked.stdout.contains("\"csv.bad_date\"") && checked.stdout.contains("infinity"),
        "{checked:?}"
    );
    // Nor is a date a number.
    let numeric = "label = { column = 'earns', positive = 'yes', negative = 'no' }\ncolumns.seen = { type = 'numeric', min = 0, max = 1 }";
    place.write("s.toml", numeric);
    run(&place, "train", &source, TRAIN).fails(3, "table.type").says("seen");
}
