//! What the portal looks like now. A changed config changes it at once.

use std::sync::Arc;

use arc_swap::ArcSwap;

use crate::config::PortalConfig;
use crate::dashboard::portal::theme::Theme;

/// The portal's theme.
#[derive(Debug)]
pub struct Look(ArcSwap<Theme>);

impl Look {
    /// As the config has it.
    pub fn new(config: &PortalConfig) -> Look {
        Look(ArcSwap::from_pointee(Theme::new(config)))
    }

    /// As it is now.
    pub fn now(&self) -> Arc<Theme> {
        self.0.load_full()
    }

    /// As a changed config has it.
    pub fn reload(&self, config: &PortalConfig) {
        self.0.store(Arc::new(Theme::new(config)));
    }
}
