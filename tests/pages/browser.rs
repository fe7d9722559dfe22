//! A page in headless Chromium: where everything was rendered, and what is on paper.
//! Not here: what is right (each page's `checks`).

use std::path::Path;
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

/// Renders a page on a window of this width and tells what the probe, a script, finds there.
pub(crate) fn probe(page: &str, probe: &str, width: u32, scheme: Scheme) -> Value {
    let folder = Folder::new(&format!("picture-{}", next()));
    // The page forbids all scripts; in the copy that is measured one may run.
    let policy = page.lines().find(|line| line.contains("Content-Security-Policy")).expect("a policy");
    let script = format!("<script>{probe}</script></body>");
    let copy = page.replace(policy, "").replace("</body>", &script);
    // No window is narrower than 500 pixels; a frame is.
    let copy = copy.replace('&', "&amp;").replace('"', "&quot;");
    let frame = format!(
        "<body style=\"margin:0\"><iframe style=\"border:0\" width=\"{width}\" height=\"900\" srcdoc=\"{copy}\">"
    );
    folder.write("page.html", frame);
    let scheme = if scheme == Scheme::Dark { 0 } else { 1 };
    let mut command = chromium(&folder);
    command.arg("--dump-dom").arg(format!("--blink-settings=preferredColorScheme={scheme}"));
    command.arg(format!("--window-size={},900", width.max(500)));
    command.arg(format!("file://{}", folder.path("page.html")));
    let output = command.output().expect("chromium is needed here: tools/install-deps test");
    let dom = String::from_utf8_lossy(&output.stdout);
    let json = dom.split_once("<pre id=\"probe\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let (json, _) =
        json.unwrap_or_else(|| panic!("no probe in it: {}", String::from_utf8_lossy(&output.stderr)));
    let json =
        json.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", "\u{a0}").replace("&amp;", "&");
    serde_json::from_str(&json).expect("the probe writes JSON")
}

/// The words of a page that is printed.
pub(crate) fn paper(page: &str) -> String {
    let folder = Folder::new(&format!("paper-{}", next()));
    let (source, sheet) = (folder.path("page.html"), folder.path("page.pdf"));
    std::fs::write(&source, page).expect("the folder is ours");
    let mut command = chromium(&folder);
    command.arg("--no-pdf-header-footer").arg(format!("--print-to-pdf={sheet}"));
    let printed = command.arg(format!("file://{source}")).output();
    let printed = printed.expect("chromium is needed here: tools/install-deps test");
    assert!(Path::new(&sheet).exists(), "{}", String::from_utf8_lossy(&printed.stderr));
    let read = Command::new("pdftotext").args(["-layout", &sheet, "-"]).output();
    let read = read.expect("pdftotext is needed here: tools/install-deps test");
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stderr));
    String::from_utf8(read.stdout).expect("UTF-8")
}

fn chromium(folder: &Folder) -> Command {
    let mut command = Command::new("chromium");
    // Tests may be root, and the sandbox is not for root.
    command.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]);
    command.arg(format!("--user-data-dir={}", folder.path("profile"))).stdin(Stdio::null());
    command
}
