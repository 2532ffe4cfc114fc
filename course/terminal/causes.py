"""Say why an installer failed, from what it printed.

Like `course/__main__.py`, this module uses only the standard library and the syntax of Python 3.7.
"""

import os
import platform
import re

PROXIES = "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "PIP_PROXY"
UNREACHABLE = (
    r"name resolution|getaddrinfo|new connection|connection (refused|reset)|dns error|unreachable|timed out"
    r"|connect error|error sending request|proxyerror|remote end closed"
)
CAUSES = {  # {pattern in an installer's output: its meaning}; the first that matches is shown
    r"network (is|was) disabled": "uv is set to use no network.\n"
    "Unset UV_OFFLINE, or make a wheelhouse on another computer.",
    r"no space left|disk quota|not enough space": "the disk is full.",
    UNREACHABLE: "the package index cannot be reached.\n",
    r"certificate": "the certificate of the package index was not accepted."
    " Is there a proxy or a virus scanner in between?",
    r"do not match the hashes|hash mismatch": "a downloaded file does not match its hash in the lock. Try again.",
}
# How uv and pip name a package that they cannot find. pip says the same of one that lacks a build.
LACKING = (
    r"(?P<package>[\w.-]+==\S+) has no (\w+ )?wheels",
    r"python version .* does not satisfy .* and (?P<package>[\w.-]+==\S+) depends on",
    r"because (?P<package>[\w.-]+) was not found in",
    r"no version of (?P<package>[\w.-]+==\S+)",
    r"no matching distribution found for (?P<package>[\w.-]+(==\S+)?)",
)


def machine(version):
    """Return the platform and Python version that a package must match, in words."""
    return f"{platform.system()} {platform.machine()}, Python {version}"


def cause(output, status):
    """Return why the installer ended with this status."""
    for pattern, meaning in CAUSES.items():
        if re.search(pattern, output, re.I):
            return meaning + (about_the_proxy() if pattern == UNREACHABLE else "")
    words = " ".join(output.replace("│", " ").split())  # uv breaks its lines
    for pattern in LACKING:
        found = re.search(pattern, words, re.I)
        if found and os.environ.get("PIP_NO_INDEX"):
            return "pip is set to use no network.\nUnset PIP_NO_INDEX, or make a wheelhouse on another computer."
        if found:
            return unavailable(found["package"].replace("==", " "))
    return f"the installer ended with status {status}."


def about_the_proxy():
    """Return what to check if the index cannot be reached. A password in the proxy's address is left out."""
    for name in PROXIES:
        if os.environ.get(name):
            address = re.sub(r"[^/]*@", "", os.environ[name])
            return f"Check the network, and the proxy: {name} is set to {address}"
    return "Check the network. Behind a proxy, set HTTPS_PROXY."


def unavailable(package):
    """Return why a package cannot be installed: it has no file for this machine, or the index does not have it."""
    return (
        f"{package} has no ready-made build for this machine: {machine(platform.python_version())}.\n"
        f"Or the package index that is set here does not have {package}: is it a mirror, such as a company's?\n"
        "Then it must get this package, or you use another index. It is set in\n"
        "PIP_INDEX_URL or in the settings that `pip config list` shows; for uv, in UV_DEFAULT_INDEX or in uv.toml."
    )
