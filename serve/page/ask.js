// SPDX-License-Identifier: Apache-2.0
// ask: requests to /api/v1/VERB. Names are those of the command line; undefined and '' are omitted. Few run at a time, in the order in
// which they were sent: what is seen first is asked first, and has the CPUs of a busy host for itself. What the server refuses for load
// is asked again.

const $ = (id) => document.getElementById(id);

const ASK_AT_ONCE = 2, ASK_AGAIN = 8, ASK_BUSY = 503;
const askState = {running: 0, queue: [], open: new Set(), watch: () => {}};

function askQuery(params) {
	const q = new URLSearchParams();
	for (const [name, value] of Object.entries(params))
		for (const v of Array.isArray(value) ? value : [value])
			if (v !== undefined && v !== null && v !== '' && v !== false)
				q.append(name, v === true ? '1' : v);
	return q.toString();
}

function askNext() {
	while (askState.running < ASK_AT_ONCE && askState.queue.length) {
		askState.running++;
		askState.queue.shift()();
	}
}

// Resolves when it is this request's turn; never if it is aborted before.
function askTurn(signal) {
	return new Promise((go) => {
		askState.queue.push(go);
		if (signal)
			signal.addEventListener('abort', () => {
				const i = askState.queue.indexOf(go);
				if (i >= 0)
					askState.queue.splice(i, 1);
			});
		askNext();
	});
}

// Seconds to wait before the same request is sent again; 0: it is not.
function askWait(r, times) {
	const said = Number(r.headers.get('Retry-After'));
	return r.status === ASK_BUSY && said > 0 && times < ASK_AGAIN ? Math.min(said * 2 ** times, 15) : 0;
}

async function askOnce(verb, params, signal) {
	const r = await fetch(`/api/v1/${verb}?${askQuery(params)}`, {signal, credentials: 'same-origin'});
	return {r, text: await r.text()};
}

// {ok: true, data, text} or {ok: false, status, error, fix}. Never throws; an aborted request never resolves.
async function ask(verb, params, signal) {
	const entry = {verb: verb || 'verbs', since: performance.now(), busy: 0};
	const leave = () => {
		askState.open.delete(entry);
		askState.watch();
	};
	askState.open.add(entry);
	askState.watch();
	if (signal)
		signal.addEventListener('abort', leave);
	for (let times = 0; ; times++) {
		await askTurn(signal);
		let got = null, failed = null;
		try {
			got = await askOnce(verb, params, signal);
		} catch (e) {
			failed = e;
		}
		askState.running--;
		askNext();
		if (failed && failed.name === 'AbortError')
			return new Promise(() => {});
		const wait = got ? askWait(got.r, times) : 0;
		if (!wait) {
			leave();
			return failed ? {ok: false, status: 0, error: 'sonde serve does not answer: it has stopped, or the network is down', fix: 'sonde serve'} : askAnswer(got);
		}
		entry.busy = times + 1;
		askState.watch();
		await new Promise((done) => setTimeout(done, wait * 1000));
		if (signal && signal.aborted)
			return new Promise(() => {});
	}
}

function askAnswer({r, text}) {
	let data = null;
	try {
		data = JSON.parse(text);
	} catch (e) { /* lists of sql are text */ }
	if (r.ok)
		return {ok: true, data, text};
	return {ok: false, status: r.status, error: data && data.error || `the server answered ${r.status}`, fix: data && data.fix || ''};
}

// Calls on() whenever something was written to the store: the server reports it, and does so only while a client listens. Returns a function that stops it.
function askLive(on) {
	const source = new EventSource('/api/v1/live');
	source.addEventListener('changed', on);
	source.addEventListener('open', on); // also after a reconnect, for changes meanwhile
	return () => source.close();
}

// Shows in `line` which requests run, for how long, and whether the server is too busy.
function askShow(line) {
	let timer = 0;
	const draw = () => {
		const open = [...askState.open], now = performance.now(), oldest = Math.min(...open.map((x) => x.since)), long = Math.floor((now - oldest) / 1000), busy = Math.max(0, ...open.map((x) => x.busy));
		clearTimeout(timer);
		line.dataset.asking = open.length;
		line.textContent = !open.length ? '' : `Asking: ${[...new Set(open.map((x) => `sonde ${x.verb}`))].join(', ')}${long >= 2 ? `, for ${long} s` : ''}${busy ? `; the server is busy and is asked again (${busy})` : ''}`;
		if (open.length)
			timer = setTimeout(draw, 1000);
	};
	askState.watch = draw;
	draw();
}
