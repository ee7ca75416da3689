//! Packet filter tables in the thread's network namespace, set through the kernel's netfilter socket. Their rules
//! translate addresses of devices on packets that leave an emulator.
//!
//! A table belongs to its socket. The kernel removes the table when the last process that holds the socket has ended,
//! even after a crash.
//!
//! Source: Linux nf_tables.h

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SendFlags, SocketFlags, SocketType};

use crate::netlink::{CREATE, Message, REQUEST, add_attribute, octets, word_about};

/// A table of rules. It is removed by [`Table::remove`], or when its socket is closed.
#[derive(Debug)]
pub(crate) struct Table {
    socket: OwnedFd,
    family: Family,
    name: String,
}

/// Address family of a table's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// IPv4.
    V4 = 2,
    /// IPv6.
    V6 = 10,
}

/// Hook at which the kernel evaluates the rules of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Point {
    /// Prerouting: before the routing decision.
    Arriving,
    /// Forwarding.
    PassedOn,
    /// Postrouting: the last hook before a packet leaves.
    Leaving,
}

impl Point {
    /// Returns the chain's name, type, hook and priority.
    fn chain(self) -> (&'static str, &'static str, u32, i32) {
        match self {
            Point::Arriving => ("arriving", "nat", 0, -100),
            Point::PassedOn => ("passed-on", "filter", 2, 0),
            Point::Leaving => ("leaving", "nat", 4, 100),
        }
    }
}

/// Subsystem number of nf_tables: the high byte of the message type.
const SUBSYSTEM: u16 = 10;
const NEW_TABLE: u16 = 0;
const DELETE_TABLE: u16 = 2;
const NEW_CHAIN: u16 = 3;
const NEW_RULE: u16 = 6;
const BATCH_BEGIN: u16 = 0x10;
const BATCH_END: u16 = 0x11;
const APPEND: u16 = 0x800;

/// Flag of a table that the kernel removes with its socket.
///
/// Source: Linux nf_tables.h (NFT_TABLE_F_OWNER)
const OWNED: u32 = 2;

const NESTED: u16 = 0x8000;
const REGISTER: u32 = 1;
const EQUAL: u32 = 0;
const NOT_EQUAL: u32 = 1;

/// The conditions of a rule and its action.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rule {
    /// Expressions, as attributes of a list.
    expressions: Vec<u8>,
}

impl Table {
    /// Creates a table with these chains.
    ///
    /// # Errors
    /// The kernel has no nf_tables, the thread lacks the right, or the name is taken.
    pub(crate) fn new(family: Family, name: &str, chains: &[(Point, Vec<Rule>)]) -> io::Result<Table> {
        let kind = SocketType::RAW;
        let (flags, protocol) = (SocketFlags::CLOEXEC, Some(rustix::net::netlink::NETFILTER));
        let socket = rustix::net::socket_with(AddressFamily::NETLINK, kind, flags, protocol)?;
        let table = Table { socket, family, name: name.to_owned() };
        match table.make(chains, OWNED) {
            // Kernels before 5.12 do not support the owner flag.
            Err(error) if [Some(libc::EOPNOTSUPP), Some(libc::EINVAL)].contains(&error.raw_os_error()) => {
                table.make(chains, 0)?;
            }
            other => other?,
        }
        Ok(table)
    }

    fn make(&self, chains: &[(Point, Vec<Rule>)], flags: u32) -> io::Result<()> {
        let mut table = self.message(NEW_TABLE, CREATE);
        table.attribute(1, &text(&self.name));
        table.attribute(2, &flags.to_be_bytes());
        let mut all = vec![table];
        for (place, rules) in chains {
            let (name, kind, hook, priority) = place.chain();
            let mut hook_of = vec![];
            add_attribute(&mut hook_of, 1, &hook.to_be_bytes());
            add_attribute(&mut hook_of, 2, &priority.to_be_bytes());
            let mut chain = self.message(NEW_CHAIN, CREATE);
            chain.attribute(1, &text(&self.name));
            chain.attribute(3, &text(name));
            chain.attribute(4 | NESTED, &hook_of);
            chain.attribute(7, &text(kind));
            all.push(chain);
            for rule in rules {
                let mut message = self.message(NEW_RULE, 0x400 | APPEND);
                message.attribute(1, &text(&self.name));
                message.attribute(2, &text(name));
                message.attribute(4 | NESTED, &rule.expressions);
                all.push(message);
            }
        }
        self.carry_out(all)
    }

