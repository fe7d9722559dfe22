//! Room: a page in headless Chromium: where everything was rendered.
//! Not here: what is right (`checks`).

use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use serde_json::Value;

use crate::support::Folder;

/// Light or dark, as the reader's system has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scheme {
    Light,
    Dark,
}

/// A number that no other part of this test has.
pub(crate) fn next() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Renders a page on a window of this width and tells where everything is.
pub(crate) fn probe(page: &str, width: u32, scheme: Scheme) -> Value {
    let folder = Folder::new(&format!("picture-{}", next()));
    // The page forbids all scripts; in the copy that is measured one may run.
    let policy = page.lines().find(|line| line.contains("Content-Security-Policy")).expect("a policy");
    let script = format!("<script>{}</script></body>", include_str!("probe.js"));
    let copy = page.replace(policy, "").replace("</body>", &script);
    // No window is narrower than 500 pixels; a frame is.
    let copy = copy.replace('&', "&amp;").replace('"', "&quot;");
    let frame = format!(
        "<body style=\"margin:0\"><iframe style=\"border:0\" width=\"{width}\" height=\"900\" srcdoc=\"{copy}\">"
    );
    std::fs::write(folder.path("page.html"), frame).expect("the folder is ours");
    let scheme = if scheme == Scheme::Dark { 0 } else { 1 };
    let mut command = Command::new("chromium");
    // Tests may be root, and the sandbox is not for root.
    command.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--dump-dom"]);
    command.arg(format!("--user-data-dir={}", folder.path("profile")));
    command.arg(format!("--blink-settings=preferredColorScheme={scheme}"));
    command.arg(format!("--window-size={},900", width.max(500)));
    command.arg(format!("file://{}", folder.path("page.html")));
    let output = command.stdin(Stdio::null()).output();
    let output = output.expect("chromium is needed here: tools/install-deps test");
    let dom = String::from_utf8_lossy(&output.stdout);
    let json = dom.split_once("<pre id=\"probe\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let (json, _) =
        json.unwrap_or_else(|| panic!("no probe in it: {}", String::from_utf8_lossy(&output.stderr)));
    let json =
        json.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", "\u{a0}").replace("&amp;", "&");
    serde_json::from_str(&json).expect("the probe writes JSON")
}
