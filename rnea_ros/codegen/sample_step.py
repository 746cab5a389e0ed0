"""A kernel with what a node does before and after it, as one built-in function on arrays that stay where they are.

For each sample a node extrapolates the desired motion, evaluates torques, divides them by their limits, and copies all of it
into its outgoing messages. Each of these steps takes numpy 0.5 us, and 2 us when other programs have used the caches since the
last sample, a millisecond ago. Here they take 1 us together, and the numbers are the same to the last bit.

Addresses are taken once, of arrays whose types, sizes and contiguity are checked; the step keeps these arrays alive.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import InputError
from . import python_call
from .kernel import Kernel

WORD = 8  # bytes; of a number, and of a stamp
WORDS = 16  # of a plan
Copy = tuple[np.ndarray, np.ndarray]  # (target, source), of equal sizes
Share = tuple[np.ndarray, np.ndarray, np.ndarray]  # (target, number, limit), n numbers each

# A function of a table: for each row (target, source, third), BODY at each of COUNT numbers.
LOOP = """
define internal void @NAME(ptr %table, i64 %rows, i64 %n) noinline {
entry:
  %any = icmp ne i64 %rows, 0
  br i1 %any, label %row, label %done
row:
  %k = phi i64 [ 0, %entry ], [ %k.next, %row.done ]
  %at = mul i64 %k, 3
  %target.at = getelementptr i64, ptr %table, i64 %at
  %target = load ptr, ptr %target.at
  %source.at = getelementptr i64, ptr %target.at, i64 1
  %source = load ptr, ptr %source.at
  %third.at = getelementptr i64, ptr %target.at, i64 2
  %third = load i64, ptr %third.at
  br label %number
number:
  %j = phi i64 [ 0, %row ], [ %j.next, %number ]
  %to = getelementptr i64, ptr %target, i64 %j
  %from = getelementptr i64, ptr %source, i64 %j
BODY
  %j.next = add i64 %j, 1
  %more = icmp ult i64 %j.next, COUNT
  br i1 %more, label %number, label %row.done
row.done:
  %k.next = add i64 %k, 1
  %more.rows = icmp ult i64 %k.next, %rows
  br i1 %more.rows, label %row, label %done
done:
  ret void
}
"""
COPY = """
  %value = load i64, ptr %from
  store i64 %value, ptr %to
"""
DIVIDE = """
  %x = load double, ptr %from
  %magnitude = call double @llvm.fabs.f64(double %x)
  %limits = inttoptr i64 %third to ptr
  %limit.at = getelementptr double, ptr %limits, i64 %j
  %limit = load double, ptr %limit.at
  %share = fdiv double %magnitude, %limit
  store double %share, ptr %to
"""
RAISE = """
  %x = load double, ptr %from
  %before = load double, ptr %to
  %larger = call double @llvm.maxnum.f64(double %before, double %x)
  store double %larger, ptr %to