    /// Removes the table; has no effect if the table is already gone.
    pub(crate) fn remove(&self) {
        let mut message = self.message(DELETE_TABLE, 0);
        message.attribute(1, &text(&self.name));
        // The only possible error is that the table does not exist.
        let _ = self.carry_out(vec![message]);
    }

    fn message(&self, kind: u16, flags: u16) -> Message {
        let mut message = Message::new(SUBSYSTEM << 8 | kind, REQUEST | flags);
        message.bytes(&[self.family as u8, 0, 0, 0]);
        message
    }

    /// Sends the messages as one transaction: the kernel applies all or none.
    fn carry_out(&self, messages: Vec<Message>) -> io::Result<()> {
        let border = |kind: u16| {
            let mut message = Message::new(kind, 1);
            let subsystem = SUBSYSTEM.to_be_bytes();
            message.bytes(&[0, 0, subsystem[0], subsystem[1]]);
            message
        };
        let count = messages.len() as u32;
        let mut bytes = border(BATCH_BEGIN).finish(0);
        for (number, message) in (1..).zip(messages) {
            bytes.extend(message.finish(number));
        }
        bytes.extend(border(BATCH_END).finish(count + 1));
        rustix::net::send(&self.socket, &bytes, SendFlags::empty())?;
        let mut said = Ok(());
        for _ in 0..count {
            let (number, word) = word_about(&self.socket, 0..=count)?;
            // The kernel sends one acknowledgement per message, or a single one for the whole batch (number 0).
            said = said.and(word);
            if number == 0 {
                break;
            }
        }
        said
    }
}

