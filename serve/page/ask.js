// SPDX-License-Identifier: Apache-2.0
// ask: questions to /api/v1/VERB. The names are the command line's; undefined and '' are left out.

const $ = (id) => document.getElementById(id);

function askQuery(params) {
	const q = new URLSearchParams();
	for (const [name, value] of Object.entries(params))
		for (const v of Array.isArray(value) ? value : [value])
			if (v !== undefined && v !== null && v !== '' && v !== false)
				q.append(name, v === true ? '1' : v);
	return q.toString();
}

// {ok: true, data, text} or {ok: false, status, error, fix}. Never throws, but for one that was given up: it is never answered.
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

// Whenever something was written into the store: told by the server, which tells nothing while nobody listens. on(); returns what ends it.
function askLive(on) {
	const source = new EventSource('/api/v1/live');
	source.addEventListener('changed', on);
	source.addEventListener('open', on); // also after a break: what came meanwhile
	return () => source.close();
}
