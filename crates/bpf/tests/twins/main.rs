//! Tests of the integer twins of the schemes. They are one program, because each program takes its time to build.

mod common;

mod bbr;
mod loops;
mod morc;
mod pbe;
mod pbe_receiver;
mod twins;
