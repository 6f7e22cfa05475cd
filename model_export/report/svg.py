"""One look for all figures, and SVG that may stand in a page: no ids that clash, no own colours.

Colours are the page's: those that matplotlib writes are replaced by the variables of `style`, so
that a figure follows the reader's light or dark mode.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable
from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

SIZE_INCHES = (4.4, 3.3)  # two beside each other on a desk, one on a phone, letters still readable

# Blue and vermillion of Okabe and Ito's palette, which colour-blind readers can tell apart; the
# figures never rely on them alone. The keys are what matplotlib writes, the values the page's.
INK, QUIET, FIRST, SECOND = "#1b1f24", "#b0b7c0", "#0072b2", "#d55e00"
_PAGE_COLOURS = {
    INK: "currentColor",
    QUIET: "var(--quiet)",
    FIRST: "var(--first)",
    SECOND: "var(--second)",
}

DOT_OPACITY = 0.45

# What stands in the page thousands of times, and the style sheet's short form of it.
_SHORT = {
    f' style="fill: var(--first); fill-opacity: {DOT_OPACITY}"': ' class="dot"',
    "xlink:href=": "href=",
}

_STYLE: dict[str, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": QUIET,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 9,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlecolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "font.size": 9,
    "grid.alpha": 0.4,
    "grid.color": QUIET,
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.6,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text: small, searchable, in the page's font
    "text.color": INK,
    "text.parse_math": False,  # names come from outside, and a dollar sign is only that
    "xtick.color": QUIET,
    "xtick.labelcolor": INK,
    "ytick.color": QUIET,
    "ytick.labelcolor": INK,
}


def svg_of(name: str, description: str, draw: Callable[[Any], None]) -> str:
    """An `<svg>` element.

    Args:
        name: Unique in the page; prefix of every id.
        description: For readers who do not see the figure.
        draw: Draws on the axes that it is given.

    Returns:
        The same text for the same drawing.
    """
    # The user's own matplotlib settings must not reach the report.
    with mpl.rc_context():
        mpl.rcdefaults()
        settings: Any = _STYLE | {"svg.hashsalt": name}  # matplotlib lists every key it takes
        mpl.rcParams.update(settings)
        figure = Figure(figsize=SIZE_INCHES, layout="constrained")
        draw(figure.add_subplot())
        text = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(text, format="svg", transparent=True, metadata=nothing)
    return _for_the_page(text.getvalue(), name, description)


def _for_the_page(document: str, name: str, description: str) -> str:
    svg = document[document.index("<svg") :]
    svg = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>|<!--.*?-->", "",
                 svg, flags=re.DOTALL)  # fmt: skip
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    svg = re.sub(r" font-family: [^;\"]*;", "", svg)
    # In tags only, since texts have numbers too; a hundredth of a point is enough.
    svg = re.sub(r"<[^>]+>", lambda tag: re.sub(r"(\d\.\d\d)\d+", r"\1", tag[0]), svg)
    for written, shown in _PAGE_COLOURS.items():
        svg = svg.replace(written, shown)
    for many_times, short in _SHORT.items():
        svg = svg.replace(many_times, short)
    svg = re.sub(r"\n\s*", "\n", svg).strip()
    label = html.escape(description)
    return re.sub(
        r'<svg [^>]*?viewBox="([^"]*)"[^>]*>',
        lambda found: (
            f'<svg viewBox="{found[1]}" role="img" aria-label="{label}" '
            'xmlns="http://www.w3.org/2000/svg">'
        ),
        svg,
        count=1,
    )
