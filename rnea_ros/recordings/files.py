"""Which files hold recordings, and who reads them."""

from __future__ import annotations

import glob
import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from ..errors import InputError, near, some
from . import motion_csv
from .bags import METADATA, BagRecording
from .csv_recording import CsvRecording
from .recording import Recording, Samples, Span, Wanted

BAGS = (".mcap", ".db3")
FORMATS = (*BAGS, ".csv")
SPARSE = 1.0, 60.0  # s; further apart no recording has its samples, and no planned path its points
PATH = 20  # points that one may have


def is_bag(path: str | Path) -> bool:
    """Whether that is a ROS 2 bag: one file of it, or the folder of all."""
    path = Path(path)
    return path.suffix in BAGS or (path / METADATA).is_file()


def open_recording(path: str | Path, wanted: Wanted, span: Span | None = None) -> Recording:
    """The recording at a path. span: what an earlier pass through this very file has told. InputError: it cannot be read."""
    _check_held(wanted)
    if is_bag(path):
        return BagRecording(Path(path), wanted, span)
    if Path(path).is_dir():
        raise InputError(f"{path}: is a folder, and no bag, for it has no {METADATA}")
    return CsvRecording(Path(path), wanted, span)


def read(path: str | Path, wanted: Wanted) -> tuple[Samples, list[str]]:
    """All samples at once, for what needs them all; and for people what was not used. Times of a CSV may be in any order."""
    if is_bag(path):
        recording = open_recording(path, wanted)
        (samples,) = recording.pieces((-np.inf, np.inf))
        told = notes(recording)
    else:
        _check_held(wanted)
        samples, ignored = motion_csv.columns_of(path, wanted.names, wanted.blocks, wanted.needed, wanted.reading.rename)
        t = samples["t"]
        told = unused("columns", ignored) + _in_other_units(t.min(), t.max(), len(t))
    t = samples.pop("t")
    return {"t": t, **{name: wanted.whole(name, columns) for name, columns in samples.items()}}, told


def _check_held(wanted: Wanted) -> None:
    for name, _ in wanted.reading.held:
        if name not in wanted.joint_names:
            raise InputError(f"--hold {name}: the joints are {some(wanted.joint_names)}{near(name, wanted.joint_names)}")
    if wanted.reading.held and not wanted.names:
        raise InputError("--hold: every joint is held; at least one has to be in the recording")


def notes(recording: Recording) -> list[str]:
    """For people: what was not used so far."""
    lines = [f"not used: {count} samples {reason}" for reason, count in recording.left_out.items()]
    return unused(recording.ignored_are, recording.ignored) + lines + _in_other_units(*recording.span[:3])


def _in_other_units(first: float, last: float, samples: int) -> list[str]:
    apart = (last - first) / max(samples - 1, 1)
    doubt = f"warning: samples are {apart:.3g} s apart, for t is read in seconds; is it in ms or ns?"
    return [doubt] if apart >= SPARSE[samples <= PATH] else []


def unused(what: str, names: Sequence[str]) -> list[str]:
    return [f"{what} not used: {some(names, 6, quoted=True)}"] if names else []


def found(given: Iterable[str]) -> dict[Path, Path]:
    """The recordings that files, folders and patterns name, each once, and what to call the results of each.

    A folder stands for all recordings below it, but for one that is a bag. InputError names what does not exist.
    """
    paths: dict[Path, tuple[Path, Path]] = {}
    for word in (given := list(given)):
        matches = [Path(word)] if Path(word).exists() else [Path(name) for name in sorted(glob.glob(word, recursive=True))]
        if not matches:
            raise InputError(f"{word}: no such file, folder or pattern")
        for match in matches:
            for path in _below(match):
                name = Path(path.resolve().name) if path == match else path.relative_to(match)
                paths.setdefault(path.resolve(), (path, name.with_suffix("") if path.suffix in FORMATS else name))
    if not paths:
        raise InputError(f"no recordings in {some(given)}; looked for bags and files that end in {', '.join(FORMATS)}")
    count = Counter(name for _, name in paths.values())
    return {path: name if count[name] == 1 else name.with_name(f"{name.name}-{_mark(where)}")
            for where, (path, name) in sorted(paths.items())}


def _mark(path: Path) -> str:
    """What tells results of recordings of the same name apart."""
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:6]


def _below(path: Path) -> Iterator[Path]:
    if not path.is_dir() or is_bag(path):
        yield path
        return
    for entry in sorted(path.iterdir()):
        if not entry.name.startswith(".") and (entry.is_dir() or entry.suffix in FORMATS):
            yield from _below(entry)
