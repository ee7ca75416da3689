//! The wall clock's driver: ports of modems, and the daemon that publishes what they say.