"""
LOOPS = {"copy": (COPY, "%third"), "divide": (DIVIDE, "%n"), "raise": (RAISE, "%third")}

# The words of a plan: kernel, its input and output, n, desired motion, its age, then (address, rows) of five tables.
TEXT = """
declare double @llvm.fabs.f64(double)
declare double @llvm.maxnum.f64(double, double)
define internal i1 @sample(ptr %plan) noinline {
WORDS
  %n2 = mul i64 %w3, 2
  %n4 = mul i64 %w3, 4
  call void @copy(ptr %p6, i64 %w7, i64 %w3)
  %since = load double, ptr %p5
  %still = fcmp oeq double %since, 0.0
  %accelerations = getelementptr double, ptr %p1, i64 %n2
  %n3 = mul i64 %w3, 3
  %jerks = getelementptr double, ptr %p1, i64 %n3
  %desired.jerks = getelementptr double, ptr %p4, i64 %w3
  br label %joint
joint:  ; rows + 0.0, then the acceleration + jerk * since; the rows themselves at their own stamp
  %j = phi i64 [ 0, %entry ], [ %j.next, %joint ]
  %a.at = getelementptr double, ptr %p4, i64 %j
  %a = load double, ptr %a.at
  %b.at = getelementptr double, ptr %desired.jerks, i64 %j
  %b = load double, ptr %b.at
  %step = fmul double %b, %since
  %a.positive = fadd double %a, 0.0
  %a.later = fadd double %a.positive, %step
  %b.positive = fadd double %b, 0.0
  %a.now = select i1 %still, double %a, double %a.later
  %b.now = select i1 %still, double %b, double %b.positive
  %a.to = getelementptr double, ptr %accelerations, i64 %j
  store double %a.now, ptr %a.to
  %b.to = getelementptr double, ptr %jerks, i64 %j
  store double %b.now, ptr %b.to
  %j.next = add i64 %j, 1
  %more = icmp ult i64 %j.next, %w3
  br i1 %more, label %joint, label %extrapolated
extrapolated:
  %is.motion = call i1 @finite(ptr %p1, i64 %n4)
  br i1 %is.motion, label %compute, label %unusual
compute:
  call void %p0(ptr %p1, ptr %p2)
  %is.result = call i1 @finite(ptr %p2, i64 %n4)
  br i1 %is.result, label %publish, label %unusual
publish:
  call void @copy(ptr %p8, i64 %w9, i64 %w3)
  call void @divide(ptr %p10, i64 %w11, i64 %w3)
  call void @copy(ptr %p12, i64 %w13, i64 %w3)
  call void @raise(ptr %p14, i64 %w15, i64 %w3)
  ret i1 true
unusual:
  ret i1 false
}
define ptr @step(ptr %self, ptr %array) {
API
  %type.at = getelementptr i8, ptr %array, i64 8
  %type = load ptr, ptr %type.at
  %is.array = icmp eq ptr %type, %ndarray
  br i1 %is.array, label %run, label %unusual
run:
  %data.at = getelementptr i8, ptr %array, i64 16
  %data = load ptr, ptr %data.at
  %sound = call i1 @sample(ptr %data)
  br i1 %sound, label %done, label %unusual
done:
  call void %retain(ptr %array)
  ret ptr %array
unusual:
  call void %retain(ptr %none)
  ret ptr %none
}
"""


def assembly() -> str:
    """LLVM text of ``step``, which answers its plan, or None where a number is not finite."""
    words = ["entry:"]
    for k in range(WORDS):
        words += [f"  %at{k} = getelementptr i64, ptr %plan, i64 {k}", f"  %w{k} = load i64, ptr %at{k}",
                  f"  %p{k} = inttoptr i64 %w{k} to ptr"]
    loops = [LOOP.replace("NAME", name).replace("BODY", body.strip("\n")).replace("COUNT", count)
             for name, (body, count) in LOOPS.items()]
    text = TEXT.replace("WORDS", "\n".join(words)).replace("API", "\n".join(python_call.api()))
    return python_call.SUPPORT + "".join(loops) + text


class SampleStep:
    """Evaluation of one sample of n joints.

    state   : (2, n) positions and velocities, read at each sample
    desired : (2, n) accelerations and jerks, to be filled in by the caller
    since   : (1,) time from these to the sample, to be filled in by the caller [s]
    motion  : (4, n) q, qd, qdd, qddd of the sample
    results : (4, n) results of the kernel
    """

    def __init__(self, kernel: Kernel, state: np.ndarray):
        """kernel: of q, qd, qdd, qddd (n,) with four results (n,). Raises InputError for another, or without machine code."""
        from . import llvm_engine

        n = state.shape[1]
        if list(kernel.inputs.values()) != [n] * 4 or kernel.width != 4 * n or not n:
            raise InputError(f"a kernel has inputs {kernel.inputs} and {kernel.width} results; a sample step takes four "
                             f"inputs and four results of {n} joints")
        if not kernel.address or not python_call.usable():
            raise InputError("a sample step needs a kernel of machine code and CPython with its usual layout of objects")
        self.desired, self.since, self.motion, self.results = np.zeros((2, n)), np.zeros(1), np.zeros((4, n)), np.zeros((4, n))
        self._kernel, self._held = kernel, dict[int, list[np.ndarray]]()  # arrays of the tables, by their words in the plan
        self._plan = np.zeros(WORDS, dtype=np.int64)
        motion, results, desired, since = map(_checked_address, (self.motion, self.results, self.desired, self.since))
        self._plan[:6] = kernel.address, motion, results, n, desired, since
        self._copies(6, [(self.motion[:2], state)])
        self._run = llvm_engine.sample_step()

    def connect(self, tables: Sequence[Copy], shares: Sequence[Share], messages: Sequence[Copy],
                peaks: Sequence[Copy]) -> None:
        """Set what follows the kernel: copies of motion and results, shares |number| / limit, copies into messages, and peaks,
        the largest numbers so far, from which NaN is left out.
        """
        n = self.motion.shape[1]
        if any(one.size != n or one.dtype != float for arrays in shares for one in arrays):
            raise InputError(f"arrays of {[[one.size for one in arrays] for arrays in shares]} numbers; shares of limits need "
                             f"{n} doubles each")
        self._table(10, shares)
        for at, copies in ((8, tables), (12, messages), (14, peaks)):
            self._copies(at, copies)

    def __call__(self) -> bool:
        """Evaluate the sample; return False, with nothing copied, where a number of the motion or a result is not finite."""
        return self._run(self._plan) is not None

    def _copies(self, at: int, copies: Sequence[Copy]) -> None:
        for target, source in copies:
            if target.nbytes != source.nbytes or not target.nbytes:
                raise InputError(f"{source.nbytes} bytes cannot be copied to {target.nbytes}: equal numbers are needed")
        self._table(at, [(target, source, target.nbytes // WORD) for target, source in copies])

    def _table(self, at: int, rows: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray | int]]) -> None:
        """Set a table of the plan, of addresses of arrays, which are kept alive, and of numbers."""
        words = [[one if isinstance(one, int) else _checked_address(one) for one in row] for row in rows]
        table = np.array(words, dtype=np.int64).reshape(-1, 3)
        self._plan[at:at + 2] = table.ctypes.data if len(table) else 0, len(table)
        self._held[at] = [table, *(one for row in rows for one in row if not isinstance(one, int))]


def _checked_address(array: np.ndarray) -> int:
    """Return the address of an array of words in one piece that may be read and written. Raises InputError for others."""
    if not (array.flags.c_contiguous and array.flags.aligned and array.flags.writeable) or array.itemsize != WORD:
        raise InputError(f"an array of shape {array.shape}, strides {array.strides} and type {array.dtype}; contiguous, "
                         "aligned and writeable words of 8 bytes are needed")
    return int(array.ctypes.data)