/// Returns the text with a terminating zero byte.
fn text(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

/// Returns an attribute that contains other attributes.
fn nested(kind: u16, inner: &[(u16, &[u8])]) -> Vec<u8> {
    let mut values = vec![];
    for (kind, value) in inner {
        add_attribute(&mut values, *kind, value);
    }
    let mut all = vec![];
    add_attribute(&mut all, kind | NESTED, &values);
    all
}

impl Rule {
    fn expression(mut self, name: &str, attributes: &[u8]) -> Rule {
        let mut inner = vec![];
        add_attribute(&mut inner, 1, &text(name));
        add_attribute(&mut inner, 2 | NESTED, attributes);
        add_attribute(&mut self.expressions, 1 | NESTED, &inner);
        self
    }

    fn numbers(self, name: &str, numbers: &[(u16, u32)]) -> Rule {
        let mut attributes = vec![];
        for (kind, number) in numbers {
            add_attribute(&mut attributes, *kind, &number.to_be_bytes());
        }
        self.expression(name, &attributes)
    }

    fn compared(self, how: u32, value: &[u8]) -> Rule {
        let mut attributes = vec![];
        add_attribute(&mut attributes, 1, &REGISTER.to_be_bytes());
        add_attribute(&mut attributes, 2, &how.to_be_bytes());
        attributes.extend(nested(3, &[(1, value)]));
        self.expression("cmp", &attributes)
    }

    /// Condition: the input interface's name starts with `name`.
    pub(crate) fn in_at(self, name: &str) -> Rule {
        self.numbers("meta", &[(1, REGISTER), (2, 6)]).compared(EQUAL, name.as_bytes())
    }

    /// Condition: the output interface's name starts with `name`.
    pub(crate) fn out_at(self, name: &str) -> Rule {
        self.numbers("meta", &[(1, REGISTER), (2, 7)]).compared(EQUAL, name.as_bytes())
    }

    /// Condition: the output interface's name does not start with `name`.
    pub(crate) fn not_out_at(self, name: &str) -> Rule {
        self.numbers("meta", &[(1, REGISTER), (2, 7)]).compared(NOT_EQUAL, name.as_bytes())
    }

    /// Condition: the transport protocol has this number (6 is TCP, 17 is UDP).
    pub(crate) fn protocol(self, number: u8) -> Rule {
        self.numbers("meta", &[(1, REGISTER), (2, 16)]).compared(EQUAL, &[number])
    }

    /// Condition: the source address is in this network.
    pub(crate) fn from(self, (network, length): (IpAddr, u8)) -> Rule {
        let at = if network.is_ipv4() { 12 } else { 8 };
        self.address(at, network, length)
    }

    /// Condition: the destination address is in this network.
    pub(crate) fn to(self, (network, length): (IpAddr, u8)) -> Rule {
        let at = if network.is_ipv4() { 16 } else { 24 };
        self.address(at, network, length)
    }

    fn address(self, at: u32, network: IpAddr, length: u8) -> Rule {
        let network = octets(network);
        let bytes = network.len() as u32;
        let mask: Vec<u8> = (0..bytes * 8)
            .step_by(8)
            .map(|bit| !(0xff_u8.checked_shr(u32::from(length).saturating_sub(bit)).unwrap_or(0)))
            .collect();
        let rule = self.numbers("payload", &[(1, REGISTER), (2, 1), (3, at), (4, bytes)]);
        let mut attributes = vec![];
        for (kind, number) in [(1, REGISTER), (2, REGISTER), (3, bytes)] {
            add_attribute(&mut attributes, kind, &number.to_be_bytes());
        }
        attributes.extend(nested(4, &[(1, &mask)]));
        attributes.extend(nested(5, &[(1, &vec![0; network.len()])]));
        rule.expression("bitwise", &attributes).compared(EQUAL, &network)
    }

    /// Action: replace the source address by the address of the output interface.
    pub(crate) fn masquerade(self) -> Rule {
        self.expression("masq", &[])
    }

    /// Action: replace the destination address by this one.
    pub(crate) fn goes_to(self, address: IpAddr) -> Rule {
        let mut load = vec![];
        add_attribute(&mut load, 1, &REGISTER.to_be_bytes());
        load.extend(nested(2, &[(1, &octets(address))]));
        let family = if address.is_ipv4() { Family::V4 } else { Family::V6 };
        self.expression("immediate", &load).numbers("nat", &[(1, 1), (2, family as u32), (3, REGISTER)])
    }

    /// Action: redirect to this port of the input interface.
    pub(crate) fn goes_to_port(self, port: u16) -> Rule {
        let mut load = vec![];
        add_attribute(&mut load, 1, &REGISTER.to_be_bytes());
        load.extend(nested(2, &[(1, &port.to_be_bytes())]));
        self.expression("immediate", &load).numbers("redir", &[(1, REGISTER)])
    }

    /// Action: accept the packet.
    pub(crate) fn accept(self) -> Rule {
        self.verdict(1)
    }

    /// Action: drop the packet.
    pub(crate) fn drop(self) -> Rule {
        self.verdict(0)
    }

    fn verdict(self, code: u32) -> Rule {
        let mut load = vec![];
        add_attribute(&mut load, 1, &0_u32.to_be_bytes());
        let mut verdict = vec![];
        add_attribute(&mut verdict, 1, &code.to_be_bytes());
        load.extend(nested(2, &[(2 | NESTED, &verdict)]));
        self.expression("immediate", &load)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_about_a_network_masks_the_rest_of_the_address() {
        let hex = |rule: Rule| rule.expressions.iter().map(|it| format!("{it:02x}")).collect::<String>();
        let v4 = hex(Rule::default().from(("100.66.0.0".parse().unwrap(), 15)));
        assert!(v4.contains("fffe0000") && v4.contains("64420000"), "{v4}");
        let v6 = hex(Rule::default().from(("fd61:6972:7061::".parse().unwrap(), 48)));
        assert!(v6.contains("ffffffffffff00000000000000000000"), "{v6}");
        let one = hex(Rule::default().to(("100.64.0.1".parse().unwrap(), 32)));
        assert!(one.contains("ffffffff") && one.contains("64400001"), "{one}");
    }

    #[test]
    fn what_the_kernel_refuses_is_told() {
        // The name is longer than the kernel permits, or the test has no right to create a table.
        let refused = Table::new(Family::V4, &"x".repeat(300), &[]).unwrap_err();
        assert_ne!(refused.raw_os_error(), None, "{refused}");
    }
}
