//! The log's file is made longer ahead of the log.
//!
//! A sync of bytes that lie within a file writes those bytes; where they made the file longer, it also writes what the file
//! system notes of it, and takes up to twice as long. So whenever the log has reached the end of its file, zeros are put behind it, and the
//! commits that follow only fill them in. To SQLite they are no frames: a frame's page is never number zero, and its checksum goes on from
//! the frame before.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

use super::open::Paths;

/// So much longer at a time. The next sync writes it: short enough that nobody notices, long enough for several commits.
const AHEAD: usize = 256 * 1024;

/// The log's file, beside SQLite's own connections. It holds no lock that closing it could lose: SQLite locks other files.
pub(super) struct LogFile {
    /// None where it could not be opened or written: then SQLite makes it longer by itself.
    file: Option<File>,
    /// How long it was at the last look.
    length: u64,
    zeros: Vec<u8>,
}

impl LogFile {
    /// The file as it is. SQLite has made it.
    pub(super) fn open(paths: &Paths) -> LogFile {
        let file = OpenOptions::new().write(true).open(&paths.log).ok();
        let length = file.as_ref().map_or(0, length);
        LogFile {
            file,
            length,
            zeros: vec![0; AHEAD],
        }
    }

    /// Makes it longer if the log has reached its end. Only while the write lock is held: nobody else may be writing there.
    pub(super) fn keep_ahead(&mut self) {
        let Some(file) = &self.file else { return };
        let before = self.length;
        self.length = length(file);
        if self.length <= before {
            return;
        }
        match file.write_all_at(&self.zeros, self.length) {
            Ok(()) => self.length += AHEAD as u64,
            // Want of space, most likely. Whoever has to write finds out, and says so.
            Err(_) => self.file = None,
        }
    }
}

fn length(file: &File) -> u64 {
    file.metadata().map_or(0, |file| file.len())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rusqlite::Connection;

    use super::*;
    use crate::sqlite::open;

    /// A database with one table, whose log is kept ahead.
    struct Scene {
        paths: Paths,
        db: Connection,
        log: LogFile,
        rows: i64,
    }

    impl Scene {
        fn new(folder: &Path) -> Scene {
            let paths = Paths::beside(&folder.join("a.db"));
            let db = open::writer(&paths).expect("it opens");
            db.execute_batch("CREATE TABLE t (x BLOB)").expect("made");
            let log = LogFile::open(&paths);
            Scene {
                paths,
                db,
                log,
                rows: 0,
            }
        }

        /// One commit of some pages. Has the file become longer?
        fn commit(&mut self) -> bool {
            let before = self.length();
            self.db.execute_batch("BEGIN IMMEDIATE").expect("begun");
            self.log.keep_ahead();
            let insert = "INSERT INTO t VALUES (zeroblob(9000))";
            self.db.execute_batch(insert).expect("written");
            self.db.execute_batch("COMMIT").expect("committed");
            self.rows += 1;
            self.length() != before
        }

        fn commit_many(&mut self, commits: usize) -> usize {
            (0..commits).filter(|_| self.commit()).count()
        }

        fn length(&self) -> u64 {
            std::fs::metadata(&self.paths.log).expect("a log").len()
        }

        /// Opens what a killed process would leave of it, and checks that all of it is there.
        #[track_caller]
        fn check_what_a_crash_leaves(&self) {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let left = Paths::beside(&folder.path().join("a.db"));
            std::fs::copy(&self.paths.database, &left.database).expect("copied");
            std::fs::copy(&self.paths.log, &left.log).expect("copied");
            let db = open::writer(&left).expect("it opens");
            let rows: i64 = db
                .query_row("SELECT count(*) FROM t", [], |row| row.get(0))
                .expect("counted");
            assert_eq!(rows, self.rows);
            let sound: String = db
                .query_row("PRAGMA integrity_check", [], |row| row.get(0))
                .expect("checked");
            assert_eq!(sound, "ok");
        }
    }

    #[test]
    fn most_commits_leave_the_files_length_alone_and_none_is_lost_by_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut scene = Scene::new(folder.path());
        for _ in 0..200 {
            scene.commit();
            if scene.rows % 20 == 0 {
                scene.check_what_a_crash_leaves();
            }
        }
        let longer = scene.commit_many(200);
        // Each writes about 16 KiB, so sixteen of them fit into what is put ahead; the one that reaches its end, and the next.
        assert!((2..50).contains(&longer), "{longer} of 200 made it longer");
        scene.check_what_a_crash_leaves();
    }

    /// A log that begins anew has room already; one that was emptied gets some again.
    #[test]
    fn it_follows_the_log_when_that_is_begun_anew_or_emptied() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut scene = Scene::new(folder.path());
        scene.commit_many(100);
        let checkpoint = |scene: &Scene, how: &str| {
            let how = format!("PRAGMA wal_checkpoint({how})");
            let busy: i64 = scene
                .db
                .query_row(&how, [], |row| row.get(0))
                .expect("copied");
            assert_eq!(busy, 0);
        };
        checkpoint(&scene, "RESTART");
        assert_eq!(scene.commit_many(50), 0, "there is room");
        scene.check_what_a_crash_leaves();
        checkpoint(&scene, "TRUNCATE");
        assert_eq!(scene.length(), 0);
        scene.commit_many(2);
        assert!(scene.length() > AHEAD as u64);
        assert!(scene.commit_many(100) < 30);
        scene.check_what_a_crash_leaves();
    }

    /// Without a file to write there is nothing to do: SQLite makes it longer by itself.
    #[test]
    fn without_the_file_commits_go_on() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut scene = Scene::new(folder.path());
        scene.log = LogFile::open(&Paths::beside(&folder.path().join("elsewhere.db")));
        assert_eq!(scene.commit_many(20), 20);
        scene.check_what_a_crash_leaves();
    }
}
