//! NR numbers of TS 38.214.
