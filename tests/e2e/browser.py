# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium from Debian, driven by Debian's selenium: for the tests of pages."""
import json
import os
import shutil
import tempfile
import time

import pytest

FLAGS = ("--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
         "--disable-component-update --disable-sync --disable-dev-shm-usage").split()


class Page:
    """One browser with one page open."""

    def __init__(self, width=1280, height=900):
        webdriver = pytest.importorskip("selenium.webdriver", reason="missing: python3-selenium")
        from selenium.webdriver.chrome.service import Service
        for program in ("chromium", "chromedriver"):
            if not shutil.which(program):
                pytest.skip(f"missing: {program}")
        self.profile = tempfile.mkdtemp(prefix="sonde-test-browser-")
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for flag in [*FLAGS, f"--user-data-dir={self.profile}", f"--window-size={width},{height}"]:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        self.size(width, height)

    def size(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def media(self, **features):
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": k.replace("_", "-"), "value": v} for k, v in features.items()]})

    def open(self, path):
        """From disk, until the page says that it is ready."""
        self.driver.get("about:blank")
        self.console(), self.requests()
        self.driver.get("file://" + os.path.abspath(path))
        self.until("return window.__sonde && window.__sonde.ready !== undefined")
        assert self.js("return window.__sonde.ready"), self.js("return window.__sonde.error")
        return self

    def open_without_scripts(self, path):
        """The document as a browser that runs no script has it: its HTML, and a screenshot in base64."""
        cdp = self.driver.execute_cdp_cmd
        cdp("Emulation.setScriptExecutionDisabled", {"value": True})
        try:
            cdp("Page.navigate", {"url": "file://" + os.path.abspath(path)})
            time.sleep(0.5)
            root = cdp("DOM.getDocument", {"depth": 0})["root"]["nodeId"]
            return (cdp("DOM.getOuterHTML", {"nodeId": root})["outerHTML"],
                    cdp("Page.captureScreenshot", {"format": "png"})["data"])
        finally:
            cdp("Emulation.setScriptExecutionDisabled", {"value": False})

    def js(self, script, *args):
        return self.driver.execute_script(script, *args)

    def until(self, script, timeout=10):
        end = time.monotonic() + timeout
        while not self.js(script):
            assert time.monotonic() < end, f"not within {timeout} s: {script}"
            time.sleep(0.02)

    def view(self):
        return self.js("return window.__sonde.view()")

    def settled(self):
        """The view once a zoom has come to rest."""
        last = None
        for _ in range(100):
            now = self.view()
            if now == last:
                return now
            last = now
            time.sleep(0.1)
        raise AssertionError("the view does not come to rest")

    def find(self, name):
        return self.js("return window.__sonde.find(arguments[0])", name)

    def keys(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains
        ActionChains(self.driver).send_keys(*keys).perform()

    def mouse(self, x, y, click=False):
        """Move the real pointer to a place on the canvas."""
        box = self.js("const b = document.getElementById('canvas').getBoundingClientRect(); return [b.left, b.top]")
        at = {"x": box[0] + x, "y": box[1] + y}
        self.driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": "mouseMoved", **at})
        if click:
            for kind in ("mousePressed", "mouseReleased"):
                self.driver.execute_cdp_cmd("Input.dispatchMouseEvent",
                                            {"type": kind, **at, "button": "left", "clickCount": 1})

    def text(self, css):
        return self.js("return document.querySelector(arguments[0]).textContent", css)

    def console(self):
        return [e for e in self.driver.get_log("browser")]

    def requests(self):
        sent = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                sent.append(message["params"]["request"]["url"])
        return sent

    def close(self):
        self.driver.quit()
        shutil.rmtree(self.profile, ignore_errors=True)
