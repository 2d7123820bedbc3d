// SPDX-License-Identifier: Apache-2.0
// nodestand.js: threads that stand in known JavaScript, each in a kind of code of its own, and say their frames themselves (by
// Error.prepareStackTrace: function, file, line; innermost first). One line of JSON when all stand: {kind: frames}; they end with standard input.
// The argument `warm`: each kind's code has run often before, so that it is compiled as well as this V8 does.
'use strict';
const fs = require('fs');
const path = require('path');
const vm = require('vm');
const { Worker, isMainThread, parentPort, workerData } = require('worker_threads');

const warm = process.argv.includes('warm');
const calm = [() => 1, n => n, n => n + 1, () => 0, (n) => n * 2];
let calls = 0;
let tell = null; // set: the next call of this kind's code stands

function frames() {
  const old = Error.prepareStackTrace;
  Error.stackTraceLimit = Infinity;
  Error.prepareStackTrace = (e, sites) => sites.filter(s => !s.isAsync()).map(s => [s.getFunctionName(), s.getFileName() || null, s.getLineNumber()]);
  const told = new Error().stack;
  Error.prepareStackTrace = old;
  return told;
}

function stand() {
  tell(frames()); const rest = fs.readSync(0, Buffer.alloc(1));
  return rest;
}

// What each kind calls at its inside: calm until it is to stand. Not inlined, because it leads to many.
function inside(n) {
  return calm[calls++ % calm.length](n);
}

class Shop {
  #open = 0;
  static count = 0;
  constructor(n) {
    this.n = n;
    this.first =
      inside(n);
  }
  static make(n) {
    return new Shop(n);
  }
  #hidden(n) {
    return inside(n) + this.#open;
  }
  get price() {
    return this.#hidden(
      this.n);
  }
  set price(v) {
    this.n = inside(v);
  }
  [Symbol.toPrimitive]() {
    return inside(1);
  }
  *each() {
    yield 1;
    yield inside(2);
  }
  static { this.start = () =>
    inside(3); }
}
calls = 0;

const manyNames = new Function('inside', [...Array(90).keys()].map(i => `let v${i} = ${i};`).join('\n') + `
return function holds(n) {
  return [${[...Array(90).keys()].map(i => `() => v${i}`)}].length + inside(n);
}`)(inside);

const wasm = new WebAssembly.Instance(new WebAssembly.Module(Uint8Array.from([
  0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 4, 1, 0x60, 0, 0, 2, 7, 1, 1, 0x6d, 1, 0x66, 0, 0, 3, 2, 1, 0, 7, 5, 1, 1, 0x67, 0, 1, 0xa, 6, 1, 4, 0,
  0x10, 0, 0xb])), { m: { f: function fromWasm() { inside(1); } } });

const other = path.join(process.cwd(), 'Маркет.js');
const odd = (() => {
  if (isMainThread)
    fs.writeFileSync(other, '// «€» 🐍\r\n\rmodule.exports = {\u2028 función: n => {\n    return (function größe(n) {\n' +
      '      return module.exports.inside(\n        n); })(n);\n  } };\n');
  return require(other);
})();
odd.inside = inside;

const script = new vm.Script('(function inScript(f) {\n  return f(\n    1); })', { filename: 'of-vm.js', lineOffset: 40 }).runInThisContext();

function descend(n) {
  return n ? descend(n - 1) + 1
    : inside(n);
}

const kinds = {
  plain: n => inside(n),
  recursion: () => descend(300),
  construct: n => new Shop(n),
  statics: n => Shop.make(n).first,
  getter: n => Object.create(Shop.prototype, {}) && standing_shop.price + n,
  setter: n => { standing_shop.price = n; return 0; },
  primitive: () => +standing_shop,
  generator: () => [...standing_shop.each()].length,
  starts: () => Shop.start(),
  map: n => [n].map(x => inside(x))[0],
  sort: () => [3, 1, 2].sort((a, b) => inside(a - b) && a - b).length,
  reduce: n => [1, 2].reduce((a, b) =>
    a + inside(b), n),
  replace: () => 'abc'.replace(/b/, b => inside(b)).length,
  parse: () => JSON.parse('[1]', (k, v) => inside(v)),
  proxy: () => new Proxy({}, { get: (t, k) => inside(k.length) }).abc,
  apply: n => Reflect.apply(inside, null, [n]),
  template: n => `${{ toString: () => String(inside(n)) }}`,
  evals: () => eval('function inEval(n) {\n  return inside(n)\n}\ninEval(1)'),
  func: n => manyNames(n),
  wasm: () => wasm.exports.g(),
  odd: n => odd.función(n),
  script: () => script(inside),
  catches: n => { try { return inside(n); } catch (e) { return 0; } finally { calls += 0; } },
  spread: (...n) => Math.max(...n, inside(...n)),
  loop: n => { let t = 0; for (let i = 0; i < 3; i++) t += i ? 0 : inside(n); return t; },
};
const later = {
  awaits: async n => { await null; return inside(n); },
  promise: () => Promise.resolve(1).then(v => inside(v)),
  timer: () => new Promise(done => setTimeout(() => done(inside(1)), 1)),
  asyncs: async () => { for await (const x of (async function* () { yield inside(1); })()) return x; },
};
const standing_shop = new Shop(1);

async function work(kind) {
  const run = kinds[kind] || later[kind];
  if (warm)
    for (let i = 0; i < (kinds[kind] ? 20000 : 3000) && !(kind === 'recursion' && i > 300); i++)
      kinds[kind] ? run(i) : kind === 'timer' ? 0 : await run(i);
  for (let i = 0; i < calm.length; i++)
    calm[i] = stand;
  await run(2);
}

if (!isMainThread) {
  tell = told => parentPort.postMessage(told);
  work(workerData);
} else {
  const all = {};
  const names = [...Object.keys(kinds), ...Object.keys(later)].filter(k => k !== 'plain');
  tell = told => {
    all.plain = told;
    fs.writeSync(1, JSON.stringify(all) + '\n');
  };
  for (const kind of names)
    new Worker(__filename, { workerData: kind, argv: process.argv.slice(2) }).on('message', told => {
      all[kind] = told;
      if (Object.keys(all).length === names.length)
        work('plain');
    }).on('error', e => { fs.writeSync(2, `${kind}: ${e.stack}\n`); process.exit(1); });
}
