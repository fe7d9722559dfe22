//! The options of a page with pictures of a trace.
//! Not here: drawing it (`conduct::tracing`).

use std::path::PathBuf;

use clap::Args;
use conduct::tracing::Drawing;

#[derive(Clone, Debug, Args)]
pub(super) struct DrawArgs {
    /// Also write a page that shows the slow calls on a time line: one file without scripts or network access
    #[arg(long, value_name = "OUT")]
    html: Option<PathBuf>,

    /// Largest number of calls with a picture, slowest first
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=1000), requires = "html")]
    pictures: u32,
}

impl DrawArgs {
    /// The page, if one is asked for.
    pub(super) fn drawing(&self) -> Option<Drawing> {
        let html = self.html.clone()?;
        Some(Drawing { html, pictures: self.pictures as usize })
    }
}
