"""The state diagrams of the pages, which are written in Mermaid's language for GitHub, as SVG for the site.

Mermaid itself would come from another host, and three megabytes of it. A state is a column, a transition an arrow from
one column to another with its words above it.
"""

from __future__ import annotations

import re
from html import escape

BLOCK = re.compile(r"^```mermaid\nstateDiagram-v2\n(.*?)^```$", re.DOTALL | re.MULTILINE)
ARROW = re.compile(r"^\s*(\S+) --> (\S+)(?: : (.*))?$")
COLUMN, ROW, TOP = 108, 34, 52
LETTER = 6.2  # how wide one is, more or less


def drawn(markdown: str) -> str:
    """The page with every state diagram as a drawing."""
    return BLOCK.sub(lambda block: svg(block[1]), markdown)


def svg(source: str) -> str:
    arrows = [(found[1], found[2], found[3] or "") for line in source.splitlines() if (found := ARROW.match(line))]
    states = list(dict.fromkeys(state for start, end, _ in arrows for state in (start, end) if state != "[*]"))
    if last := [start for start, end, _ in arrows if end == "[*]"]:
        states = [state for state in states if state not in last] + last
    arrows = [arrow for arrow in arrows if "[*]" not in arrow]
    width, height = COLUMN * len(states) + 20, TOP + ROW * len(arrows) + 20
    middle = {state: 10 + COLUMN * place + COLUMN // 2 for place, state in enumerate(states)}
    for start, end, words in arrows:
        if start == end:  # what stands beside the last state's own arrow needs room
            width = max(width, int(middle[start] + 44 + LETTER * len(words)))
    parts = [
        f'<div class="drawing"><svg viewBox="0 0 {width} {height}" style="max-width:{width}px" role="img">',
        '<defs><marker id="state-tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
        'orient="auto"><path class="tip" d="M0 0 10 5 0 10z"/></marker></defs>',
    ]
    for state, x in middle.items():
        parts.append(f'<line class="life" x1="{x}" y1="44" x2="{x}" y2="{height}"/>')
        parts.append(f'<rect class="box" x="{x - 48}" y="10" width="96" height="34" rx="17"/>')
        parts.append(f'<text class="name" x="{x}" y="32" text-anchor="middle">{escape(state)}</text>')
    for number, (start, end, words) in enumerate(arrows):
        y = TOP + ROW * number + 24
        if start == end:
            x = middle[start]
            way = f"M{x} {y - 8}h28v12H{x + 2}"
            parts.append(f'<path class="way" marker-end="url(#state-tip)" d="{way}"/>')
            parts.append(f'<text x="{x + 36}" y="{y + 2}">{escape(words)}</text>')
            continue
        parts.append(f'<path class="way" marker-end="url(#state-tip)" d="M{middle[start]} {y}H{middle[end]}"/>')
        left = min(middle[start], middle[end]) + 8
        right = left + LETTER * len(words) > width  # words that would not fit end where the arrow's right end is
        x, anchor = (max(middle[start], middle[end]) - 8, "end") if right else (left, "start")
        parts.append(f'<text x="{x}" y="{y - 6}" text-anchor="{anchor}">{escape(words)}</text>')
    return "".join([*parts, "</svg></div>"])
