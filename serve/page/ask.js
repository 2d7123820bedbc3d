// SPDX-License-Identifier: Apache-2.0
// ask: requests to /api/v1/VERB. Names are those of the command line; undefined and '' are omitted.

const $ = (id) => document.getElementById(id);

function askQuery(params) {
	const q = new URLSearchParams();
	for (const [name, value] of Object.entries(params))
		for (const v of Array.isArray(value) ? value : [value])
			if (v !== undefined && v !== null && v !== '' && v !== false)
				q.append(name, v === true ? '1' : v);
	return q.toString();
}

// {ok: true, data, text} or {ok: false, status, error, fix}. Never throws; an aborted request never resolves.
async function ask(verb, params, signal) {
	try {
		const r = await fetch(`/api/v1/${verb}?${askQuery(params)}`, {signal, credentials: 'same-origin'});
		const text = await r.text();
		let data = null;
		try {
			data = JSON.parse(text);
		} catch (e) { /* lists of sql are text */ }
		if (r.ok)
			return {ok: true, data, text};
		return {ok: false, status: r.status, error: data && data.error || `the server answered ${r.status}`, fix: data && data.fix || ''};
	} catch (e) {
		if (e.name === 'AbortError')
			return new Promise(() => {});
		return {ok: false, status: 0, error: 'sonde serve does not answer: it has stopped, or the network is down', fix: 'sonde serve'};
	}
}

// Calls on() whenever something was written to the store: the server reports it, and does so only while a client listens. Returns a function that stops it.
function askLive(on) {
	const source = new EventSource('/api/v1/live');
	source.addEventListener('changed', on);
	source.addEventListener('open', on); // also after a reconnect, for changes meanwhile
	return () => source.close();
}
