// SPDX-License-Identifier: Apache-2.0
// A relay of the kinds of relays.py, by Node's own HTTP: node relay.js UPSTREAM_PORT [own]. Prints its port.
const http = require('http');

const up = Number(process.argv[2]);
const kept = new http.Agent({keepAlive: true, maxSockets: 4}), none = new http.Agent({keepAlive: false});
const pause = (ms) => new Promise((done) => setTimeout(done, ms));

function ask(word, agent, host) {
	return new Promise((done, fail) => {
		const q = http.request({host, family: 4, port: up, path: `/${word}`, agent, headers: {'X-Request-Id': word}}, (a) => {
			a.resume();
			a.on('end', () => done(a.statusCode));
		});
		q.on('error', fail);
		q.end();
	});
}

const KINDS = {
	now: (word) => ask(word, none, '127.0.0.1'),
	pool: (word) => ask(word, kept, '127.0.0.1'),
	name: (word) => ask(word, none, 'localhost'),
	wait: async (word) => {
		await pause(1 + (word.charCodeAt(0) % 7));
		return ask(word, none, '127.0.0.1');
	},
	twice: async (word) => {
		await ask(word, none, '127.0.0.1');
		await new Promise((done) => setImmediate(done));
		return ask(word, none, '127.0.0.1');
	},
};

const server = http.createServer(async (q, a) => {
	const [, kind, word] = q.url.split('/');
	try {
		await KINDS[kind](word);
		a.end('ok');
	} catch (e) {
		a.writeHead(502);
		a.end(String(e));
	}
});
server.listen(0, '127.0.0.1', () => console.log(server.address().port));
if (process.argv[3])
	setInterval(() => ask('b'.repeat(32), none, '127.0.0.1').catch(() => 0), 23);
process.stdin.on('data', () => 0).on('end', () => process.exit(0));
