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
# uv says whether the index has a version. pip says the same of a package that is not there and of one without a build.
OF_UV = {
    r"(?P<name>[\w.-]+)==(?P<version>\S+) has no (\w+ )?wheels": True,
    r"python version .* does not satisfy .* and (?P<name>[\w.-]+)==(?P<version>\S+) depends on": True,
    r"because (?P<name>[\w.-]+) was not found in": False,
    r"no version of (?P<name>[\w.-]+)==(?P<version>\S+)": False,
}
OF_PIP = r"no matching distribution found for (?P<name>[\w.-]+)(==(?P<version>\S+))?"
# What pip says with -vv of a file that does not fit.
UNFIT = r"skipping link: none of the wheel's tags|skipping link: no sources permitted|link requires a different python"


def machine(version):
    """Return the platform and Python version that a package must match, in words."""
    return f"{platform.system()} {platform.machine()}, Python {version}"


def cause(output, status, ask=lambda requirement: ""):
    """Return why the installer ended with this status.

    ask(requirement): what pip prints, with -vv, when it is asked for this package alone.
    """
    told = plain(output)
    if told:
        return told
    words = " ".join(output.replace("│", " ").split())  # uv breaks its lines
    for pattern, exists in OF_UV.items():
        found = re.search(pattern, words, re.I)
        if found:
            return unavailable(exists, **found.groupdict())
    found = re.search(OF_PIP, words, re.I)
    if not found:
        return f"the installer ended with status {status}."
    if os.environ.get("PIP_NO_INDEX"):
        return "pip is set to use no network.\nUnset PIP_NO_INDEX, or make a wheelhouse on another computer."
    name, version = found["name"], found["version"]
    answer = ask(found[0].split()[-1])
    return plain(answer) or unavailable(is_there(answer, name, version or ""), name, version)


def plain(output):
    """Return the meaning of what an installer printed, if one of the patterns in CAUSES occurs there, or ""."""
    for pattern, meaning in CAUSES.items():
        if re.search(pattern, output, re.I):
            return meaning + (about_the_proxy() if pattern == UNREACHABLE else "")
    return ""


def about_the_proxy():
    """Return what to check if the index cannot be reached. A password in the proxy's address is left out."""
    for name in PROXIES:
        if os.environ.get(name):
            address = re.sub(r"[^/]*@", "", os.environ[name])
            return f"Check the network, and the proxy: {name} is set to {address}"
    return "Check the network. Behind a proxy, set HTTPS_PROXY."


def unavailable(exists, name, version=None):
    """Return why a package cannot be installed: the index has this version, but no file for this machine; or has none.

    exists: whether the index has this version.
    """
    package = f"{name} {version}" if version else name
    if exists:
        return f"{package} has no ready-made build for this machine: {machine(platform.python_version())}."
    return (
        f"the package index that is set here does not have {package}.\n"
        "Is it a mirror, such as a company's? Then it must get this package, or you use another index. It is set in\n"
        "PIP_INDEX_URL or in the settings that `pip config list` shows; for uv, in UV_DEFAULT_INDEX or in uv.toml."
    )


def is_there(output, name, version):
    """Return whether pip, asked with -vv, found files of this version that do not fit this machine."""
    file = "[-_.]+".join(re.split("[-_.]+", name)) + "-" + re.escape(version) + r"(-|\.tar|\.zip)"
    unfit = [line for line in output.splitlines() if re.search(UNFIT, line, re.I)]
    return any(re.search(file, line, re.I) for line in unfit)
