"""HTTP as AIPerf does it: straight to the address."""

import requests


def direct() -> requests.Session:
    """A session that no proxy variable of the environment redirects: what is checked must be what is measured."""
    session = requests.Session()
    session.trust_env = False
    return session
