// SPDX-License-Identifier: Apache-2.0
// marks: bookmarks: views stored in this browser, by address. A range that moves with the clock is stored with its current times.

const MARKS_KEY = 'sonde-marks', MARKS_MOST = 100;

// The stored text may be anything: unknown entries are ignored.
function marksRead() {
	try {
		const list = JSON.parse(localStorage.getItem(MARKS_KEY) || '[]');
		return Array.isArray(list) ? list.filter((m) => m && typeof m.name === 'string' && typeof m.at === 'string' && m.at[0] === '?').slice(0, MARKS_MOST) : [];
	} catch (e) {
		return [];
	}
}

// on: {here(): {name, at}, go(at), say(text)}
function marksInit(on) {
	const list = $('marks');
	function write(marks) {
		try {
			localStorage.setItem(MARKS_KEY, JSON.stringify(marks));
		} catch (e) {
			on.say('This browser does not let the page store anything.');
		}
		draw();
	}
	function draw() {
		const marks = marksRead();
		list.replaceChildren(new Option(marks.length ? `Bookmarks (${marks.length})` : 'Bookmarks', ''), new Option('Add this view', '+'),
			...marks.map((m) => new Option(drawShorten(m.name, 70), m.at)), ...(marks.length ? [new Option('Remove this view', '-')] : []));
	}
	function toggle(keep) {
		const here = on.here(), marks = marksRead(), others = marks.filter((m) => m.at !== here.at), had = others.length < marks.length;
		if (keep === false || (keep === undefined && had)) {
			on.say(had ? 'Bookmark removed.' : 'This view has no bookmark.');
			write(others);
		} else {
			on.say('Bookmark saved in this browser.');
			write([here, ...others].slice(0, MARKS_MOST));
		}
	}
	list.addEventListener('change', () => {
		const at = list.value;
		list.value = '';
		if (at === '+' || at === '-')
			toggle(at === '+');
		else if (at)
			on.go(at);
	});
	draw();
	return {toggle: () => toggle(), all: marksRead};
}
