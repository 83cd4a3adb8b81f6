//! Servers behind `shim.c`: the test decides what the kernel says to them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};

use crate::support::clock::TOO_LONG;
use crate::support::server::Server;
use crate::support::site::Site;

/// A site whose servers run behind a shim.
#[derive(Debug)]
pub(super) struct Shimmed {
    pub(super) site: Site,
    pub(super) shim: Shim,
}

/// The switches of a shim.
#[derive(Debug)]
pub(crate) struct Shim {
    flags: PathBuf,
    kept: PathBuf,
    data: PathBuf,
}

/// How many seconds the wall clock of a site's next servers is ahead, or behind if it begins with a minus: they come back after so long.
pub(crate) const AHEAD: &str = "HAPAX_SHIM_AHEAD";

/// What the kernel can be told to do; `shim.c` says what each means.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// Writes to paths with this part find no space.
    Full(&'static str),
    /// The file system says that it has no free space.
    Low,
    /// Syncs of paths with this part fail.
    SyncFails(&'static str),
    /// Syncs of paths with this part do nothing and say that they did.
    SyncIgnored(&'static str),
    /// Syncs of paths with this part wait until they are let go.
    SyncHeld(&'static str),
    /// Syncs of paths with this part are done, and wait before they say so.
    SyncHeldWhenDone(&'static str),
}

/// SQLite's log: what an ack waits for.
pub(crate) const LOG: &str = "hapax.db-wal";
/// The key index.
pub(super) const INDEX: &str = "hapax.db.keys/";
/// All of the store's files.
pub(super) const ALL: &str = "";

impl Fault {
    fn flag(self) -> (&'static str, &'static str) {
        match self {
            Fault::Full(part) => ("full", part),
            Fault::Low => ("low", ALL),
            Fault::SyncFails(part) => ("eio", part),
            Fault::SyncIgnored(part) => ("deaf", part),
            Fault::SyncHeld(part) => ("hold", part),
            Fault::SyncHeldWhenDone(part) => ("late", part),
        }
    }
}

impl Shimmed {
    /// A site on SQLite.
    pub(super) fn sqlite() -> Shimmed {
        let mut site = Site::sqlite();
        let shim = Shim::before(&mut site);
        Shimmed { site, shim }
    }
}

impl Shim {
    /// A shim, compiled for the servers of this site.
    pub(crate) fn before(site: &mut Site) -> Shim {
        // The kernel names open files by their real path.
        let folder = site.path().canonicalize().expect("a folder");
        let library = folder.join("shim.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/faults/shim.c");
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-O2", "-o"])
            .args([&library, &source])
            .status();
        assert!(
            compiled.expect("a C compiler, `cc`").success(),
            "the shim does not compile"
        );
        let (flags, kept) = (folder.join("flags"), folder.join("kept"));
        std::fs::create_dir(&flags).expect("a folder");
        std::fs::create_dir(&kept).expect("a folder");
        let text = |path: &Path| path.to_str().expect("text").to_owned();
        site.set("LD_PRELOAD", text(&library));
        site.set("HAPAX_SHIM_WATCH", text(&folder.join("data")));
        site.set("HAPAX_SHIM_KEPT", text(&kept));
        site.set("HAPAX_SHIM_FLAGS", text(&flags));
        Shim {
            flags,
            kept,
            data: site.data(),
        }
    }

    /// The site's next servers run without it: it makes every sync slow.
    pub(crate) fn stand_aside(&self, site: &mut Site) {
        site.set("LD_PRELOAD", "");
    }

    /// The site's next servers run behind it again.
    pub(crate) fn stand_before(&self, site: &mut Site) {
        let library = self.flags.with_file_name("shim.so");
        site.set("LD_PRELOAD", library.to_str().expect("text"));
    }

    /// From now on the kernel fails in this way.
    pub(crate) fn begin(&self, fault: Fault) {
        let (name, part) = fault.flag();
        self.raise(name, part);
    }

    /// The wall clock of running servers jumps by so many seconds.
    pub(crate) fn jump(&self, seconds: i64) {
        self.raise("clock", &seconds.to_string());
    }

    fn raise(&self, name: &str, text: &str) {
        // Written elsewhere first: half a flag would be for all paths.
        let fresh = self.flags.join("fresh");
        std::fs::write(&fresh, text).expect("written");
        std::fs::rename(fresh, self.flags.join(name)).expect("renamed");
    }

    /// From now on it no longer does.
    pub(crate) fn end(&self, fault: Fault) {
        std::fs::remove_file(self.flags.join(fault.flag().0)).expect("it had begun");
    }

    /// From now on it no longer does, if it did.
    pub(crate) fn end_if_begun(&self, fault: Fault) {
        if self.flags.join(fault.flag().0).exists() {
            self.end(fault);
        }
    }

    /// How often paths with this part were synced.
    pub(crate) fn syncs(&self, part: &str) -> usize {
        let syncs = std::fs::read_to_string(self.flags.join("syncs")).unwrap_or_default();
        syncs.lines().filter(|path| path.contains(part)).count()
    }

    /// Waits until a sync is held; see [`Fault::SyncHeld`].
    pub(crate) fn wait_for_held_sync(&self) {
        meet(self.flags.join("held"), File::options().read(true))
            .recv_timeout(TOO_LONG)
            .expect("a sync began");
    }

    /// Lets the held sync go on.
    pub(crate) fn let_sync_go(&self) {
        meet(self.flags.join("go"), File::options().write(true))
            .recv_timeout(TOO_LONG)
            .expect("a sync was held");
    }

    /// Sends a request whose caller hangs up while it is being committed.
    pub(crate) fn hang_up_at_sync(&self, server: &Server, request: &[u8]) {
        self.begin(Fault::SyncHeld(LOG));
        let mut caller = server.connect();
        caller.send(request).expect("sent");
        self.wait_for_held_sync();
        caller.finish();
        // The server has noticed, and closes without a word. Only now does the commit go through.
        assert!(caller.rest().is_empty(), "nobody was answered");
        self.end(Fault::SyncHeld(LOG));
        self.let_sync_go();
    }

    /// Puts in place of the store's files what a power cut would have left of them. The server must have ended.
    pub(crate) fn cut_power(&self) {
        let data = &self.data;
        std::fs::remove_dir_all(data).expect("the store's files");
        let copied = Command::new("cp")
            .args(["-R", "--sparse=always"])
            .args([&self.kept, data])
            .status();
        assert!(
            copied.expect("`cp`").success(),
            "the kept files cannot be copied"
        );
    }
}

/// Opens one end of a pipe on a thread of its own: that waits for the other end, and the caller wants to give up at some time.
fn meet(pipe: PathBuf, how: &std::fs::OpenOptions) -> Receiver<()> {
    let (met, meeting) = channel();
    let how = how.clone();
    std::thread::spawn(move || {
        if how.open(pipe).is_ok() {
            let _ = met.send(());
        }
    });
    meeting
}
