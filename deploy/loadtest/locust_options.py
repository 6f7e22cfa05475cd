"""The options that locust gets for ad servers."""

from __future__ import annotations

import argparse
import math
from typing import get_args

from deploy.loadtest.ad_traffic import ADS_PER_TOPIC
from deploy.loadtest.user_counts import Shape

KEY_VARIABLE = "LOADTEST_API_KEY"  # not an option: those can be read in the list of processes

ADS, TIMEOUT_MS, NETWORK_MS, SEED = 20, 150.0, 5.0, 1


def number_of_ads(text: str) -> int:
    """Ads in a request, as the catalogue can give them."""
    n_ads = int(text)
    if not 1 <= n_ads <= ADS_PER_TOPIC:
        raise argparse.ArgumentTypeError(f"{n_ads} is not in 1-{ADS_PER_TOPIC}")
    return n_ads


def positive(text: str) -> float:
    """A number above 0."""
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def not_negative(text: str) -> float:
    """A number that is 0 or above."""
    value = float(text)
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number from 0 on")
    return value


def add_request_options(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """What a request is: `make loadtest` has these too."""
    add = parser.add_argument
    add("--ads", type=number_of_ads, default=ADS, metavar="N", help="ads in a request")
    add(
        "--timeout-ms",
        type=positive,
        default=TIMEOUT_MS,
        metavar="MS",
        help="timeout_ms of each request",
    )
    add(
        "--network-ms",
        type=not_negative,
        default=NETWORK_MS,
        metavar="MS",
        help="what the caller grants the network on top; an answer after that is lost",
    )
    add("--seed", type=int, default=SEED, metavar="N", help="same seed, same requests")
    add(
        "--host-is-mine",
        action="store_true",
        help="the service is on another machine, and may be put under load",
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    """All of them."""
    group = parser.add_argument_group("ad server")
    add_request_options(group)
    add = group.add_argument
    add(
        "--user-rps",
        type=not_negative,
        default=0.0,
        metavar="RATE",
        help="open loop: requests a second of each user, at random instants, whether answers come "
        "or not; 0 is a closed loop: the next as soon as one is answered",
    )
    add(
        "--shape",
        choices=get_args(Shape),
        default="steady",
        help="how the number of users changes over --run-time",
    )
    add(
        "--base-users",
        type=int,
        default=1,
        metavar="N",
        help="users at the start of a ramp, and around a spike; --users is where they lead",
    )
    # A text, since locust's master cannot send a path to its workers.
    add("--record", metavar="FOLDER", help="leave a line for each request there")
