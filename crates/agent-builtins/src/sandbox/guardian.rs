//! A small process beside each command that ends the command when the agent no longer can.

use std::io::{self, Write as _};
use std::process::Stdio;

use process_wrap::std::{ChildWrapper, CommandWrap, ProcessSession};

use super::env::PATH;
use super::mark::Mark;

/// Watches over one command. However the agent dies, the pipe between the two closes, and then the guardian kills what
/// the command started and ends. Dropped, it is told nothing and ends at once: then the command has been seen to.
#[derive(Debug)]
pub(super) struct Guardian {
    child: Box<dyn ChildWrapper>,
    /// Never blocks: news that finds no room is lost, and there is room for thousands.
    news: io::PipeWriter,
}

/// What a guardian learns about its command.
#[derive(Debug, Clone, Copy)]
pub(super) enum News {
    /// The number of its session.
    Leader(i32),
    /// The session's leader was waited for, so that its number may come to mean another one.
    Gone,
    /// A process of it, which may have left the session, and when that began.
    Kin(i32, u64),
}

impl Guardian {
    /// Begins to watch before there is a command, so that there is no moment without.
    pub(super) fn start(mark: &Mark) -> io::Result<Self> {
        let (reader, news) = io::pipe()?;
        rustix::fs::fcntl_setfl(&news, rustix::fs::OFlags::NONBLOCK)?;
        let mut wrap = CommandWrap::with_new("/bin/sh", |command| {
            // The mark is an argument and not in its environment: what bears it there is killed.
            command.args(["-c", SCRIPT, "agent-guardian", mark.variable(), &mark.limit()]);
            command.env_clear().env(PATH.0, PATH.1).current_dir("/");
            command.stdin(reader).stdout(Stdio::null()).stderr(Stdio::null());
        });
        // Whoever ends the agent's session must not end its guardians with it.
        wrap.wrap(ProcessSession);
        Ok(Self { child: wrap.spawn()?, news })
    }

    pub(super) fn tell(&self, news: News) {
        let line = match news {
            News::Leader(leader) => format!("leader {leader}\n"),
            News::Gone => "gone\n".to_owned(),
            News::Kin(number, start) => format!("kin {number} {start}\n"),
        };
        // A guardian that somebody killed is missed only if the agent is killed too.
        let _ = (&self.news).write_all(line.as_bytes());
    }
}

impl Drop for Guardian {
    fn drop(&mut self) {
        // It sleeps in `read`, so it dies at once; one that is dead already is as good.
        let _ = self.child.start_kill();
        let _ = self.child.wait();
    }
}

const SCRIPT: &str = include_str!("guardian.sh");

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;

    #[test]
    fn it_stands_down_with_the_command_and_leaves_no_zombie() {
        let guardian = Guardian::start(&Mark::new()).unwrap();
        let at = format!("/proc/{}", guardian.child.id());
        assert!(Path::new(&at).exists());
        guardian.tell(News::Leader(i32::MAX));
        drop(guardian);
        assert!(!Path::new(&at).exists());
    }

    #[test]
    fn it_ends_by_itself_when_the_pipe_closes() {
        let mut guardian = Guardian::start(&Mark::new()).unwrap();
        guardian.tell(News::Gone);
        let (_, other) = io::pipe().unwrap();
        guardian.news = other;
        let ended = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            guardian.child.try_wait().unwrap().is_some()
        });
        assert!(ended);
    }
}
