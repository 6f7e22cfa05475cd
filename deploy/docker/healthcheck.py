"""Exit 0 when the service in this container can score now, 1 when it cannot.

The slim base image has no curl. The image's HEALTHCHECK starts it with `-I -S`: it needs nothing
but the standard library, and a check every few seconds should cost little.
"""

from __future__ import annotations

import os
import sys
import urllib.request

TIMEOUT_S = 3  # under the HEALTHCHECK's own, so that the reason is printed

DEFAULT_PORT = "8000"  # of the service's settings


def main() -> int:
    """Ask /readyz on loopback.

    Returns:
        Exit code; 1 with the reason on stderr.
    """
    url = f"http://127.0.0.1:{os.environ.get('ADREL_PORT', DEFAULT_PORT)}/readyz"
    # No proxies: HTTP_PROXY in the container would send the question out of it.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=TIMEOUT_S):
            return 0  # an error status raises
    except OSError as error:
        print(f"not ready: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
