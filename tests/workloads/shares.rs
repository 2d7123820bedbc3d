// SPDX-License-Identifier: Apache-2.0
//! shares-rust SECONDS: as shares.c, in Rust. Each chain has a constant of its own: equal functions would be merged.
use std::time::{Duration, Instant};

#[repr(C)]
struct Timespec {
    sec: i64,
    nsec: i64,
}
extern "C" {
    fn clock_gettime(clock: i32, t: *mut Timespec) -> i32;
}
fn clock_ns(clock: i32) -> u64 {
    let mut t = Timespec { sec: 0, nsec: 0 };
    unsafe { clock_gettime(clock, &mut t) };
    t.sec as u64 * 1_000_000_000 + t.nsec as u64
}

/// std's own is not in Debian 12's Rust yet.
#[inline(always)]
fn black_box(x: u64) -> u64 {
    unsafe { std::ptr::read_volatile(&x) }
}

#[inline(always)]
fn turns(n: u64, mut x: u64, odd: u64) -> u64 {
    for _ in 0..n {
        x = black_box(x.wrapping_mul(6364136223846793005).wrapping_add(odd));
    }
    x
}

macro_rules! chain {
    ($name:ident, $odd:expr) => {
        mod $name {
            #[inline(never)]
            pub fn leaf(n: u64) -> u64 {
                super::black_box(super::turns(n, n, $odd))
            }
            #[inline(never)]
            pub fn middle(n: u64) -> u64 {
                super::black_box(leaf(n)).wrapping_add(super::black_box($odd))
            }
            #[inline(never)]
            pub fn outer(n: u64) -> u64 {
                super::black_box(middle(n)).wrapping_add(super::black_box($odd))
            }
        }
    };
}
chain!(parse, 1);
chain!(render, 3);
chain!(compress, 5);
chain!(flush, 7);

const NAMES: [&str; 4] = ["parse", "render", "compress", "flush"];
const WEIGHTS: [f64; 4] = [0.50, 0.30, 0.15, 0.05];

#[inline(never)]
fn work_loop(seconds: f64, spent: &mut [u64; 4]) {
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let mut seed: u64 = 88172645463325252;
    while Instant::now() < end {
        let mut i = 0;
        for k in 1..4 {
            if (spent[k] as f64) / WEIGHTS[k] < (spent[i] as f64) / WEIGHTS[i] {
                i = k;
            }
        }
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        let n = 1_000_000 + seed % 2_000_000;
        let began = clock_ns(3);
        black_box(match i {
            0 => parse::outer(n),
            1 => render::outer(n),
            2 => compress::outer(n),
            _ => flush::outer(n),
        });
        spent[i] += clock_ns(3) - began;
    }
}

fn main() {
    let seconds: f64 = std::env::args().nth(1).map(|s| s.parse().unwrap()).unwrap_or(5.0);
    let mut spent = [0u64; 4];
    work_loop(seconds, &mut spent);
    let chains: Vec<String> = (0..4)
        .map(|i| {
            let n = NAMES[i];
            format!("\"shares::main;shares::work_loop;shares::{n}::outer;shares::{n}::middle;shares::{n}::leaf\": {}", spent[i])
        })
        .collect();
    println!("{{\"pid\": {}, \"cpu_ns\": {}, \"chains\": {{{}}}}}", std::process::id(), clock_ns(2), chains.join(", "));
}
