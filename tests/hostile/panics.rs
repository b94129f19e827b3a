// SPDX-License-Identifier: LGPL-2.1-or-later
// panics.rs - threads that allocate, and panics that unwind through callers of malloc

use std::panic;
use std::thread;

const BLOCK_BYTES: usize = 23181;
const BLOCKS: usize = 50;
const THREADS: usize = 3;

#[inline(never)]
fn take_in_rust(fill: u8) -> Vec<u8> {
    let mut block = Vec::with_capacity(BLOCK_BYTES);
    block.push(fill);
    block
}

#[inline(never)]
fn fail(block: &[u8]) -> usize {
    if block[0] == 7 {
        panic!("seven");
    }
    block.len()
}

fn main() {
    panic::set_hook(Box::new(|_| ()));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| thread::spawn(|| (0..BLOCKS).map(|i| take_in_rust(i as u8).len()).sum::<usize>()))
        .collect();
    let sum: usize = threads.into_iter().map(|thread| thread.join().unwrap()).sum();
    let caught = (0..BLOCKS)
        .filter(|_| panic::catch_unwind(|| fail(&take_in_rust(7))).is_err())
        .count();
    println!("{} {}", sum, caught);
}
