//! `dp train --sums` on a cluster: a Spark master and two workers on this machine, of which parts are killed.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::runner::{FLAGS, place, shipped, weights, words};
use crate::support::engine::{JAVA_OPTIONS, python};
use crate::support::{Run, Workplace, say_skipped};

/// A master and two workers with a core each.
struct Cluster {
    folder: PathBuf,
    home: PathBuf,
    port: u16,
    master: Child,
    workers: Vec<Child>,
}

impl Cluster {
    fn start(folder: &Path) -> Option<Self> {
        let home = Command::new(python()).args(["-c", "import pyspark; print(pyspark.__path__[0])"]).output().ok()?;
        let home = PathBuf::from(String::from_utf8(home.stdout).unwrap().trim());
        let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).unwrap().port();
        let master = Self::master(&home, folder, port);
        let mut this = Self { folder: folder.to_owned(), home, port, master, workers: Vec::new() };
        if !this.says("master", "I have been elected leader") {
            return None;
        }
        for worker in ["worker0", "worker1"] {
            let master = this.address();
            let work = folder.join(worker).display().to_string();
            let words = [
                "worker.Worker",
                "--host",
                "127.0.0.1",
                "--webui-port",
                "0",
                "-c",
                "1",
                "-m",
                "1g",
                "-d",
                &work,
                &master,
            ];
            this.workers.push(Self::daemon(&this.home, folder, worker, &words));
        }
        assert!(this.says("worker0", "Successfully registered") && this.says("worker1", "Successfully registered"));
        Some(this)
    }

    fn address(&self) -> String {
        format!("spark://127.0.0.1:{}", self.port)
    }

    /// Starts a master that finds its workers and programs again after a restart.
    fn master(home: &Path, folder: &Path, port: u16) -> Child {
        let words = ["master.Master", "--host", "127.0.0.1", "--port", &port.to_string(), "--webui-port", "0"];
        Self::daemon(home, folder, "master", &words)
    }

    fn daemon(home: &Path, folder: &Path, name: &str, words: &[&str]) -> Child {
        let log = File::options().create(true).append(true).open(folder.join(name).with_extension("log")).unwrap();
        let recovery = format!(
            "-Dspark.deploy.recoveryMode=FILESYSTEM -Dspark.deploy.recoveryDirectory={}",
            folder.join("recovery").display()
        );
        let mut command = Command::new(home.join("bin/spark-class"));
        command.arg(format!("org.apache.spark.deploy.{}", words[0])).args(&words[1..]);
        command.env("SPARK_HOME", home).env("SPARK_LOCAL_IP", "127.0.0.1").env("SPARK_DAEMON_JAVA_OPTS", recovery);
        command.env("PYSPARK_PYTHON", python()).envs([JAVA_OPTIONS]);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
    }

    fn log(&self, name: &str) -> String {
        fs::read_to_string(self.folder.join(name).with_extension("log")).unwrap_or_default()
    }

    /// Waits until a log says this.
    fn says(&self, name: &str, text: &str) -> bool {
        waits(|| self.log(name).contains(text))
    }

    /// Returns the numbers of the processes that compute.
    fn executors(&self) -> Vec<String> {
        let of = |worker: &Child| {
            let tasks = fs::read_dir(format!("/proc/{}/task", worker.id())).unwrap();
            let children =
                tasks.map(|task| fs::read_to_string(task.unwrap().path().join("children")).unwrap_or_default());
            children
                .flat_map(|children| words(children.trim()).into_iter().map(str::to_owned).collect::<Vec<_>>())
                .collect::<Vec<_>>()
        };
        let computes = |pid: &String| {
            fs::read_to_string(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| line.contains("CoarseGrainedExecutorBackend"))
        };
        self.workers.iter().flat_map(of).filter(computes).collect()
    }

    fn restart_master(&mut self) {
        self.master.kill().unwrap();
        self.master.wait().unwrap();
        fs::rename(self.folder.join("master.log"), self.folder.join("master-before.log")).unwrap();
        self.master = Self::master(&self.home, &self.folder, self.port);
        assert!(self.says("master", "I have been elected leader"), "{}", self.log("master"));
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for process in self.workers.iter_mut().chain([&mut self.master]) {
            // Workers stop their executors.
            let _ = Command::new("kill").arg(process.id().to_string()).status();
        }
        for process in self.workers.iter_mut().chain([&mut self.master]) {
            let _ = process.wait();
        }
    }
}

