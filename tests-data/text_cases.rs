//! Files of text cases: blocks that are separated by empty lines. The tests of several crates include this file.
//!
//! A case is a block whose last lines are what is expected. With `UPDATE_EXPECTED=1` these lines are written into the
//! files, so that the difference can be inspected.

use std::path::{Path, PathBuf};

/// The cases of a folder, and what was found.
pub(crate) struct TextCases {
    files: Vec<(PathBuf, Vec<String>)>,
    count: usize,
    failures: Vec<String>,
}

/// A block of a file.
pub(crate) struct Block {
    file: usize,
    index: usize,
    pub(crate) text: String,
}

impl TextCases {
    /// Reads all files of a folder of `tests-data`.
    pub(crate) fn of(folder: &str) -> TextCases {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests-data").join(folder);
        let mut paths: Vec<PathBuf> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        let read = |path: PathBuf| {
            let text = std::fs::read_to_string(&path).unwrap();
            (path, text.trim_end().split("\n\n").map(str::to_owned).collect())
        };
        TextCases { files: paths.into_iter().map(read).collect(), count: 0, failures: Vec::new() }
    }

    /// The blocks of each file.
    pub(crate) fn files(&self) -> Vec<Vec<Block>> {
        let blocks = |(file, (_, texts)): (usize, &(PathBuf, Vec<String>))| {
            let block = |(index, text): (usize, &String)| Block { file, index, text: text.clone() };
            texts.iter().enumerate().map(block).collect()
        };
        self.files.iter().enumerate().map(blocks).collect()
    }

    /// Compares a case with the text that it should have.
    pub(crate) fn check(&mut self, block: &Block, found: &str) {
        let found = found.trim_end();
        self.count += 1;
        let (path, blocks) = &mut self.files[block.file];
        if found != block.text.trim_end() {
            self.failures.push(format!("{}\n{}\nfound:\n{found}\n", path.display(), block.text));
        }
        found.clone_into(&mut blocks[block.index]);
    }

    /// Fails if a case does not have its text, or if there are fewer cases than `count_min`: then files were not found.
    /// Writes the files instead if that is requested.
    pub(crate) fn finish(self, count_min: usize) {
        let TextCases { files, count, failures } = self;
        assert!(count >= count_min, "only {count} cases");
        if std::env::var_os("UPDATE_EXPECTED").is_some() {
            for (path, blocks) in files {
                std::fs::write(path, blocks.join("\n\n") + "\n").unwrap();
            }
            return;
        }
        assert!(failures.is_empty(), "{} of {count} fail\n{}", failures.len(), failures.join("\n"));
    }
}

#[allow(dead_code)] // not all crates have cases with comments
impl Block {
    /// The comments at its start.
    pub(crate) fn notes(&self) -> impl Iterator<Item = &str> {
        self.text.lines().take_while(|line| line.starts_with('#'))
    }

    /// The other lines.
    pub(crate) fn lines(&self) -> Vec<&str> {
        self.text.lines().filter(|line| !line.starts_with('#')).collect()
    }

    /// Its text with other lines after the first one.
    pub(crate) fn with_lines(&self, first: &str, found: &[String]) -> String {
        let lines = self.notes().chain([first]).chain(found.iter().map(String::as_str));
        lines.collect::<Vec<_>>().join("\n")
    }
}
