// SPDX-License-Identifier: Apache-2.0
// nodeshares.js: a program that knows its own stack: three chains of calls share its CPU time 60, 30 and 10, through functions, a recursion,
// callbacks of a builtin, and callbacks that C++ calls (JSON.parse).
//
//     nodeshares.js SECONDS [worker]        (seconds of CPU time)
//
// Before it begins it says its chains as JSON, one line: {"chains": {NAME: [[function, file, line], ...]}, "spins": [first, last line]},
// innermost first (by Error.prepareStackTrace, frames with a file); waits for a line of input; then says how long it was in each:
// {"cpu": {NAME: seconds}}, and ends with its input. `worker`: in a worker thread. Closures and arrays of each call keep the collector busy.
'use strict';
const fs = require('fs');
const { Worker, isMainThread, workerData } = require('worker_threads');

let noting = null;
let kept = 0;

function spin(n) {
  let x = 1;
  for (let i = 0; i < n; i++)
    x = (x * 31 + (x >> 7)) | 0;
  return x;
}
const FIRST = 17, LAST = 22;

function note() {
  const old = Error.prepareStackTrace;
  Error.stackTraceLimit = Infinity;
  Error.prepareStackTrace = (e, sites) => sites.filter(s => s.getFileName())
    .map(s => [s.getFunctionName() || '(anonymous)', s.getFileName(), s.getLineNumber()]);
  noting = new Error().stack;
  Error.prepareStackTrace = old;
  return 0;
}

function work(n) {
  return noting ? note() : spin(n);
}

function deep(n, left) {
  return left > 0 ? deep(n, left - 1) :
    work(n);
}

function alpha(n) {
  return deep(n, 12);
}

class Steps {
  run(n) {
    return work(n);
  }
}

function beta(n) {
  const step = new Steps();
  let sum = 0;
  [1].forEach(function each(x) {
    const held = new Array(16).fill(x);
    sum += step.run(n) + held.length;
  });
  return sum;
}

function gamma(n) {
  const held = [];
  return JSON.parse('[1]', function revive(key, value) {
    held.push(key);
    return key === '0' ? work(n) : value;
  })[0];
}

function one(which, n) {
  return which === 0 ? alpha(n) : which === 1 ? beta(n) : gamma(n);
}

function cpu() {
  return Number(fs.readFileSync('/proc/thread-self/schedstat', 'utf8').split(' ')[0]) / 1e9;
}

const NAMES = ['alpha', 'beta', 'gamma'], TIMES = [6, 3, 1];
const did = [0, 0, 0];

function turn(n, times) {
  for (let which = 0; which < 3; which++) {
    const before = cpu();
    for (let i = 0; i < TIMES[which] * times; i++)
      kept = (kept + one(which, n)) | 0;
    did[which] += cpu() - before;
  }
}

function main(seconds) {
  const chains = {};
  for (let which = 0; which < 3; which++) {
    noting = [];
    one(which, 0);
    chains[NAMES[which]] = [['spin', __filename, LAST], ...noting.slice(1)];
    noting = null;
  }
  fs.writeSync(1, JSON.stringify({ chains, spins: [FIRST, LAST] }) + '\n');
  fs.readSync(0, Buffer.alloc(1));
  const until = cpu() + seconds;
  while (cpu() < until)
    turn(20000, 20);
  fs.writeSync(1, JSON.stringify({ cpu: Object.fromEntries(NAMES.map((name, i) => [name, did[i]])) }) + '\n');
  fs.readSync(0, Buffer.alloc(1));
}

const seconds = isMainThread ? Number(process.argv[2]) : workerData;
if (isMainThread && process.argv.includes('worker'))
  new Worker(__filename, { workerData: seconds });
else
  main(seconds);
