//! A network interface's address, and putting it up.
//! Not here: which interfaces a guest has (`vm::guest`).
//! Facts: `netdevice(7)`, `linux/sockios.h`.

use std::ffi::c_char;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd;

use crate::errno::{EINVAL, check};

// libc's are of different types for glibc and musl.
const SIOCSIFADDR: u16 = 0x8916;
const SIOCSIFFLAGS: u16 = 0x8914;

/// Gives an interface an address, with the network of its class, and puts it up.
///
/// # Errors
/// `ENODEV`: no such interface. `EPERM`: needs `CAP_NET_ADMIN`. `EINVAL`: no interface has such a name.
pub fn put_up_with(name: &str, address: Ipv4Addr) -> io::Result<()> {
    let mut bytes = [0 as c_char; 14];
    // Behind the port, which an interface has not.
    for (place, byte) in bytes[2..].iter_mut().zip(address.octets()) {
        *place = byte as c_char;
    }
    let family = libc::AF_INET as libc::sa_family_t;
    let ifru_addr = libc::sockaddr { sa_family: family, sa_data: bytes };
    ask(SIOCSIFADDR, name, libc::__c_anonymous_ifr_ifru { ifru_addr })?;
    put_up(name)
}

/// Puts an interface up; the loopback interface gets its address by that.
///
/// # Errors
/// Those of [`put_up_with`].
pub fn put_up(name: &str) -> io::Result<()> {
    let ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
    ask(SIOCSIFFLAGS, name, libc::__c_anonymous_ifr_ifru { ifru_flags })
}

fn ask(request: u16, name: &str, value: libc::__c_anonymous_ifr_ifru) -> io::Result<()> {
    let mut ifr_name = [0 as c_char; libc::IFNAMSIZ];
    if name.len() >= ifr_name.len() {
        return Err(io::Error::from_raw_os_error(EINVAL));
    }
    for (place, byte) in ifr_name.iter_mut().zip(name.bytes()) {
        *place = byte as c_char;
    }
    let asked = libc::ifreq { ifr_name, ifr_ifru: value };
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: both requests read an `ifreq`, whose name ends in a NUL; it outlives the call, which keeps nothing of it.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), request.into(), &raw const asked) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there_is_an_error() {
        let address = Ipv4Addr::new(10, 0, 2, 15);
        let missing = put_up_with("nowhere7", address).expect_err("no such interface").raw_os_error();
        assert!(matches!(missing, Some(libc::ENODEV | libc::EPERM)), "{missing:?}");
        let long = put_up("a-name-without-end").expect_err("no such name").raw_os_error();
        assert_eq!(long, Some(EINVAL));
    }
}