fn waits(until: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !until() {
        if start.elapsed() > Duration::from_secs(90) {
            return false;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    true
}

/// A training with Spark, with the lines that go to its runner and come from it.
fn train(place: &Workplace, runner: &str, master: &str, folder: &str) -> Child {
    fs::create_dir(place.path(folder)).unwrap();
    let settings =
        format!("spark.master={master} spark.ui.enabled=false spark.executor.memory=512m spark.driver.host=127.0.0.1");
    let command = format!("sh -c \"tee {folder}/in | {runner} {settings} | tee {folder}/out\"");
    // Some rows many times, so that a statement still runs when an executor is killed.
    let rows = format!("SELECT p.* FROM csv.`{}` p", place.path("rows.csv").display());
    let query = format!(
        "SELECT _c0 AS age, _c1 AS hours, _c2 AS trade, _c3 AS earns FROM ({rows}) CROSS JOIN range(0, 150, 1, 8)"
    );
    let source = ["train", "--format", "runner", "--data", &command, "--query", &query, "--seed", "1"];
    let flags = FLAGS.replace("m.json", &format!("{folder}/m.json")).replace("passes 6", "passes 4");
    let mut run = place.command(&[source.as_slice(), &words(&flags)].concat());
    run.env("SPARK_LOCAL_IP", "127.0.0.1").env("PYSPARK_PYTHON", python()).envs([JAVA_OPTIONS]);
    run.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn lines(place: &Workplace, name: &str) -> usize {
    fs::read_to_string(place.path(name)).unwrap_or_default().lines().count()
}

/// An executor is killed within a statement, and the master restarted between two: the model is that of a run without a
/// cluster. Then `dp` itself is killed.
#[test]
fn killed_executors_and_masters_change_no_model() {
    let skip = |why: &str| {
        assert!(std::env::var_os("DP_REQUIRE_SPARK").is_none_or(|value| value != "1"), "DP_REQUIRE_SPARK=1, but {why}");
        say_skipped("spark", why);
    };
    if !crate::support::has("java") || !Path::new("/proc/self/task").exists() {
        return skip("there is no Java, or no /proc");
    }
    let Some(runner) = shipped("spark", "pyspark") else { return skip("there is no PySpark") };
    let place = place();
    place.write("rows.csv", place.read("people.csv").split_once('\n').unwrap().1);
    let Some(mut cluster) = Cluster::start(&place.path("")) else { return skip("no master starts here") };
    let output = train(&place, &runner, "local[2]", "calm").wait_with_output().unwrap();
    Run::from(output).ok();

    let child = train(&place, &runner, &cluster.address(), "rough");
    // The greeting is a line without a question. Questions: a count, what is known, the first step twice, three more.
    let is_asked = |question: usize| lines(&place, "rough/in") == question && lines(&place, "rough/out") == question;
    assert!(waits(|| is_asked(4)), "no fourth question");
    std::thread::sleep(Duration::from_millis(200));
    let executors = cluster.executors();
    assert!(is_asked(4) && executors.len() == 2, "the statement was over: {executors:?}");
    Command::new("kill").args(["-KILL", &executors[0]]).status().unwrap();
    assert!(waits(|| is_asked(5)), "no fifth question");
    cluster.restart_master();
    let output = child.wait_with_output().unwrap();
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    Run::from(output).ok();
    assert!(log.contains("Lost executor"), "{log}");
    assert_eq!(lines(&place, "rough/in"), 7, "the engine, not dp, ran the statement again");

    let certificate = |folder: &str| -> Value { place.json(&format!("{folder}/m.json"))["certificate"].clone() };
    assert_eq!(certificate("rough"), certificate("calm"));
    let of = |folder: &str| {
        fs::copy(place.path(&format!("{folder}/m.json")), place.path("m.json")).unwrap();
        weights(&place)
    };
    assert_eq!(of("rough"), of("calm"));

    // Of a `dp` that is killed, nothing goes on in the cluster.
    let mut child = train(&place, &runner, &cluster.address(), "killed");
    assert!(waits(|| lines(&place, "killed/in") == 3 && !cluster.executors().is_empty()), "no third question");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(waits(|| cluster.executors().is_empty()), "the cluster goes on");
    assert!(!place.path("killed/m.json").exists());
}
