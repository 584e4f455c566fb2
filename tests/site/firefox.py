"""Drive a Firefox without a package for it: its own protocol, Marionette, is JSON over a socket.

A message is ``length:[kind, number, command, parameters]``; the answer to it is
``length:[1, number, error, result]``.
"""

import json
import shutil
import socket
import subprocess
import time

NAMES = ["firefox-esr", "firefox"]
PREFERENCES = {
    "marionette.port": 0,  # any; Firefox writes it into its profile
    "app.update.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "toolkit.telemetry.reportingpolicy.firstRun": False,
    "security.sandbox.content.level": 0,  # as root in a container
}


def find_firefox():
    """The path of a Firefox, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Firefox:
    """One window, with a new profile in this folder. Use it in a ``with``."""

    def __init__(self, program, profile):
        lines = [f"user_pref({json.dumps(k)}, {json.dumps(v)});" for k, v in PREFERENCES.items()]
        (profile / "user.js").write_text("\n".join(lines))
        command = [
            program,
            "--marionette",
            "-remote-allow-system-access",
            "--headless",
            "--no-remote",
            "--profile",
            str(profile),
        ]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.process, self.profile, self.number = subprocess.Popen(command, **quiet), profile, 0

    def __enter__(self):
        try:
            self.socket = socket.create_connection(("127.0.0.1", self.port()), timeout=120)
            self.receive()  # who it is
            self.ask("WebDriver:NewSession", {})
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *args):
        self.process.terminate()
        self.process.wait(30)

    def port(self, seconds=60):
        """Where it listens, as soon as it does."""
        file = self.profile / "MarionetteActivePort"
        for _ in range(10 * seconds):
            if self.process.poll() is not None:
                raise OSError(f"Firefox ended with {self.process.returncode}")
            if file.is_file() and file.read_text().strip():
                return int(file.read_text())
            time.sleep(0.1)
        raise OSError(f"Firefox does not listen after {seconds} s")

    def receive(self):
        length = b""
        while not length.endswith(b":"):
            length += self.socket.recv(1)
        left, parts = int(length[:-1]), []
        while left:
            parts.append(self.socket.recv(left))
            left -= len(parts[-1])
        return json.loads(b"".join(parts))

    def ask(self, command, parameters):
        self.number += 1
        text = json.dumps([0, self.number, command, parameters]).encode()
        self.socket.sendall(str(len(text)).encode() + b":" + text)
        _, _, error, result = self.receive()
        if error:
            raise RuntimeError(f"{command}: {error['message']}")
        return result

    def open(self, address):
        self.ask("WebDriver:Navigate", {"url": address})

    def run(self, script):
        """What ``return`` gives in a script that runs in the page."""
        return self.ask("WebDriver:ExecuteScript", {"script": script, "args": []})["value"]

    def errors(self, address):
        """The scripts' errors so far on pages of this address."""
        self.ask("Marionette:SetContext", {"value": "chrome"})
        found = self.run(
            "return Services.console.getMessageArray()"
            ".filter(one => one instanceof Ci.nsIScriptError && !(one.flags & one.warningFlag))"
            ".map(one => `${one.errorMessage} (${one.sourceName}:${one.lineNumber})`)"
        )
        self.ask("Marionette:SetContext", {"value": "content"})
        return [one for one in found if address in one]
