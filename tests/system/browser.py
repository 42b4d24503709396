"""A server of ours and a headless Chromium in front of it, for tests and for the pictures in the documents."""
import atexit
import json
import subprocess
import time

from harness import CGAM
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys


class Server:
    """cgam serve with these options, on a free port."""

    def __init__(self, *options):
        self.process = subprocess.Popen([CGAM, "serve", "--port", "0", *map(str, options)], stdout=subprocess.PIPE, text=True)
        atexit.register(self.process.kill)
        self.address = self.process.stdout.readline().strip()
        self.base = self.address.split("#")[0]

    def close(self):
        self.process.terminate()
        return self.process.wait(30)


class Browser:
    def __init__(self, server, width=1280, height=900, dark=False):
        options = webdriver.ChromeOptions()
        for word in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--force-prefers-reduced-motion",
                     "--disable-background-networking", "--no-first-run", "--disable-component-update", "--disable-default-apps", "--disable-sync"):
            options.add_argument(word)
        options.binary_location = "/usr/bin/chromium"
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        atexit.register(self.driver.quit)
        self.server = server
        self.look(width, height, dark)
        self.driver.get(server.address)

    def look(self, width, height, dark, motion="reduce"):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
                                                                               {"name": "prefers-reduced-motion", "value": motion}]})

    def wait(self, ready, words, seconds=30):
        """The first true value of ready(); the elements it looks for may not be there yet."""
        end, last = time.monotonic() + seconds, None
        while time.monotonic() < end:
            try:
                value = ready()
                if value:
                    return value
            except Exception as error:  # noqa: BLE001
                last = error
            time.sleep(0.05)
        raise AssertionError(f"{words}: waited {seconds} s at {self.driver.current_url}; {str(last or '').split(chr(10))[0]}; {self.main()[-500:]}; {self.errors()}")

    def main(self):
        return self.driver.execute_script("return document.querySelector('main').innerText")

    def view(self, name, **values):
        """Opens a view by its link."""
        query = "&".join(f"{key}={value}" for key, value in values.items())
        self.driver.get(self.server.base + "#")
        self.driver.get(f"{self.server.base}#{name}{'?' + query if query else ''}")
        self.wait(lambda: self.all("nav a[aria-current]")[0].text.lower() == name, f"the view {name}")

    def all(self, css):
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def one(self, css):
        """The first such element, once there is one."""
        return self.wait(lambda: self.all(css), css)[0]

    def text(self, css):
        return self.one(css).get_attribute("textContent")

    def shown(self, other_than=None):
        """What the answer on show was asked with, once there is another."""
        def get():
            stage = self.one(".stage[data-shown]")
            now = stage.get_attribute("data-shown")
            return now if now != other_than and not stage.get_attribute("aria-busy") else None
        return self.wait(get, "an answer")

    def press(self, words):
        button = self.wait(lambda: next((b for b in self.all("button") if b.text == words), None), f"the button {words}")
        # Once it stays where it is: what is still being drawn above may move it away from under the pointer.
        self.driver.execute_async_script("""const [button, done] = arguments, place = () => button.getBoundingClientRect().top;
            button.scrollIntoView({block: 'center'});
            let last = place(), still = 0;
            requestAnimationFrame(function look() {
              still = place() === last ? still + 1 : 0;
              last = place();
              if (still > 4) done(); else requestAnimationFrame(look);
            })""", button)
        button.click()

    def keys(self, css, *keys):
        element = self.one(css)
        self.driver.execute_script("arguments[0].focus()", element)
        element.send_keys(*[getattr(Keys, key, key) for key in keys])

    def copied(self, words):
        self.press(words)
        return self.wait(lambda: self.text("pre.copied"), "something copied")

    def errors(self):
        """What the console had to say against us since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")]

    def requests(self):
        """Addresses that were asked for since the last call."""
        events = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [e["params"]["request"]["url"] for e in events if e["method"] == "Network.requestWillBeSent"]

    def picture(self, path, height=None):
        if height:
            width = self.driver.execute_script("return innerWidth")
            self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
            time.sleep(0.3)
        self.driver.save_screenshot(path)

    def close(self):
        self.driver.quit()
