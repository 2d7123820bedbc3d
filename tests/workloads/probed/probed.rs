// SPDX-License-Identifier: Apache-2.0

// A function of Rust that a probe finds by its address in a stripped file. A line on standard input starts it.
use std::io::{stdin, BufRead};

#[no_mangle]
#[inline(never)]
pub fn triple(n: i64) -> i64 {
    std::hint::black_box(n) * 3 + (n & 1)
}

fn main() {
    let mut line = String::new();
    println!("ready");
    stdin().lock().read_line(&mut line).unwrap();
    let sum: i64 = (0..30).map(triple).sum();
    println!("{{\"sum\":{sum}}}");
    stdin().lock().read_line(&mut line).unwrap();
}
