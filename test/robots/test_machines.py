"""Cross compilation for ARM and C export of robot programs."""

from __future__ import annotations

import ctypes
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest

import rnea_ros
from rnea_ros import InputError, JointDynamics, Robot
from rnea_ros.codegen import llvm_text
from rnea_ros.codegen.program import trace
from rnea_ros.robots.kernel_functions import KERNEL_FUNCTIONS

STANFORD = Path(rnea_ros.__file__).parents[1] / "urdf" / "stanford.urdf"
TERMS = {"joint1": JointDynamics(coulomb=0.3, viscous=0.2, rotor_inertia=0.1)}


@pytest.fixture(scope="module")
def robot():
    bare = Robot.from_urdf(STANFORD)
    return Robot.from_model(bare.model.with_joint_dynamics({bare.joint_names[0]: TERMS["joint1"]}))


def cross_compiled(engine, program, triple: str, cpu: str, lanes: int) -> bytes:
    """Return an object file for another machine, with ``kernel``, ``rows`` and ``call``; it needs that machine's C library."""
    engine.llvm.initialize_all_targets()
    engine.llvm.initialize_all_asmprinters()
    machine = engine.llvm.Target.from_triple(triple).create_target_machine(cpu=cpu, opt=2, reloc="pic", codemodel="default")
    return machine.emit_object(engine.llvm.parse_assembly(engine.assembly(program, lanes)))


def symbols(elf: bytes) -> tuple[int, dict[str, int]]:
    """Return the machine of a 64-bit object file, and its global symbols with their sections (0: undefined)."""
    assert elf[:6] == b"\x7fELF\x02\x01"
    machine, table, size, count = (*struct.unpack_from("<H", elf, 18), *struct.unpack_from("<Q", elf, 40),
                                   *struct.unpack_from("<HH", elf, 58))
    sections = [struct.unpack_from("<IIQQQQIIQQ", elf, table + k * size) for k in range(count)]
    found = {}
    for _, kind, _, _, start, length, link, _, _, _ in sections:
        if kind == 2:
            names = sections[link][4]
            for offset in range(start, start + length, 24):
                name, info, _, section = struct.unpack_from("<IBBH", elf, offset)
                if info >> 4 == 1:
                    found[elf[names + name:elf.index(b"\0", names + name)].decode()] = section
    return machine, found


@pytest.mark.parametrize(("triple", "cpu", "machine", "lanes"), [
    ("aarch64-unknown-linux-gnu", "cortex-a72", 183, 4), ("aarch64-unknown-linux-gnu", "generic", 183, 4),
    ("x86_64-unknown-linux-gnu", "x86-64", 62, 4), ("x86_64-unknown-linux-gnu", "skylake-avx512", 62, 8)])
@pytest.mark.parametrize("name", ["torque_and_rate", "forward_dynamics", "sensitivities"])
def test_object_files_need_only_the_c_library(robot, triple, cpu, machine, lanes, name):
    llvm = pytest.importorskip("rnea_ros.codegen.llvm_engine")
    program = trace(*robot.tree.store.traced(KERNEL_FUNCTIONS[name], by_paper=False))
    found, names = symbols(cross_compiled(llvm, program, triple, cpu, lanes))
    assert found == machine
    defined = {name for name, section in names.items() if section}
    assert {"kernel", "rows"} <= defined
    assert set(names) - defined <= {"sin", "cos", "tanh", "memcpy"}, "only the C library is needed"


def test_batch_kernel_compiles_for_arm(robot):
    llvm = pytest.importorskip("rnea_ros.codegen.llvm_engine")
    program = trace(*robot.tree.store.traced(KERNEL_FUNCTIONS["torque_and_rate"], by_paper=False))
    cross_compiled(llvm, program, "aarch64-unknown-linux-gnu", "generic", 4)
    target = llvm.llvm.Target.from_triple("aarch64-unknown-linux-gnu")
    machine = target.create_target_machine(cpu="generic", opt=2, reloc="pic")
    found, names = symbols(machine.emit_object(llvm.llvm.parse_assembly(llvm_text.batch_text(program, 4)[0])))
    assert found == 183 and names["batch"]


