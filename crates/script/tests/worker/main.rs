//! The worker process of the tests: `script-test-worker MEMORY_BYTES`, and `script-test-worker probe`, which confines
//! itself and prints what it can still do.

use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::process::{Command, ExitCode};

fn main() -> ExitCode {
    match std::env::args().next_back().as_deref() {
        Some("probe") => probe(),
        Some(bytes) => match bytes.parse() {
            Ok(bytes) => script::worker::main(bytes),
            Err(_) => ExitCode::FAILURE,
        },
        None => ExitCode::FAILURE,
    }
}

/// Tries what a worker must not be able to do. Prints a line for each thing that worked, and one at the end.
#[allow(clippy::print_stdout)]
fn probe() -> ExitCode {
    let listener = TcpListener::bind("127.0.0.1:0");
    let address = listener.as_ref().ok().and_then(|listener| listener.local_addr().ok());
    let before = [("read a file", std::fs::read("/proc/self/status").is_ok()), ("listen", listener.is_ok())];
    for (what, worked) in before {
        if !worked {
            println!("unconfined, but cannot {what}");
        }
    }
    for missing in script::worker::confine(64 << 20) {
        println!("missing {missing}");
    }
    let after = [
        ("read a file", std::fs::read("/proc/self/status").is_ok()),
        ("write a file", std::fs::write("/tmp/script-test-worker-probe", "x").is_ok()),
        ("list a folder", std::fs::read_dir("/").is_ok()),
        ("delete a file", std::fs::remove_file("/tmp/script-test-worker-probe").is_ok()),
        ("accept", listener.is_ok_and(|listener| accepts(&listener))),
        ("listen", TcpListener::bind("127.0.0.1:0").is_ok()),
        ("connect", address.is_some_and(|address| TcpStream::connect(address).is_ok())),
        ("use datagrams", UdpSocket::bind("127.0.0.1:0").is_ok()),
        ("make a pair of sockets", UnixStream::pair().is_ok()),
        ("start a process", Command::new("/bin/true").status().is_ok()),
        ("start a thread", std::thread::Builder::new().spawn(|| ()).is_ok()),
        ("read the time zone", std::fs::metadata("/etc/localtime").is_ok()),
    ];
    for (what, worked) in after {
        if worked {
            println!("can {what}");
        }
    }
    println!("probed");
    ExitCode::SUCCESS
}

fn accepts(listener: &TcpListener) -> bool {
    listener.set_nonblocking(true).is_ok()
        && !matches!(listener.accept(), Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied)
}
