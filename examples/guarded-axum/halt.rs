//! Named points at which a test may stop the service, to kill it there.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `HALT_AT=charged:3`: the third request that comes to `charged` goes no further, and neither does any that comes there
/// after it.
static HALT_AT: LazyLock<Option<(String, usize)>> = LazyLock::new(|| {
    let text = std::env::var("HALT_AT").ok()?;
    let (name, passage) = text.split_once(':')?;
    Some((name.to_owned(), passage.parse().ok()?))
});

static PASSAGES: AtomicUsize = AtomicUsize::new(0);

/// A request has come to this point.
pub(crate) async fn step(name: &str) {
    let Some((halt_at, passage)) = &*HALT_AT else {
        return;
    };
    if halt_at != name {
        return;
    }
    let passages = PASSAGES.fetch_add(1, Ordering::SeqCst) + 1;
    if passages == *passage {
        println!("halted at {name}");
    }
    if passages >= *passage {
        std::future::pending::<()>().await;
    }
}
