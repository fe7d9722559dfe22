//! Room: sys.
