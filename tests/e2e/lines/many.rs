// SPDX-License-Identifier: Apache-2.0
// many: iterators, closures and collections, inlined many deep. It is only looked at, not run.
use std::collections::{BTreeMap, HashMap};

fn work(n: u64) -> u64 {
    let mut counts = HashMap::new();
    let mut names = BTreeMap::new();
    for i in 0..n {
        *counts.entry(i % 17).or_insert(0u64) += i;
        names.insert(i.wrapping_mul(2654435761) % 1000, format!("{:x}", i));
    }
    let mut values: Vec<u64> = counts.values().cloned().collect();
    values.sort();
    values.iter().map(|v| v * 2).filter(|v| v % 3 == 0).sum::<u64>()
        + names.values().map(|s| s.len() as u64).sum::<u64>()
}

fn main() {
    println!("{}", work(std::env::args().count() as u64 * 10000));
}
