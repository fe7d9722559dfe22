//! Sends the files that the command left to the host.
//! Not here: writing them there (crate `intake`).

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::outbox::Outbox;
use crate::frame::{Event, Frame, LONGEST};

/// Sends every regular file below `root`, sorted by name. Links, sockets and names that are not UTF-8 are skipped.
pub(super) fn send_all(root: &Path, outbox: &Outbox) -> io::Result<()> {
    send_folder(root, root, outbox)
}

fn send_folder(root: &Path, folder: &Path, outbox: &Outbox) -> io::Result<()> {
    let mut entries = std::fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let kind = entry.file_type()?;
        let path = entry.path();
        if kind.is_dir() {
            send_folder(root, &path, outbox)?;
        } else if let (true, Some(name)) =
            (kind.is_file(), path.strip_prefix(root).ok().and_then(Path::to_str))
        {
            send_file(&path, name, outbox)?;
        }
    }
    Ok(())
}

fn send_file(path: &Path, name: &str, outbox: &Outbox) -> io::Result<()> {
    let mut file = File::open(path)?;
    let mode = file.metadata()?.permissions().mode() & 0o777;
    outbox.send(&Frame::Event(Event::File { path: name.to_owned(), mode }))?;
    let mut buffer = vec![0; LONGEST];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            len => outbox.send(&Frame::Content(buffer[..len].to_vec()))?,
        }
    }
}
