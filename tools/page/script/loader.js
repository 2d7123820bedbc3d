// SPDX-License-Identifier: Apache-2.0
// loader: unpacks the page's script and runs it. The policy names the hash of both: the script runs only if it is
// byte for byte what the Makefile packed.

'use strict';

// The base64 text of an element, decompressed.
async function sondeUnpack(id, format) {
	if (typeof DecompressionStream === 'undefined')
		throw new Error('this browser is too old (it lacks DecompressionStream; Chrome 80, Firefox 113, Safari 16.4 have it)');
	const raw = atob(document.getElementById(id).textContent.trim()), packed = new Uint8Array(raw.length);
	for (let i = 0; i < raw.length; i++)
		packed[i] = raw.charCodeAt(i);
	const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream(format));
	return new Uint8Array(await new Response(stream).arrayBuffer());
}

function sondeFailed(e) {
	const note = document.getElementById('note');
	note.textContent = 'The graph cannot be shown: ' + e.message + '. The table below still works.';
	note.hidden = false;
	document.documentElement.dataset.state = 'failed';
}

sondeUnpack('program', 'gzip').then((bytes) => {
	const script = document.createElement('script');
	script.textContent = new TextDecoder().decode(bytes);
	document.head.append(script);
}).catch(sondeFailed);
