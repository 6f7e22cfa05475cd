"""What every report's page is made of: one file, no script, nothing fetched."""

from __future__ import annotations

from model_export.report.style import STYLE
from model_export.report.tables import escaped

# Also as a rule of the page itself: whatever got into it can neither run nor send.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


def whole_page(title: str, body: str) -> str:
    """A page.

    Args:
        title: Plain text.
        body: HTML in which everything from outside is escaped.
    """
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{escaped(title)}</title>
<style>{STYLE}</style>
</head>
<body>
{body}
</body>
</html>
"""


def verdict_box(answer: str, grounds: str, *, good: bool) -> str:
    """The first thing that is read: plain texts in a frame that is green or red."""
    return (
        f'<div class="verdict{"" if good else " broken"}">'
        f"<strong>{escaped(answer)}</strong><p>{escaped(grounds)}</p></div>"
    )


def figures(*drawn: tuple[str, str]) -> str:
    """Figures beside each other, each an `<svg>` with its plain caption."""
    shown = (
        f"<figure>\n{svg}\n<figcaption>{escaped(note)}</figcaption></figure>" for svg, note in drawn
    )
    return '<div class="figures">\n' + "\n".join(shown) + "\n</div>"