MAIN = """
#include <stdio.h>
#include <stdlib.h>
enum {{ N = {n}, SAMPLES = {samples}, WORK = {work} }};
void kernel(const double *x, double *y);
long batch(const double **in, const long *strides, double **out, double *work, long from, long to);
void in_c(const double *q, const double *qd, const double *qdd, const double *qddd, double *tau, double *tau_rate);
static double x[SAMPLES][4][N], y[3][SAMPLES][2][N], tau[SAMPLES][N], rate[SAMPLES][N];
int main(void) {{
  double *number = &x[0][0][0], *work = aligned_alloc(64, (8 * WORK + 63) / 64 * 64);
  for (int k = 0; k < SAMPLES * 4 * N; ++k) if (scanf("%lf", number + k) != 1) return 1;
  const double *in[] = {{x[0][0], x[0][1], x[0][2], x[0][3]}};
  double *out[] = {{tau[0], rate[0]}};
  const long strides[] = {{4 * N, 4 * N, 4 * N, 4 * N}};
  if (!batch(in, strides, out, work, 0, SAMPLES)) return 2;
  for (int k = 0; k < SAMPLES; ++k) {{
    kernel(x[k][0], y[0][k][0]);
    in_c(x[k][0], x[k][1], x[k][2], x[k][3], y[1][k][0], y[1][k][1]);
    for (int i = 0; i < N; ++i) y[2][k][0][i] = tau[k][i], y[2][k][1][i] = rate[k][i];
  }}
  for (int k = 0; k < 3 * SAMPLES * 2 * N; ++k) printf("%a\\n", (&y[0][0][0][0])[k]);
  return 0;
}}
"""


@pytest.mark.skipif(not (shutil.which("aarch64-linux-gnu-gcc") and shutil.which("qemu-aarch64")),
                    reason="needs gcc-aarch64-linux-gnu and qemu-user")
def test_cross_compiled_code_for_aarch64_gives_the_same_results(robot, tmp_path):
    """Machine code for one and many samples, and C code, run in an emulator; nine samples do not fill the tiles."""
    llvm, samples = pytest.importorskip("rnea_ros.codegen.llvm_engine"), 9
    program = trace(*robot.tree.store.traced(KERNEL_FUNCTIONS["torque_and_rate"], by_paper=False))
    triple, (text, work) = "aarch64-unknown-linux-gnu", llvm_text.batch_text(program, 4)
    machine = llvm.llvm.Target.from_triple(triple).create_target_machine(cpu="generic", opt=2, reloc="pic")
    (tmp_path / "kernel.o").write_bytes(cross_compiled(llvm, program, triple, "generic", 4))
    (tmp_path / "batch.o").write_bytes(machine.emit_object(llvm.llvm.parse_assembly(text)))
    (tmp_path / "in_c.c").write_text(robot.c_source("torque_and_rate", "in_c"))
    (tmp_path / "main.c").write_text(MAIN.format(n=robot.n, samples=samples, work=work))
    subprocess.run(["aarch64-linux-gnu-gcc", "-static", "-O1", "-o", "main", "main.c", "in_c.c", "kernel.o", "batch.o", "-lm"],
                   cwd=tmp_path, check=True, timeout=240)
    x = np.random.default_rng(7).uniform(-3.0, 3.0, (samples, 4, robot.n))
    done = subprocess.run(["qemu-aarch64", "./main"], cwd=tmp_path, check=True, timeout=240, text=True, capture_output=True,
                          input="\n".join(map(repr, x.ravel().tolist())))
    found = np.array([float.fromhex(line) for line in done.stdout.split()]).reshape(3, samples, 2, robot.n)
    here = np.stack(robot.torque_and_rate(*x.transpose(1, 0, 2)), axis=1)
    for way in found:
        np.testing.assert_allclose(way, here, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["torque_and_rate", "forward_dynamics", "mass_matrix"])
def test_exported_c_gives_the_same_results(robot, tmp_path, name):
    compiler = shutil.which("cc") or shutil.which("gcc")
    text = robot.with_payload("link6", 1.0, (0.1, 0.0, 0.2)).c_source(name, "stanford_arm")
    assert "void stanford_arm(const double payloads[10], const double q[6], " in text
    if not compiler:
        pytest.skip("no C compiler here")
    (tmp_path / "arm.c").write_text(text)
    subprocess.run([compiler, "-std=c99", "-Wall", "-Werror", "-O1", "-shared", "-fPIC", "-o", "arm.so", "arm.c", "-lm"],
                   cwd=tmp_path, check=True, timeout=240)
    found = robot.with_payload("link6", 1.0, (0.1, 0.0, 0.2)).kernel(name)
    x, y = np.random.default_rng(0).normal(size=found.size), np.empty(found.width)
    x[:10] = np.random.default_rng(1).uniform(0.5, 1.0, 10)
    starts = np.cumsum([0, *found.inputs.values()])[:-1], np.cumsum([0, *map(np.prod, found.shapes)])[:-1]
    offsets = [array.ctypes.data + 8 * int(start) for array, some in zip((x, y), starts) for start in some]
    ctypes.CDLL(str(tmp_path / "arm.so")).stanford_arm(*map(ctypes.c_void_p, offsets))
    np.testing.assert_allclose(y, np.concatenate([part.ravel() for part in found(x)]), rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("name", ["", "1a", "a b", "x;system(0)", "a" * 64, "é"])
def test_invalid_c_function_names_are_rejected(robot, name):
    with pytest.raises(InputError, match="no name of a C function"):
        robot.c_source("gravity", name)
