"""What is done of one recording, in a file beside the results: whoever starts again goes on where it ended."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from ..recordings import bags, results
from .job import Part, Plan, digest

FILE = "result.json"


class Ledger:
    """Of the folder with one recording's results.

    A part is done if it stands here and its file is, byte for byte, the one that was written; files appear under their names
    only when they are whole. What was computed from another content, robot or option does not count.

    complete : whether all parts are done
    missing  : numbers of the parts that are not
    """

    def __init__(self, recording: Path, folder: Path, plan: Plan, kind: str):
        self._file, self._folder, self._kind = folder / FILE, folder, kind
        self._content: dict[str, Any] = {"recording": str(recording), "identity": plan.identity, "complete": False}
        self._content["parts"] = {}
        self._count = len(plan.ranges)
        folder.mkdir(parents=True, exist_ok=True)
        before = self._before()
        if before.get("identity") == plan.identity:
            self._content["parts"] = {name: part for name, part in before["parts"].items() if self._whole(part)}
        else:
            for part in before.get("parts", {}).values():
                self.target(part["file"]).unlink(missing_ok=True)
        self._write()

    @property
    def missing(self) -> list[int]:
        return [number for number in range(self._count) if str(number) not in self._content["parts"]]

    @property
    def rows(self) -> int:
        return sum(part["rows"] for part in self._parts())

    def target(self, part: int | str) -> Path:
        """The file of a part, by number or by name."""
        name = part if isinstance(part, str) else f"{self._folder.name}_{part:04}.{self._kind}"
        return self._folder / Path(name).name

    def add(self, number: int, part: Part) -> None:
        parts = self._content["parts"] | {str(number): {**part._asdict(), "peaks": [peak._asdict() for peak in part.peaks]}}
        self._content["parts"] = dict(sorted(parts.items(), key=lambda entry: int(entry[0])))
        self._write()

    def complete(self) -> None:
        """All parts are done."""
        found = self._parts()
        left_out: Counter[str] = sum((Counter(part["left_out"]) for part in found), Counter())
        largest: dict[tuple[str, str], dict[str, Any]] = {}
        for peak in sorted((peak for part in found for peak in part["peaks"]), key=lambda peak: peak["share"]):
            largest[peak["owner"], peak["quantity"]] = peak
        self._content |= {"complete": True, "samples": self.rows, "left_out": left_out,
                          "limits": sorted(largest.values(), key=lambda peak: -peak["share"])}
        if self._kind == results.MCAP:
            bags.write_metadata(self._folder, [self._folder / part["file"] for part in found])
        self._write()

    def _parts(self) -> list[dict[str, Any]]:
        return list(self._content["parts"].values())

    def _whole(self, part: dict[str, Any]) -> bool:
        file = self.target(part["file"])
        return file.is_file() and file.stat().st_size == part["bytes"] and digest(file) == part["digest"]

    def _before(self) -> dict[str, Any]:
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
            return found if isinstance(found["parts"], dict) and isinstance(found["identity"], str) else {}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def _write(self) -> None:
        made = self._file.with_name(f".{FILE}.partial")
        made.write_text(json.dumps(self._content, indent=1) + "\n", encoding="utf-8")
        made.replace(self._file)
