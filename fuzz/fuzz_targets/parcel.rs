//! Fuzzes the reader of parcels, which arrive from processes that nobody vouches for: each input is
//! a program of reads and the bytes they read. Nothing may panic, and nothing may read past the end.
#![no_main]

use ipc::binder::Reader;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (Vec<u8>, &[u8])| {
    let (program, bytes) = input;
    let mut reader = Reader::of_bytes(bytes);
    for step in program {
        match step % 12 {
            0 => drop(reader.read_i32()),
            1 => drop(reader.read_i64()),
            2 => drop(reader.read_byte_slice()),
            3 => drop(reader.read_str()),
            4 => drop(reader.read_nullable_str()),
            5 => drop(reader.read_str_vec()),
            6 => drop(reader.read_string8()),
            7 => drop(reader.read_header("a.IB")),
            8 => drop(reader.read_status()),
            9 => drop(reader.read_nullable_binder()),
            10 => drop(reader.read_fd()),
            _ => drop(reader.read_bool()),
        }
        assert!(reader.position() <= bytes.len());
    }
});
