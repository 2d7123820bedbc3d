// SPDX-License-Identifier: Apache-2.0
// leak: keeps KIB more each 20 ms, SECONDS long; says how many bytes. leak KIB SECONDS [none]: drops it each 16 MiB
use std::io::Read;

#[inline(never)]
fn leaky(kept: &mut Vec<Vec<u8>>, bytes: usize) {
    let mut v = Vec::with_capacity(bytes);
    v.resize(bytes, 1u8);
    kept.push(v);
}

fn main() {
    let args: Vec<String> = std::env::args().collect();
    let bytes = args[1].parse::<usize>().unwrap() << 10;
    let mut kept = Vec::new();
    for _ in 0..args[2].parse::<usize>().unwrap() * 50 {
        leaky(&mut kept, bytes);
        if args.len() > 3 && kept.len() * bytes > 16 << 20 {
            kept.clear();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    println!("{}", kept.len() * bytes);
    let _ = std::io::stdin().read(&mut [0u8]);
}
