//! A server as a child process, ended with the test.

use crate::client::{Answer, Client};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The key of every emulator.
pub(crate) const EMULATOR_KEY: &str =
    "C2y6yDjf5/R+ob0N8A7Cgv30VRDJIWEHLM+4QDU5DE2nQ9nDuVTqobD4b8mGGyPMbIZnqyMsEcaGQy67XIw/Jw==";
/// Longest time a test waits for anything.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

/// The program, ready to take arguments.
pub(crate) fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_perihelion"))
}

/// Runs the program to its end.
pub(crate) fn run(arguments: &[&str]) -> Output {
    program().args(arguments).output().unwrap()
}

pub(crate) struct Server {
    child: Child,
    address: SocketAddr,
    /// Everything it has printed so far, on both streams.
    printed: Arc<Mutex<String>>,
    readers: Vec<JoinHandle<()>>,
}

impl Server {
    /// Starts the program with these arguments and waits for its ready line.
    pub(crate) fn start(arguments: &[&str]) -> Server {
        let mut child =
            program().args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let printed = Arc::new(Mutex::new(String::new()));
        let errors = pass_on(child.stderr.take().unwrap(), &printed);
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let address = loop {
            let mut line = String::new();
            let count = output.read_line(&mut line).unwrap();
            assert!(count > 0, "the server ended: {}", printed.lock().unwrap());
            printed.lock().unwrap().push_str(&line);
            if let Some(address) = line.strip_prefix("ready nosql=https://") {
                let address = address.split_whitespace().next().unwrap_or_default();
                break address.parse().unwrap();
            }
        };
        let output = pass_on(output, &printed);
        Server { child, address, printed, readers: vec![errors, output] }
    }

    /// A development server in memory with additional arguments.
    pub(crate) fn dev(arguments: &[&str]) -> Server {
        Server::start(&[&["dev", "--memory", "--nosql", "127.0.0.1:0"], arguments].concat())
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The address of the Table API in the ready line; `None` if it is off.
    pub(crate) fn table_address(&self) -> Option<SocketAddr> {
        let printed = self.printed.lock().unwrap();
        let ready = printed.lines().find(|line| line.starts_with("ready ")).unwrap();
        let address = ready.split_whitespace().find_map(|word| word.strip_prefix("table=https://"))?;
        Some(address.parse().unwrap())
    }

    /// A client with the well-known key.
    pub(crate) fn client(&self) -> Client {
        Client::new(self.address, EMULATOR_KEY)
    }

    /// The value of a metric.
    pub(crate) fn metric(&self, name: &str) -> u64 {
        let text = self.client().unsigned("GET", "/metrics").text();
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
    }

    /// Polls until `done` returns true.
    #[track_caller]
    pub(crate) fn wait_until(&self, what: &str, mut done: impl FnMut(&Server) -> bool) {
        let begun = Instant::now();
        while !done(self) {
            assert!(begun.elapsed() < DEADLINE, "{what}: not within {DEADLINE:?}");
        }
    }

    /// Waits until only the calling connection is open.
    #[track_caller]
    pub(crate) fn wait_until_alone(&self) {
        self.wait_until("others are connected", |server| server.metric("perihelion_connections_open") == 1);
    }

    /// Asserts that the server still answers.
    #[track_caller]
    pub(crate) fn assert_serves(&self) {
        let answer: Answer = self.client().send("GET", "/", &[], b"");
        assert_eq!(answer.status, 200);
    }

    /// Resident memory in bytes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().strip_suffix(" kB").unwrap().trim().parse::<u64>().unwrap() * 1024
    }

    /// Stops the server and returns everything that it has printed.
    pub(crate) fn stop(self) -> String {
        self.stop_by(rustix::process::Signal::TERM)
    }

    pub(crate) fn stop_by(mut self, signal: rustix::process::Signal) -> String {
        let id = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(id, signal).unwrap();
        assert!(self.child.wait().unwrap().success());
        for reader in self.readers.drain(..) {
            reader.join().unwrap();
        }
        self.printed.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn pass_on(mut from: impl Read + Send + 'static, to: &Arc<Mutex<String>>) -> JoinHandle<()> {
    let to = Arc::clone(to);
    std::thread::spawn(move || {
        let mut bytes = [0; 8192];
        while let Ok(count @ 1..) = from.read(&mut bytes) {
            to.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
    })
}

/// The path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
