"""Files that the workbench serves: the browser's bundle, pictures, the dossier."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fastapi.responses import FileResponse, Response

from keyhole.reviews.store_shapes import read_json
from keyhole.workbench.projects import Project
from keyhole.workbench.rendering import vega_bundle

__all__ = ["chart", "result_file", "vega"]

_NAME = re.compile(r"[a-z][a-z-]*\.(json|svg)")
_TYPES = {"json": "application/json", "svg": "image/svg+xml"}
# Where Vega finds addresses; `usermeta` may hold options of how to draw.
_ADDRESSES = frozenset({"url", "href", "usermeta"})
# Rows of a picture: their names are of columns, and are drawn, not followed.
_DATA = ("values", "datasets")
# A report brings its own style and nothing else; it may stand in a frame of ours.
_REPORT = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    "X-Frame-Options": "SAMEORIGIN",
}
REPORTS = ("report.html", "public-note.html")


def vega() -> Response:
    """Return Vega for the browser; the same for as long as keyhole is."""
    keep = {"Cache-Control": "private, max-age=86400"}
    return Response(vega_bundle(), media_type="text/javascript", headers=keep)


def chart(project: Project, name: str) -> Response | None:
    """Return a picture of the review, as a spec or drawn."""
    path = project.results / "charts" / name
    if not _NAME.fullmatch(name) or not _is_own(project, path):
        return None
    if path.suffix == ".json" and not _is_harmless(read_json(path)):
        return None  # the page keeps the picture as it was drawn
    return FileResponse(path, media_type=_TYPES[path.suffix[1:]])


def _is_harmless(spec: Any) -> bool:
    """Tell whether a spec asks for no address, and takes nobody who clicks to one; ours do neither.

    Somebody may have edited it, and where a link leads is no matter of the page's policy.
    """
    return isinstance(spec, dict) and not any(_ADDRESSES & set(part) for part in _parts(spec))


def _parts(value: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of a spec, but for the rows of its data."""
    if isinstance(value, dict):
        yield value
        value = [one for name, one in value.items() if name not in _DATA]
    for one in value if isinstance(value, list) else ():
        yield from _parts(one)


def result_file(project: Project, name: str) -> Response | None:
    """Return the report or the public note to look at, or the review file to keep."""
    if name == project.path.name:
        return FileResponse(project.path, media_type="text/plain", filename=name)
    path = project.results / name
    if name not in REPORTS or not _is_own(project, path):
        return None
    return FileResponse(path, media_type="text/html", headers=_REPORT)


def _is_own(project: Project, path: Path) -> bool:
    """Tell whether a file is there, in the results themselves and not by a link elsewhere."""
    own = project.path.parent.resolve() / project.results.name
    return path.is_file() and path.resolve().is_relative_to(own)
