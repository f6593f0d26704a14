//! A directory of memories with the disk behind its back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use agent_memory::{Memory, MemoryDir, MemoryName, MemoryType};

/// A directory of memories, and a folder beside it that nothing may touch.
pub(crate) struct Place {
    /// Held for its drop, which removes all of it.
    base: tempfile::TempDir,
    pub(crate) memories: MemoryDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        let memories = MemoryDir::open(&base.path().join("memory")).unwrap();
        std::fs::create_dir(base.path().join("outside")).unwrap();
        Self { base, memories }
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.memories.path().join(file)
    }

    pub(crate) fn outside(&self, file: &str) -> PathBuf {
        self.base.path().join("outside").join(file)
    }

    pub(crate) fn put(&self, file: &str, content: impl AsRef<[u8]>) {
        write(&self.path(file), content.as_ref());
    }

    pub(crate) fn text(&self, file: &str) -> String {
        read(&self.path(file))
    }

    /// A memory written by hand, changed at this second.
    pub(crate) fn aged(&self, name: &str, description: &str, second: u64) {
        self.put(&format!("{name}.md"), memory(name, description).render());
        let file = std::fs::OpenOptions::new().write(true).open(self.path(&format!("{name}.md"))).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(second)).unwrap();
    }

    /// Every name in the directory, the lock aside.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = std::fs::read_dir(self.memories.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != ".lock")
            .collect();
        names.sort();
        names
    }

    /// All that lies outside, with the names at the top.
    pub(crate) fn surroundings(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        for dir in [self.base.path().to_owned(), self.base.path().join("outside")] {
            for entry in std::fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                let text = if path.is_file() { read(&path) } else { String::new() };
                found.insert(path, text);
            }
        }
        found
    }
}

pub(crate) fn name(name: &str) -> MemoryName {
    MemoryName::new(name).unwrap()
}

pub(crate) fn memory(title: &str, description: &str) -> Memory {
    Memory::new(name(title), MemoryType::Project, description, "The body.").unwrap()
}

#[expect(clippy::disallowed_methods, reason = "a test looks at the disk behind the crate's back")]
pub(crate) fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

#[expect(clippy::disallowed_methods, reason = "a test changes the disk behind the crate's back")]
pub(crate) fn write(path: &Path, content: &[u8]) {
    std::fs::write(path, content).unwrap();
}

#[expect(clippy::disallowed_methods, reason = "a test changes the disk behind the crate's back")]
pub(crate) fn remove(path: &Path) {
    std::fs::remove_file(path).unwrap();
}
