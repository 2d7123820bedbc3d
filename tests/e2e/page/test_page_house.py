# SPDX-License-Identifier: Apache-2.0
"""The twelve questions of the owner of a home server (tests/homelab/house.py), at the prompt and through the page: the right answer is in the first output."""
import os
import re
import sys
import time

import pytest
from browser import Page, page  # noqa: F401
from conftest import ROOT
from serving import Serve

sys.path.insert(0, os.path.join(ROOT, "tests", "homelab"))
import house  # noqa: E402

QUESTIONS = [q[0].replace(",", "").replace(" ", "-") for q in house.questions(0)]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    end = int(time.time()) // house.BUCKET * house.BUCKET
    return house.make(str(tmp_path_factory.mktemp("house") / "store"), end), end


@pytest.fixture(scope="module")
def serve(made):
    s = Serve(made[0])
    yield s
    s.close()


def lacks(text, patterns):
    return [p for p in patterns if not re.search(p, text)]


@pytest.mark.page
@pytest.mark.parametrize("n", range(12), ids=QUESTIONS)
def test_at_the_prompt(n, sonde, made):
    what, words, _, patterns = house.questions(made[1])[n]
    done = sonde(*words, store=made[0])
    assert done.returncode in (0, 1) and not lacks(done.stdout, patterns), f"{what}: sonde {' '.join(words)} lacks {lacks(done.stdout, patterns)}:\n{done.stdout}{done.stderr}"


@pytest.mark.page
@pytest.mark.parametrize("n", range(12), ids=QUESTIONS)
def test_through_the_page(n, page, serve, made):  # noqa: F811
    what, _, query, patterns = house.questions(made[1])[n]
    page.do("open", url="about:blank", wait=False)
    page.do("open", url=serve.url + query, wait=False)
    page.until("return document.documentElement.dataset.state === 'ready'", timeout=60)
    if what == "what does sonde cost":  # asked after everything that is visible at first
        page.until("return document.getElementById('about-brief').textContent.includes('cost')", timeout=60)
    page.settle()
    text = page.js("for (const d of document.querySelectorAll('#about')) d.open = true; return document.body.innerText")
    assert not lacks(text, patterns), f"{what}: {query} lacks {lacks(text, patterns)}:\n{text}"


@pytest.mark.page
def test_who_grows_comes_first(sonde, made, page, serve):  # noqa: F811
    """Not the page cache of the backup."""
    page.do("open", url=serve.url + "?last=2h&tab=memory", wait=False)
    page.until("return document.documentElement.dataset.state === 'ready'", timeout=60)
    assert page.js("return document.querySelector('#table tbody td').textContent") == "feeds"
