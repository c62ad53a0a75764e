//! One worker process and its pipes.

use crate::ScriptFault;
use crate::limits::FRAME_BYTES_MAX;
use crate::wire::from_worker::{self, FromWorker};
use bytes::{Bytes, BytesMut};

#[cfg(target_os = "linux")]
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::process::{Child, Command};

/// How a worker process is started: a program that calls [`worker::main`](crate::worker::main).
#[derive(Debug, Clone)]
pub struct WorkerProgram {
    /// The program.
    pub path: PathBuf,
    /// Its arguments. The memory limit in bytes is appended as the last one.
    pub arguments: Vec<String>,
}

/// How long a new worker may take until it is ready, and a killed one until it is gone.
const START_MAX: Duration = Duration::from_secs(10);

/// Bytes that one read from a worker asks for.
const READ_BYTES: usize = 8 << 10;

/// Bytes that a pipe holds, if the system grants them.
#[cfg(target_os = "linux")]
const PIPE_BYTES: usize = 256 << 10;

/// A running worker. Dropping it kills the process.
#[derive(Debug)]
pub(super) struct WorkerProcess {
    child: Child,
    /// Two pipes and no socket: each read from a socket tells the other end that there is room, which would wake the server
    /// and take the processor from the worker before it has begun.
    to_worker: Sender,
    from_worker: Receiver,
    received: BytesMut,
    /// Calls that it has executed.
    pub(super) calls: u32,
}

/// The worker has ended, or has sent something that is not a message.
#[derive(Debug)]
pub(super) struct Broken;

impl WorkerProcess {
    /// Starts a worker and waits until it is ready. Also returns what of its sandbox is missing.
    pub(super) async fn start(
        program: &WorkerProgram,
        memory_bytes: u64,
    ) -> Result<(WorkerProcess, Vec<String>), ScriptFault> {
        let unavailable = |cause: String| ScriptFault::Unavailable { cause };
        let mut worker = spawn(program, memory_bytes).map_err(|error| unavailable(error.to_string()))?;
        match tokio::time::timeout(START_MAX, worker.receive()).await {
            Ok(Ok(FromWorker::Ready { missing })) => Ok((worker, missing)),
            Ok(Ok(_)) => Err(unavailable("not a worker".to_owned())),
            Ok(Err(Broken)) => Err(unavailable(worker.end().await)),
            Err(_) => Err(unavailable(format!("not ready after {START_MAX:?}"))),
        }
    }

    /// Sends a message; `frame` has room for the length in front.
    pub(super) async fn send(&mut self, frame: &Frame) -> Result<(), Broken> {
        self.to_worker.write_all(&frame.bytes).await.map_err(|_| Broken)
    }

    /// Receives the next message. Cancelling loses nothing.
    pub(super) async fn receive(&mut self) -> Result<FromWorker, Broken> {
        loop {
            if let Some(message) = self.take_message()? {
                return from_worker::read(message).map_err(|_| Broken);
            }
            self.received.reserve(READ_BYTES);
            match self.from_worker.read_buf(&mut self.received).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return Err(Broken),
            }
        }
    }

    fn take_message(&mut self) -> Result<Option<Bytes>, Broken> {
        let Some(length) = self.received.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(*length) as usize;
        if length > FRAME_BYTES_MAX {
            return Err(Broken);
        }
        if self.received.len() < 4 + length {
            return Ok(None);
        }
        let mut message = self.received.split_to(4 + length);
        Ok(Some(message.split_off(4).freeze()))
    }

    /// Kills the process and returns how it ended.
    pub(super) async fn end(mut self) -> String {
        // A worker that has closed its pipe ends by itself; its own status says more than that of the kill.
        if let Ok(Ok(status)) = tokio::time::timeout(KILL_DELAY, self.child.wait()).await {
            return status.to_string();
        }
        self.killed().await
    }

    /// Kills the process at once. Nobody waits for its end: with its low priority it may take long on a busy machine.
    pub(super) fn kill(mut self, why: &'static str) {
        let _ = self.child.start_kill();
        tokio::spawn(async move {
            let how = self.killed().await;
            tracing::info!(event = "script_killed", how, why, "a script worker was killed");
        });
    }

    /// Kills the process, if it has not ended already, and waits for its end.
    async fn killed(&mut self) -> String {
        let _ = self.child.start_kill();
        match tokio::time::timeout(START_MAX, self.child.wait()).await {
            Ok(Ok(status)) => status.to_string(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "does not end".to_owned(),
        }
    }
}

/// How long a worker that has closed its pipe may take to end.
const KILL_DELAY: Duration = Duration::from_secs(1);

/// A message with its length in front.
#[derive(Debug)]
pub(super) struct Frame {
    bytes: Vec<u8>,
}

impl Frame {
    /// Writes a message.
    pub(super) fn new(write: impl FnOnce(&mut Vec<u8>)) -> Result<Frame, ScriptFault> {
        let mut bytes = vec![0; 4];
        write(&mut bytes);
        let length = bytes.len() - 4;
        if length > FRAME_BYTES_MAX {
            return Err(ScriptFault::InputTooLarge { bytes: length });
        }
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        Ok(Frame { bytes })
    }
}

/// Starts the process with nothing but its ends of the pipes, which are its input and output.
fn spawn(program: &WorkerProgram, memory_bytes: u64) -> std::io::Result<WorkerProcess> {
    let ((input, to_worker), (from_worker, output)) = (std::io::pipe()?, std::io::pipe()?);
    #[cfg(target_os = "linux")]
    for pipe in [to_worker.as_fd(), output.as_fd()] {
        // With less, large messages take more turns.
        let _ = rustix::pipe::fcntl_setpipe_size(pipe, PIPE_BYTES);
    }
    let child = Command::new(&program.path)
        .args(&program.arguments)
        .arg(memory_bytes.to_string())
        .env_clear()
        // Local time needs no file of time zones.
        .env("TZ", "UTC0")
        .current_dir("/")
        .stdin(Stdio::from(input))
        .stdout(Stdio::from(output))
        .stderr(Stdio::null())
        // A signal from the terminal stops the server, which first lets its scripts end.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()?;
    Ok(WorkerProcess {
        child,
        to_worker: Sender::from_owned_fd(to_worker.into())?,
        from_worker: Receiver::from_owned_fd(from_worker.into())?,
        received: BytesMut::new(),
        calls: 0,
    })
}
