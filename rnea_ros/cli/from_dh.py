"""`rnea from-dh`: a Denavit-Hartenberg table, standard or modified, becomes a URDF."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..model import dh_table, modified_dh, standard_dh, urdf
from . import output_files
from .outcome import Outcome

CONVENTIONS = ("standard", "modified")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", metavar="TABLE.csv", help="columns joint, type (R or P), theta, d, a, alpha (standard) or "
                        "antecedent, gamma, b, alpha, d, theta, r (modified); mass, com_x ..., ixx ..., lower, upper, effort, "
                        "velocity where known; angles in rad, pi/2 allowed")
    parser.add_argument("--convention", choices=CONVENTIONS, help="default: modified where a column antecedent, gamma, b or r "
                        "is there, else standard")
    parser.add_argument("--name", help="of the robot, default: the table's")
    parser.add_argument("-o", "--output", metavar="ROBOT.urdf", help="default: standard output")


def run(args: argparse.Namespace) -> Outcome:
    output_files.check_files(args.output)
    modified = set(modified_dh.ONLY) & set(dh_table.column_names(args.table))
    convention = args.convention or CONVENTIONS[bool(modified)]
    name = args.name or Path(args.table).stem
    text = modified_dh.to_urdf(modified_dh.read(args.table), name) if convention == "modified" else \
        standard_dh.to_urdf(standard_dh.read(args.table), name)
    model = urdf.load(text)  # refuses what makes no robot
    for warning in model.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    data = {"convention": convention, "joints": model.n, "warnings": list(model.warnings)}
    if not args.output:
        return Outcome(text, data | {"urdf": text})
    Path(args.output).write_text(text + "\n", encoding="utf-8")
    return Outcome(f"{convention} table of {model.n} joints -> {args.output}", data | {"files": [args.output]})
