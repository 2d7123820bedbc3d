// SPDX-License-Identifier: Apache-2.0
//! OpenSSL as cargo builds it from its own sources (feature "vendored"), inside of the program.
//!
//! vendored CA PORT N     waits for a line with a path, then asks for it N times on one connection;
//!                        prints how many were answered. CA is a file in PEM
use std::io::{Read, Write};
use std::net::TcpStream;

use openssl::ssl::{SslConnector, SslMethod};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let a: Vec<String> = std::env::args().collect();
    let mut path = String::new();
    std::io::stdin().read_line(&mut path)?;
    let mut builder = SslConnector::builder(SslMethod::tls())?;
    builder.set_ca_file(&a[1])?;
    let tcp = TcpStream::connect(("127.0.0.1", a[2].parse::<u16>()?))?;
    let mut tls = builder.build().connect("localhost", tcp)?;
    let mut good = 0;
    for _ in 0..a[3].parse::<usize>()? {
        write!(tls, "GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", path.trim())?;
        let (mut got, mut some) = (Vec::new(), [0u8; 65536]);
        while !got.ends_with(b"hello") {
            let n = tls.read(&mut some)?;
            if n == 0 {
                return Err("the server ended the connection".into());
            }
            got.extend_from_slice(&some[..n]);
        }
        good += 1;
    }
    println!("{good}");
    Ok(())
}
